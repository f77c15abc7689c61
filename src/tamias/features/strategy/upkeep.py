"""Upkeep of strategies beside the workers: take what people inserted with SQL, and rescore known URLs."""

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tamias.crawl.plan.admit import Admission, usual_score
from tamias.database.connect import Cursor, Session
from tamias.features.strategy.links import (
    FIRST_PLACE,
    LONGEST_LANGUAGE,
    LONGEST_WORDS,
    Place,
    Targets,
    Unvisited,
    add_links,
    place_of,
    read_unvisited,
    set_scores,
)
from tamias.features.strategy.scores import (
    SQL,
    SeenLink,
    StrategyFailure,
    UrlToScore,
    ask,
    scale_for,
    scale_of,
    scale_scores,
    widen,
)
from tamias.features.strategy.strategist import Strategist
from tamias.features.strategy.versions import read_active, record_failure, record_success
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import UrlError
from tamias.model.item import Item
from tamias.model.url import fetch_url
from tamias.settings import Settings, StrategySettings

BATCH = 1000

_log = logging.getLogger(__name__)


class Rescorer:
    """Walk over the URLs of a crawl after each change, by key. Several may run at once."""

    def __init__(self, session: Session, frontier: PostgresFrontier, settings: StrategySettings) -> None:
        self._session = session
        self._frontier = frontier
        self._settings = settings

    def step(self) -> bool:
        """Rescore some URLs; return false when there is nothing (more) to do."""
        return self._session.transact(self._step)

    def _step(self, cursor: Cursor) -> bool:
        row = cursor.execute(SQL["read_rescoring"].text).fetchone()
        if row is None:
            return False
        crawl, bucket, place = row[0], row[1], (row[2], row[3], row[4])
        now, number = self._frontier.now(), read_active(cursor).get(crawl)
        found, last = read_unvisited(cursor, bucket, place, now, of_crawl=crawl, most=BATCH)
        scores = self._score(cursor, bucket, number, found)
        if scores is None:
            return True
        if isinstance(scores, StrategyFailure):
            assert number is not None
            if record_failure(cursor, number, scores):
                _log.warning("strategy %d: %s; it is deactivated", number, scores.what)
                return True
            scores = {}
        elif number is not None:
            record_success(cursor, number)
        head_start = 0 if number is None else int(self._settings.head_start * 1000)
        set_scores(cursor, bucket, scores, now, head_start_ms=head_start, only_up=False)
        self._write_position(cursor, crawl, bucket, last)
        return True

    def _score(
        self, cursor: Cursor, bucket: int, number: int | None, found: list[Unvisited]
    ) -> dict[Place, float] | StrategyFailure | None:
        """Return scores by place, or None when the scale has grown and all URLs are scored again."""
        scores = {each.place: usual_score(each.depth) for each in found}
        if number is None or not found:
            return scores
        said = ask(self._session, number, add_links(cursor, bucket, found), self._settings.seconds)
        if isinstance(said, StrategyFailure):
            return said
        if widen(cursor, number, scale_for(each.score for each in said)):
            return None
        said = scale_scores(said, scale_of(cursor, number))
        pairs = zip(found, said, strict=True)
        return scores | {each.place: own.score for each, own in pairs if own.score is not None}

    def _write_position(self, cursor: Cursor, of_crawl: int, bucket: int, last: Place | None) -> None:
        if last is None:
            bucket, last = bucket + 1, FIRST_PLACE
        done = bucket >= self._frontier.buckets
        qid, crawl, uid = last
        where = {"done": done, "bucket": 0 if done else bucket, "qid": qid, "crawl": crawl, "uid": uid}
        cursor.execute(SQL["write_rescoring"].text, where | {"of_crawl": of_crawl})


MOST = 1000
MOST_SECONDS = 0.25
"""The longest time of a step: others wait for the same session."""


class InboxEntry(NamedTuple):
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


class StrategyUpkeep:
    """The steps for one crawl, called again and again in the database's thread."""

    def __init__(
        self,
        session: Session,
        frontier: PostgresFrontier,
        settings: Settings,
        seeds: Sequence[str],
        crawl: int,
    ) -> None:
        """Take the `seeds` as far as the scope needs them."""
        self._crawl = crawl
        self._session = session
        self._frontier = frontier
        self._admission = Admission(settings, seeds)
        self._strategist = Strategist(session, frontier, self._admission, settings)
        self._rescorer = Rescorer(session, frontier, settings.strategy)

    def step(self) -> None:
        """Do some of what waits."""
        self._empty_inbox()
        end = time.monotonic() + MOST_SECONDS
        while self._rescorer.step() and time.monotonic() < end:
            pass

    def _empty_inbox(self) -> None:
        """Put the URLs and links that wait for the crawl. Two processes may do it at once."""
        wanted = {"most": MOST, "crawl": self._crawl}
        waiting = self._session.transact(
            lambda cursor: cursor.execute(SQL["read_inbox"].text, wanted).fetchall()
        )
        items: list[Item] = []
        links: Targets = {}
        taken: list[int] = []
        refused: list[tuple[int, str]] = []
        for entry in (InboxEntry(*row) for row in waiting):
            try:
                item = self._item(entry)
            except UrlError as error:
                refused.append((entry.number, str(error)))
                continue
            items.append(item)
            taken.append(entry.number)
            _add_link(links, item, entry)
        if items:
            self._frontier.put(items)
            self._strategist.take(links)
            self._session.transact(lambda cursor: cursor.execute(SQL["empty_inbox"].text, {"entry": taken}))
        if refused:
            words = {"entry": [entry for entry, _ in refused], "problem": [why for _, why in refused]}
            self._session.transact(lambda cursor: cursor.execute(SQL["refuse_entries"].text, words))

    def _item(self, entry: InboxEntry) -> Item:
        """Return the item of an entry. Raises `UrlError` with the reason why it cannot be one."""
        depth = self._depth(entry)
        url = fetch_url(entry.url)
        refusal = self._admission.refusal(url, depth)
        if refusal:
            raise UrlError(refusal)
        item = self._admission.item(url, depth, entry.crawl, tags=tuple(entry.tags or ()), score=entry.score)
        return msgspec.structs.replace(item, due=entry.due)

    def _depth(self, entry: InboxEntry) -> int:
        """Return the depth of an entry; that of a link is its page's and one (an unknown page is a seed)."""
        if entry.from_url is None:
            return entry.depth
        page = self._admission.item(fetch_url(entry.from_url), 0, entry.crawl)
        bucket, (qid, crawl, uid) = place_of(page.host, page.crawl, page.key, self._frontier.buckets)
        wanted = {"bucket": bucket, "qid": qid, "crawl": crawl, "uid": uid}
        row = self._session.transact(lambda cursor: cursor.execute(SQL["depth_of"].text, wanted).fetchone())
        return 1 + (int(row[0]) if row else 0)


def _add_link(links: Targets, item: Item, entry: InboxEntry) -> None:
    if entry.from_url is None:
        return
    target = links.setdefault(
        (item.crawl, item.key), UrlToScore(item.url, item.host, item.depth, item.crawl, item.tags)
    )
    source = fetch_url(entry.from_url)
    target.links[source] = SeenLink(
        anchor=entry.anchor and entry.anchor[:LONGEST_WORDS],
        context_left=entry.context_left and entry.context_left[-LONGEST_WORDS:],
        context_right=entry.context_right and entry.context_right[:LONGEST_WORDS],
        count=entry.times or 1,
        language=entry.language and entry.language[:LONGEST_LANGUAGE],
        from_url=source,
    )
