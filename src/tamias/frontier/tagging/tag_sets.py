"""TagSets: every set of tags has a number, and URLs with the same tags stand in the same queues."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.frontier.lease_filter import lane_tags
from tamias.frontier.queries import done_by, rows_of

MOST_TAG_SETS = 4096
MOST_VALUES = 256
"""Of one name, as in `name=value`. More are no categories but data: they count for no lane."""
_REMEMBERED = 10_000
_ATTEMPTS = 3


class TagSets:
    """The numbers of sets of tags, made where there are none. Outside of transactions only."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._remembered: dict[tuple[str, ...], int] = {}
        self._lanes: dict[tuple[str, ...], int] = {(): 0}
        self._values: dict[str, set[str]] = {}

    def number(self, tags: tuple[str, ...]) -> int:
        """The lane of a URL with these tags; 0 also where there is no room for another lane."""
        number = self._remembered.get(tags)
        if number is None:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            number = self._remembered[tags] = self._numbered(self._counted(tags)) if tags else 0
        return number

    def _numbered(self, tags: tuple[str, ...]) -> int:
        if tags in self._lanes or len(self._lanes) >= MOST_TAG_SETS:
            return self._lanes.get(tags, 0)
        for lane, those in self._session.transact(partial(_known, tags=tags)):
            self._lanes[tuple(those)] = lane
            for tag in those:
                name, _, value = tag.partition("=")
                self._values.setdefault(name, set()).add(value)
        return self._lanes.get(tags, 0)

    def _counted(self, tags: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(tag for tag in lane_tags(tags) if self._has_room(*tag.split("=", 1)))

    def _has_room(self, name: str, value: str = "") -> bool:
        known = self._values.get(name, set())
        return value in known or len(known) < MOST_VALUES


def _known(cursor: Cursor, tags: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return all lanes, one for these tags among them unless there are too many."""
    for _ in range(_ATTEMPTS):  # somebody else may take the number
        done_by(cursor, "put_lane", {"tags": list(tags), "most": MOST_TAG_SETS})
        found = rows_of(cursor, "read_lanes", {})
        if len(found) >= MOST_TAG_SETS or any(tuple(row[1]) == tags for row in found):
            break
    return found


class Retagged(msgspec.Struct, frozen=True):
    """A URL that gets other tags, by its place in the table."""

    qid: int
    crawl: int
    uid: int
    before: tuple[str, ...]
    tags: tuple[str, ...]
    lane: int


def retag(cursor: Cursor, bucket: int, urls: Iterable[Retagged]) -> int:
    """Give URLs of locked hosts other tags; their queues are refreshed after. Return how many changed."""
    news = sorted(urls, key=lambda url: (url.qid, url.crawl, url.lane))
    if not news:
        return 0
    columns = {
        "bucket": bucket,
        "qid": [url.qid for url in news],
        "crawl": [url.crawl for url in news],
        "uid": [url.uid for url in news],
        "lane": [url.lane for url in news],
        "before": ["\t".join(url.before) if url.before else None for url in news],
        "tags": ["\t".join(url.tags) if url.tags else None for url in news],
    }
    done_by(cursor, "put_queues", columns)
    done_by(cursor, "write_ranges", columns)
    moved = rows_of(cursor, "retag", columns)
    changes: dict[tuple[int, int, int], list[int]] = {}
    for qid, crawl, old, new, is_open in moved:
        for lane, sign in ((old, -1), (new, 1)):
            count = changes.setdefault((qid, crawl, lane), [0, 0])
            count[0] += sign
            count[1] += sign * is_open
    if changes:
        done_by(cursor, "count_moved", {"bucket": bucket, **_counted(changes)})
    return len(moved)


def _counted(changes: dict[tuple[int, int, int], list[int]]) -> dict[str, list[int]]:
    return {
        "qid": [qid for qid, _, _ in changes],
        "crawl": [crawl for _, crawl, _ in changes],
        "lane": [lane for _, _, lane in changes],
        "urls": [urls for urls, _ in changes.values()],
        "open": [still_open for _, still_open in changes.values()],
    }
