"""Links with the words they stand among: gathered from what visits found, written and read back."""

from collections.abc import Container, Iterable, Sequence
from typing import Any

import msgspec

from tamias.crawl.plan.admit import Admission, Reference, resolved, words_of
from tamias.crawl.strategy.scoring import SQL, Asked, Seen
from tamias.database.columns import Texts, storable
from tamias.database.connect import Cursor
from tamias.frontier.due.rescore import Place, place_of
from tamias.frontier.keys import hash64
from tamias.model.finding import Words

MOST_OF_A_PAGE = 5000
"""Links kept of one page; the others are followed like any, but not kept."""
LONGEST_WORDS = 200
LONGEST_LANGUAGE = 35
MOST_COUNT = 2**31 - 1
MOST_TO_A_URL = 50
"""Links by which a known URL is scored anew."""


class Sourced(msgspec.Struct, frozen=True):
    """Links of one document, and what is known of the document."""

    reference: Reference
    url: str
    score: float | None = None
    quads: int | None = None
    host: str = ""
    """Of the document, where it is known."""


class LinkTarget(msgspec.Struct):
    """A URL that links of this batch lead to."""

    url: str
    key: str
    host: str
    depth: int
    crawl: int
    tags: tuple[str, ...]
    links: dict[str, Seen] = msgspec.field(default_factory=dict)
    """By the page they stand on."""

    def asked(self) -> Asked:
        """As a strategy is asked about it."""
        return Asked(
            url=self.url,
            host=self.host,
            depth=self.depth,
            crawl=self.crawl,
            tags=self.tags,
            links=list(self.links.values()),
        )


Targets = dict[tuple[int, str], LinkTarget]
"""By crawl and key."""


def gather(
    found: Iterable[Sourced], admission: Admission, fresh: Container[tuple[int, str]], not_of: Sequence[int]
) -> Targets:
    """Where links lead: to `fresh` items, or to what is known. Those of a kind have an order of their own."""
    targets: Targets = {}
    for each in found:
        reference = each.reference
        if reference.kind is not None or reference.score is not None or reference.crawl in not_of:
            continue
        words = words_of(reference)
        for text in reference.references[:MOST_OF_A_PAGE]:
            url = resolved(text, reference.base)
            if url is None:
                continue
            key = admission.key(url)
            if (reference.crawl, key) not in fresh and not admission.is_known(url, reference.crawl):
                continue
            target = targets.get((reference.crawl, key))
            if target is None:
                host = admission.queue(url)
                target = LinkTarget(url, key, host, reference.depth, reference.crawl, reference.tags)
                targets[reference.crawl, key] = target
            if text in words or each.url not in target.links:
                target.links[each.url] = seen_link(words.get(text), each.url, each.score, each.quads)
    return targets


def write_links(cursor: Cursor, bucket: int, targets: Sequence[tuple[Place, LinkTarget]], now: int) -> None:
    """Keeps the links to some URLs of a bucket."""
    rows = [
        (place, hash64(source), target.url, seen)
        for place, target in sorted(targets, key=lambda pair: pair[0])
        for source, seen in target.links.items()
    ]
    if rows:
        cursor.execute(SQL["put_links"].text, {"bucket": bucket, "now": now, **_columns(rows)})


def read_links(cursor: Cursor, bucket: int, places: Sequence[Place]) -> list[list[Seen]]:
    """The links that are kept to each of some URLs."""
    asked = {
        "bucket": bucket,
        "qid": [place[0] for place in places],
        "crawl": [place[1] for place in places],
        "uid": [place[2] for place in places],
        "each": MOST_TO_A_URL,
    }
    found: list[list[Seen]] = [[] for _ in places]
    names = (
        "anchor",
        "context_left",
        "context_right",
        "count",
        "language",
        "from_url",
        "from_score",
        "from_quads",
    )
    for place, *told in cursor.execute(SQL["links_to"].text, asked).fetchall():
        found[place - 1].append(Seen(**dict(zip(names, told, strict=True))))
    return found


def placed(targets: Iterable[LinkTarget], buckets: int) -> dict[int, list[tuple[Place, LinkTarget]]]:
    """The places of URLs, by bucket."""
    by_bucket: dict[int, list[tuple[Place, LinkTarget]]] = {}
    for target in targets:
        bucket, place = place_of(target.host, target.crawl, target.key, buckets)
        by_bucket.setdefault(bucket, []).append((place, target))
    return by_bucket


def seen_link(words: Words | None, url: str, score: float | None = None, quads: int | None = None) -> Seen:
    """A link on a page, as a strategy is told of it. Words may come from elsewhere, so that they are cut."""
    if words is None:
        return Seen(from_url=url, from_score=score, from_quads=quads)
    return Seen(
        anchor=storable(words.anchor[:LONGEST_WORDS]),
        context_left=storable(words.left[-LONGEST_WORDS:]),
        context_right=storable(words.right[:LONGEST_WORDS]),
        count=max(1, min(words.count, MOST_COUNT)),
        language=storable(words.language[:LONGEST_LANGUAGE]) if words.language else None,
        from_url=url,
        from_score=score,
        from_quads=quads,
    )


def _columns(rows: Sequence[tuple[Place, int, str, Seen]]) -> dict[str, Any]:
    return {
        "qid": [place[0] for place, _, _, _ in rows],
        "crawl": [place[1] for place, _, _, _ in rows],
        "uid": [place[2] for place, _, _, _ in rows],
        "from_uid": [from_uid for _, from_uid, _, _ in rows],
        "count": [seen.count for _, _, _, seen in rows],
        "from_score": [seen.from_score for _, _, _, seen in rows],
        "from_quads": [seen.from_quads for _, _, _, seen in rows],
        "language": Texts(seen.language for _, _, _, seen in rows),
        "anchor": Texts(seen.anchor for _, _, _, seen in rows),
        "context_left": Texts(seen.context_left for _, _, _, seen in rows),
        "context_right": Texts(seen.context_right for _, _, _, seen in rows),
        "from_url": Texts(seen.from_url for _, _, _, seen in rows),
        "to_url": Texts(to_url for _, _, to_url, _ in rows),
    }
