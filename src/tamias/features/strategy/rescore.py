"""New scores for URLs that were never visited, and new classes for their queues and hosts."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tamias.database.connect import Cursor
from tamias.frontier.keys import bucket_of, hash64, host_hash
from tamias.frontier.queries import add_statements, done_by, refresh, rows_of

add_statements("tamias.features.strategy", "rescore.sql")
Place = tuple[int, int, int]
"""The key of a URL within its bucket: host, crawl, URL."""
FIRST_PLACE: Place = (-(2**63), 0, 0)


class Unvisited(msgspec.Struct, frozen=True):
    """A URL that waits for its first visit."""

    place: Place
    url: str
    depth: int
    tags: tuple[str, ...]
    host: str


def place_of(host: str, crawl: int, key: str, buckets: int) -> tuple[int, Place]:
    """Bucket and key of a URL (of the first one, where two share a number)."""
    qid = host_hash(host)
    return bucket_of(qid, buckets), (qid, crawl, hash64(key))


def read_unvisited(
    cursor: Cursor, bucket: int, after: Place, now: int, *, of_crawl: int, most: int
) -> tuple[list[Unvisited], Place | None]:
    """Return some URLs of a crawl after a place, and where to go on; None at the end of the bucket."""
    query = {
        "bucket": bucket,
        "now": now,
        "of_crawl": of_crawl,
        "most": most,
        **_columns([after], single=True),
    }
    rows = rows_of(cursor, "read_unvisited", query)
    found = [
        Unvisited((qid, crawl, uid), url, depth, tuple(tags or ()), host)
        for qid, crawl, uid, url, depth, tags, host, wanted in rows
        if wanted
    ]
    last = rows[-1] if len(rows) == most else None
    return found, None if last is None else (last[0], last[1], last[2])


def set_scores(
    cursor: Cursor, bucket: int, scores: dict[Place, float], now: int, *, head_start_ms: int, only_up: bool
) -> int:
    """Return how many changed. A score chooses between hosts by class, within one by due time."""
    query = {"bucket": bucket, "now": now, "head_start": float(head_start_ms), "only_up": only_up}
    places = sorted(scores)
    offered = {**query, **_columns(places), "score": [float(scores[place]) for place in places]}
    outdated = sorted(rows_of(cursor, "find_outdated", offered))
    if not outdated:
        return 0
    changed = {**query, **_columns(outdated), "score": [float(row[3]) for row in outdated]}
    hosts = {"bucket": bucket, "now": now, "qid": sorted({row[0] for row in outdated})}
    done_by(cursor, "lock_hosts", hosts)
    count = done_by(cursor, "set_scores", changed)
    refresh(cursor, hosts)
    return count


def _columns(rows: Sequence[tuple[Any, ...]], *, single: bool = False) -> dict[str, Any]:
    names = ("qid", "crawl", "uid")
    if single:
        return dict(zip(names, rows[0], strict=True))
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}
