"""What a supervisor does beside: takes what people inserted, and scores known URLs anew."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.crawl.strategy.links import LONGEST_LANGUAGE, LONGEST_WORDS, LinkTarget, Targets
from tamias.crawl.strategy.rescoring import Rescoring
from tamias.crawl.strategy.scoring import SQL, Seen
from tamias.crawl.strategy.strategist import Strategist
from tamias.database.connect import Session
from tamias.frontier.due.rescore import place_of
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.service.state import WATCH
from tamias.model.errors import UrlError
from tamias.model.item import Item
from tamias.model.url import fetch_url
from tamias.settings import Settings

MOST = 1000


def empty_inbox(
    session: Session, frontier: PostgresFrontier, admission: Admission, strategist: Strategist, crawl: int
) -> int:
    """Puts the URLs and links that wait for a crawl; returns how many. Two may do it at once."""
    waiting = session.transact(
        lambda cursor: cursor.execute(SQL["read_inbox"].text, {"most": MOST, "crawl": crawl}).fetchall()
    )
    items: list[Item] = []
    links: Targets = {}
    taken: list[int] = []
    refused: list[tuple[int, str]] = []
    for row in waiting:
        entry = Entry(*row)
        try:
            item = _item(entry, admission, _depth(session, frontier, admission, entry))
        except UrlError as error:
            refused.append((entry.number, str(error)))
            continue
        items.append(item)
        taken.append(entry.number)
        _add_link(links, item, entry)
    if items:
        frontier.put(items)
        strategist.take(links)
        session.transact(lambda cursor: cursor.execute(SQL["empty_inbox"].text, {"entry": taken}))
    if refused:
        words = {"entry": [entry for entry, _ in refused], "problem": [why for _, why in refused]}
        session.transact(lambda cursor: cursor.execute(SQL["refuse_entries"].text, words))
    return len(waiting)


class Entry(NamedTuple):
    """A row of the inbox: a URL, or a link to one."""

    number: int
    url: str
    crawl: int
    depth: int
    score: float | None
    due: int | None
    tags: list[str] | None
    from_url: str | None
    anchor: str | None
    context_left: str | None
    context_right: str | None
    times: int | None
    language: str | None


def _item(entry: Entry, admission: Admission, depth: int) -> Item:
    """The item. Raises `UrlError` with the reason why it cannot be one."""
    url = fetch_url(entry.url)
    refusal = admission.refusal(url, depth)
    if refusal:
        raise UrlError(refusal)
    item = admission.item(url, depth, entry.crawl, tags=tuple(entry.tags or ()), score=entry.score)
    return msgspec.structs.replace(item, due=entry.due)


def _depth(session: Session, frontier: PostgresFrontier, admission: Admission, entry: Entry) -> int:
    """Of a URL as given; of a link's target, one more than its page's (an unknown page counts as a seed)."""
    if entry.from_url is None:
        return entry.depth
    page = admission.item(fetch_url(entry.from_url), 0, entry.crawl)
    bucket, (qid, crawl, uid) = place_of(page.host, page.crawl, page.key, frontier.buckets)
    asked = {"bucket": bucket, "qid": qid, "crawl": crawl, "uid": uid}
    row = session.transact(lambda cursor: cursor.execute(SQL["depth_of"].text, asked).fetchone())
    return 1 + (int(row[0]) if row else 0)


def _add_link(links: Targets, item: Item, entry: Entry) -> None:
    if entry.from_url is None:
        return
    target = links.setdefault(
        (item.crawl, item.key),
        LinkTarget(item.url, item.key, item.host, item.depth, item.crawl, item.tags),
    )
    source = fetch_url(entry.from_url)
    target.links[source] = Seen(
        anchor=entry.anchor and entry.anchor[:LONGEST_WORDS],
        context_left=entry.context_left and entry.context_left[-LONGEST_WORDS:],
        context_right=entry.context_right and entry.context_right[:LONGEST_WORDS],
        count=entry.times or 1,
        language=entry.language and entry.language[:LONGEST_LANGUAGE],
        from_url=source,
    )


MOST_SECONDS = 0.25
"""At one time: others wait for the same session."""


class Tending:
    """Called again and again, in the database's thread."""

    def __init__(
        self,
        session: Session,
        frontier: PostgresFrontier,
        settings: Settings,
        seeds: Sequence[str],
        crawl: int,
    ) -> None:
        """`seeds` as far as the scope needs them."""
        self._crawl = crawl
        self._session = session
        self._frontier = frontier
        self._admission = Admission(settings, seeds)
        self._strategist = Strategist(session, frontier, self._admission, settings.strategy, not_of=[WATCH])
        self._rescoring = Rescoring(session, frontier, settings.strategy)

    def step(self) -> None:
        """Does some of what is to do."""
        empty_inbox(self._session, self._frontier, self._admission, self._strategist, self._crawl)
        end = time.monotonic() + MOST_SECONDS
        while self._rescoring.step() and time.monotonic() < end:
            pass
