"""Tags that people give to URLs and take away, and the numbers of sets of tags, which divide queues."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from tamias.database.columns import Ints, Kinds, Longs, Texts, columns, storable
from tamias.database.connect import Cursor, Session
from tamias.frontier.keys import bucket_of, hash64, host_hash, salted
from tamias.frontier.lease_filter import lane_tags
from tamias.frontier.queries import ask, done_by, read_buckets, refresh, rows_of
from tamias.model.errors import UsageError
from tamias.model.item import TAGS

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


_RETAGGED: Kinds = {"qid": Longs, "crawl": Ints, "uid": Longs, "lane": Ints, "before": Texts, "tags": Texts}
_MOVED: Kinds = {"qid": Longs, "crawl": Ints, "lane": Ints, "urls": Longs, "open": Longs}


def retag(cursor: Cursor, bucket: int, urls: Iterable[Retagged]) -> int:
    """Give URLs of locked hosts other tags; their queues are refreshed after. Return how many changed."""
    news = sorted(urls, key=lambda url: (url.qid, url.crawl, url.lane))
    if not news:
        return 0
    rows = [
        (url.qid, url.crawl, url.uid, url.lane, "\t".join(url.before) or None, "\t".join(url.tags) or None)
        for url in news
    ]
    urls_there = {"bucket": bucket, **columns(_RETAGGED, rows)}
    done_by(cursor, "put_queues", urls_there)
    done_by(cursor, "write_ranges", urls_there)
    moved = rows_of(cursor, "retag", urls_there)
    changes: dict[tuple[int, int, int], list[int]] = {}
    for qid, crawl, old, new, is_open in moved:
        for lane, sign in ((old, -1), (new, 1)):
            count = changes.setdefault((qid, crawl, lane), [0, 0])
            count[0] += sign
            count[1] += sign * is_open
    if changes:
        done_by(
            cursor,
            "count_moved",
            {"bucket": bucket, **columns(_MOVED, [(*queue, *count) for queue, count in changes.items()])},
        )
    return len(moved)


LONGEST_TAG = 100
MOST_TAGS = 32
"""Of one URL."""
_AT_ONCE = 1000
_FIRST = -(2**63)
_MOST_SALTS = 3
_TRIES = 5
"""Somebody else may change the tags of a URL at the same time."""


class TagSetter(msgspec.Struct, frozen=True):
    """The user who gave a URL a tag, and the time in milliseconds UTC."""

    tag: str
    by: str
    at: int


class TagChange(msgspec.Struct, frozen=True, kw_only=True):
    """Tags to be given and to be taken away."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def made_to(self, tags: Iterable[str]) -> tuple[str, ...]:
        """The tags of a URL afterwards; the old ones first.

        >>> TagChange(add=("c",), remove=("a",)).made_to(("a", "b"))
        ('b', 'c')
        """
        remaining = [tag for tag in tags if tag not in self.remove]
        return tuple([*remaining, *(tag for tag in self.add if tag not in remaining)][:MOST_TAGS])


def change_of(words: Iterable[str]) -> TagChange:
    """A change as people write it: `+tag`, `-tag`. Raises `UsageError` for what is none.

    >>> change_of(["+good", "-bad"])
    TagChange(add=('good',), remove=('bad',))
    """
    add: list[str] = []
    remove: list[str] = []
    for word in words:
        sign, tag = word[:1], word[1:]
        if sign not in {"+", "-"}:
            raise UsageError(f"'{word}' is not a change of tags; write +TAG to add one, -TAG to remove one")
        (add if sign == "+" else remove).append(checked_tag(tag))
    if not add and not remove:
        raise UsageError("name tags to add or remove: +TAG, -TAG")
    return TagChange(add=tuple(add), remove=tuple(remove))


def is_tag(text: str) -> bool:
    """Return whether a text can be a tag.

    >>> is_tag("lang=de"), is_tag("two words")
    (True, False)
    """
    return 0 < len(text) <= LONGEST_TAG and text.isprintable() and not {" ", ","} & set(text)


def metadata_and_tags(metadata: Mapping[str, Sequence[str]]) -> tuple[str | None, tuple[str, ...] | None]:
    """A client's metadata: JSON without the tags, and the tags. What can be no tag stays in the JSON.

    >>> metadata_and_tags({"tags": ["news", "breaking news", "lang=de"], "size": ["9"]})
    ('{"tags":["breaking news"],"size":["9"]}', ('news', 'lang=de'))
    """
    texts = list(dict.fromkeys(metadata.get(TAGS, ())))
    tags = tuple(text for text in texts if is_tag(text))[:MOST_TAGS]
    others = {**metadata, TAGS: [text for text in texts if text not in tags]}
    remaining = {name: values for name, values in others.items() if name != TAGS or values}
    return msgspec.json.encode(remaining).decode() if remaining else None, tags if TAGS in metadata else None


def checked_tag(tag: str) -> str:
    """The tag, if it can be one. Raises `UsageError` otherwise."""
    if not is_tag(tag):
        raise UsageError(
            f"'{tag[:LONGEST_TAG]}' is not a tag: 1 to {LONGEST_TAG} characters, no space, no comma"
        )
    return tag


class Tagging:
    """Changes tags of known URLs. One for each thread."""

    def __init__(self, session: Session, *, same_url: Callable[[str, str], bool]) -> None:
        self._session = session
        self._same_url = same_url
        self._lanes = TagSets(session)
        self._buckets: int = read_buckets(session)

    def tags(self, host: str, crawl: int, url: str, key: str) -> tuple[str, ...] | None:
        """The tags of one URL; None where it is not known."""
        found = self._one(host, crawl, url, key)
        return None if found is None else tuple(found[3])

    def setters(self, host: str, crawl: int, url: str, key: str) -> list[TagSetter]:
        """Return who gave one URL its tags, without tags by rules or content."""
        found = self._one(host, crawl, url, key)
        if found is None:
            return []
        place = {"bucket": self._bucket(found[0]), "qid": found[0], "crawl": crawl, "uid": found[1]}
        return [TagSetter(*row) for row in ask(self._session, "setters", **place) if row[0] in found[3]]

    def change(self, host: str, crawl: int, url: str, key: str, change: TagChange, by: str) -> bool:
        """Change the tags of one URL. False: it is not known. May be done twice."""
        for _ in range(_TRIES):
            found = self._one(host, crawl, url, key)
            if found is None:
                return False
            if change.made_to(found[3]) == tuple(found[3]):
                break
            self._apply(self._bucket(found[0]), crawl, [found], change, by)
        return True

    def change_all(self, pattern: str, crawl: int, change: TagChange, by: str) -> int:
        """Change the tags of all URLs of a crawl that fit a pattern (`*` stands for anything).

        Reads all URLs of the crawl, some at a time; returns how many changed. May be done twice.
        """
        changed = 0
        for bucket in range(self._buckets):
            for page in self._pages(bucket, crawl, _like(pattern)):
                changed += self._apply(bucket, crawl, page, change, by)
        return changed

    def _one(self, host: str, crawl: int, url: str, key: str) -> tuple[Any, ...] | None:
        qid = host_hash(host)
        for salt in range(_MOST_SALTS):
            uid = hash64(key) if salt == 0 else hash64(salted(key, salt))
            place = {"bucket": self._bucket(qid), "qid": qid, "crawl": crawl, "uid": uid}
            found = ask(self._session, "find_one", **place)
            if not found:
                return None
            if found[0][2] == url or self._same_url(found[0][2], url):
                return found[0]
        return None

    def _pages(self, bucket: int, crawl: int, like: str) -> Iterator[list[tuple[Any, ...]]]:
        query = {"bucket": bucket, "crawl": crawl, "pattern": like, "limit": _AT_ONCE}
        after = (_FIRST, _FIRST)
        while True:
            page = ask(self._session, "find_by_pattern", **query, after_qid=after[0], after_uid=after[1])
            if not page:
                return
            yield page
            after = (page[-1][0], page[-1][1])

    def _apply(
        self, bucket: int, crawl: int, found: list[tuple[Any, ...]], change: TagChange, by: str
    ) -> int:
        news = []
        for qid, uid, _, old in found:
            tags = change.made_to(old)
            if tags != tuple(old):
                news.append(Retagged(qid, crawl, uid, tuple(old), tags, self._lanes.number(tags)))
        if not news:
            return 0
        return self._session.transact(partial(self._retag, bucket, news, change, by))

    def _retag(self, bucket: int, news: list[Retagged], change: TagChange, by: str, cursor: Cursor) -> int:
        hosts = {"bucket": bucket, "qid": sorted({url.qid for url in news}), "now": self._session.now()}
        done_by(cursor, "lock_hosts", hosts)
        changed = retag(cursor, bucket, news)
        urls = {
            "bucket": bucket,
            "qid": [url.qid for url in news],
            "crawl": [url.crawl for url in news],
            "uid": [url.uid for url in news],
        }
        said = {"add": list(change.add), "remove": list(change.remove), "by": storable(by[:LONGEST_TAG])}
        done_by(cursor, "note_setters", {**urls, **said, "now": hosts["now"]})
        done_by(cursor, "forget_setters", {**urls, **said})
        refresh(cursor, hosts)
        return changed

    def _bucket(self, qid: int) -> int:
        return bucket_of(qid, self._buckets)


def is_pattern(text: str) -> bool:
    """Return whether a text stands for many URLs."""
    return "*" in text


def _like(pattern: str) -> str:
    r"""The pattern as SQL has it.

    >>> _like("http://a.example/100%_*")
    'http://a.example/100\\%\\_%'
    """
    escaped = pattern.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return escaped.replace("*", "%")
