"""Links with the text around them, and unvisited URLs with their scores, in the database."""

from collections.abc import Container, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from tamias.archive.captures import count_buckets
from tamias.crawl.commit.link_put import LinkSource
from tamias.crawl.plan.admit import Admission, resolved, words_of
from tamias.database.columns import Texts, storable
from tamias.database.connect import Cursor, Session
from tamias.features.strategy.scores import SQL, SeenLink, UrlToScore, link_columns
from tamias.frontier.keys import bucket_of, hash64, host_hash
from tamias.frontier.queries import add_statements, done_by, refresh, rows_of
from tamias.model.finding import Words
from tamias.model.item import WATCH
from tamias.model.url import fetch_url
from tamias.settings import Settings

add_statements("tamias.features.strategy", "rescore.sql")
Place = tuple[int, int, int]
"""The key of a URL within its bucket: host, crawl, URL."""
_PLACE = ("qid", "crawl", "uid")
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
    place = dict(zip(_PLACE, after, strict=True))
    query = {"bucket": bucket, "now": now, "of_crawl": of_crawl, "most": most, **place}
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


def _columns(rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    return {name: [row[index] for row in rows] for index, name in enumerate(_PLACE)}


SAMPLE = 1000


def read_sample(session: Session, crawl: int) -> list[UrlToScore]:
    """Return some unvisited URLs of a crawl with their links."""
    now = session.now()
    found: list[UrlToScore] = []
    for bucket in range(count_buckets(session)):
        found += session.transact(partial(_read_some, crawl, bucket, SAMPLE - len(found), now))
        if len(found) >= SAMPLE:
            break
    return found


def describe_url(
    session: Session, settings: Settings, url: str, crawl: int, depth: int, link: SeenLink | None
) -> UrlToScore:
    """Return a URL with the given link, or with the stored ones. Raises `UrlError` if it is not a URL."""
    item = Admission(settings, ()).item(fetch_url(url), depth, crawl)
    bucket, place = place_of(item.host, item.crawl, item.key, count_buckets(session))
    if link:
        links = {link.from_url: link}
    else:
        (links,) = session.transact(lambda cursor: read_links(cursor, bucket, [place]))
    return UrlToScore(item.url, item.host, depth, item.crawl, links=links)


def _read_some(crawl: int, bucket: int, most: int, now: int, cursor: Cursor) -> list[UrlToScore]:
    found, _ = read_unvisited(cursor, bucket, FIRST_PLACE, now, of_crawl=crawl, most=most)
    return add_links(cursor, bucket, found)


MOST_OF_A_PAGE = 5000
"""Links stored of one page; the others are followed like any, but not stored."""
LONGEST_WORDS = 200
LONGEST_LANGUAGE = 35
MOST_COUNT = 2**31 - 1
MOST_TO_A_URL = 50
"""Links by which a known URL is scored again."""

Targets = dict[tuple[int, str], UrlToScore]
"""URLs that links of a batch lead to, by crawl and key."""


def gather(found: Iterable[LinkSource], admission: Admission, fresh: Container[tuple[int, str]]) -> Targets:
    """Return the targets of links that are `fresh` or known; kinds with an order of their own are not."""
    targets: Targets = {}
    for each in found:
        reference = each.reference
        if reference.kind is not None or reference.score is not None or reference.crawl == WATCH:
            continue
        words = words_of(reference)
        for text in reference.references[:MOST_OF_A_PAGE]:
            url = resolved(text, reference.base)
            if url is None:
                continue
            place = reference.crawl, admission.key(url)
            if place not in fresh and not admission.is_known(url, reference.crawl):
                continue
            target = targets.get(place)
            if target is None:
                host = admission.queue(url)
                target = UrlToScore(url, host, reference.depth, reference.crawl, reference.tags)
                targets[place] = target
            if text in words or each.url not in target.links:
                target.links[each.url] = seen_link(words.get(text), each)
    return targets


def seen_link(words: Words | None, source: LinkSource) -> SeenLink:
    """Return a link on a page with its text cut to what is stored: it may come from another machine."""
    link = SeenLink(from_url=source.url, from_score=source.score, from_quads=source.quads)
    if words is not None:
        link.anchor = storable(words.anchor[:LONGEST_WORDS])
        link.context_left = storable(words.left[-LONGEST_WORDS:])
        link.context_right = storable(words.right[:LONGEST_WORDS])
        link.count = max(1, min(words.count, MOST_COUNT))
        link.language = storable(words.language[:LONGEST_LANGUAGE]) if words.language else None
    return link


def group_by_bucket(targets: Targets, buckets: int) -> dict[int, list[tuple[Place, UrlToScore]]]:
    """Return targets with their places in the frontier, by bucket."""
    grouped: dict[int, list[tuple[Place, UrlToScore]]] = {}
    for (crawl, key), target in targets.items():
        bucket, place = place_of(target.host, crawl, key, buckets)
        grouped.setdefault(bucket, []).append((place, target))
    return grouped


def write_links(cursor: Cursor, bucket: int, targets: Sequence[tuple[Place, UrlToScore]], now: int) -> None:
    """Store the links to some URLs of a bucket."""
    rows = [
        (place, target.url, link)
        for place, target in sorted(targets, key=lambda pair: pair[0])
        for link in target.links.values()
    ]
    if not rows:
        return
    columns = link_columns([link for _, _, link in rows]) | {
        **_columns([place for place, _, _ in rows]),
        "from_uid": [hash64(link.from_url) for _, _, link in rows],
        "to_url": Texts(to_url for _, to_url, _ in rows),
    }
    cursor.execute(SQL["put_links"].text, {"bucket": bucket, "now": now, **columns})


def read_links(cursor: Cursor, bucket: int, places: Sequence[Place]) -> list[dict[str, SeenLink]]:
    """Return the stored links to each of some URLs."""
    wanted = {"bucket": bucket, "each": MOST_TO_A_URL, **_columns(places)}
    found: list[dict[str, SeenLink]] = [{} for _ in places]
    for place, *fields in cursor.execute(SQL["links_to"].text, wanted).fetchall():
        link = SeenLink(*fields)
        found[place - 1][link.from_url] = link
    return found


def add_links(cursor: Cursor, bucket: int, found: Sequence[Unvisited]) -> list[UrlToScore]:
    """Return known URLs of a bucket with the stored links to them."""
    links = read_links(cursor, bucket, [each.place for each in found])
    return [
        UrlToScore(each.url, each.host, each.depth, each.place[1], each.tags, seen)
        for each, seen in zip(found, links, strict=True)
    ]
