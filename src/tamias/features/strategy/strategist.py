"""The scorer of new URLs: between admission and put, it asks the active strategy of their crawl."""

import logging
import time
from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from tamias.crawl.commit.link_put import LinkSource
from tamias.crawl.plan.admit import Admission
from tamias.database.connect import Cursor, Session
from tamias.features.strategy.links import (
    Place,
    Targets,
    gather,
    group_by_bucket,
    place_of,
    set_scores,
    write_links,
)
from tamias.features.strategy.scores import (
    Scores,
    StrategyFailure,
    UrlToScore,
    ask,
    scale_for,
    scale_of,
    scale_scores,
    widen,
)
from tamias.features.strategy.versions import read_active, record_failure, record_success
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.item import WATCH, Item
from tamias.settings import Settings

LOOK_SECONDS = 1.0
"""The time after which a change of the active strategy is noticed."""
BATCH = 1000

_log = logging.getLogger(__name__)
_Fresh = dict[tuple[int, str], Item]


class Strategist:
    """Score new URLs and store links. Used by one thread, that of the database."""

    def __init__(
        self, session: Session, frontier: PostgresFrontier, admission: Admission, settings: Settings
    ) -> None:
        self._session = session
        self._frontier = frontier
        self._admission = admission
        self._settings = settings.strategy
        self._looked_at = float("-inf")
        self._numbers: dict[int, int] = {}
        self._was_slow: set[int] = set()
        self._targets: Targets = {}
        self._known: dict[tuple[int, str], float] = {}

    def score(self, items: list[Item], found: Iterable[LinkSource]) -> list[Item]:
        """Return the items with the scores of their crawls' strategies, if any; call `keep` after the put."""
        self._targets, self._known = {}, {}
        crawls = self._active_crawls()
        if not crawls and not self._settings.links:
            return items
        fresh = {(item.crawl, item.key): item for item in items}
        if self._settings.links:
            self._targets = gather(found, self._admission, fresh)
        scored: _Fresh = {}
        for crawl in crawls:
            scored |= self._score_crawl(crawl, fresh)
        return [scored.get((item.crawl, item.key), item) for item in items] if scored else items

    def take(self, targets: Targets) -> None:
        """Store links that somebody inserted, and raise the scores of the known URLs they lead to."""
        self._targets, self._known = targets, {}
        for crawl in self._active_crawls():
            self._score_crawl(crawl, {})
        self.keep()

    def keep(self) -> None:
        """Store the links to items that were put, and raise the scores of known URLs."""
        if not self._targets and not self._known:
            return
        for bucket, targets in group_by_bucket(self._targets, self._frontier.buckets).items():
            for start in range(0, len(targets), BATCH):
                part = targets[start : start + BATCH]
                self._session.transact(partial(self._write, bucket, part))
        raised: dict[int, dict[Place, float]] = {}
        for (crawl, key), score in self._known.items():
            bucket, place = place_of(self._targets[crawl, key].host, crawl, key, self._frontier.buckets)
            raised.setdefault(bucket, {})[place] = score
        for bucket, scores in raised.items():
            self._session.transact(partial(self._raise_scores, bucket, scores))
        self._targets, self._known = {}, {}

    def _score_crawl(self, crawl: int, fresh: _Fresh) -> _Fresh:
        """Return the new items of a crawl with their scores; `keep` writes those of known URLs."""
        ours = {place: item for place, item in fresh.items() if item.crawl == crawl and _takes_score(item)}
        known = [
            (place, target)
            for place, target in self._targets.items()
            if place[0] == crawl and place not in fresh
        ]
        urls = [self._describe(*each) for each in ours.items()]
        scores = self._ask(crawl, urls + [target for _, target in known])
        if not scores:
            return {}
        for (place, _), said in zip(known, scores[len(ours) :], strict=True):
            if said.score is not None:
                self._known[place] = said.score
        now = self._frontier.now()
        return {place: self._place(ours[place], said, now) for place, said in zip(ours, scores, strict=False)}

    def _write(self, bucket: int, targets: Sequence[tuple[Place, UrlToScore]], cursor: Cursor) -> None:
        write_links(cursor, bucket, targets, self._frontier.now())

    def _raise_scores(self, bucket: int, scores: dict[Place, float], cursor: Cursor) -> None:
        now, head_start = self._frontier.now(), int(self._settings.head_start * 1000)
        set_scores(cursor, bucket, scores, now, head_start_ms=head_start, only_up=True)

    def _describe(self, place: tuple[int, str], item: Item) -> UrlToScore:
        links = self._targets[place].links if place in self._targets else {}
        return UrlToScore(item.url, item.host, item.depth, item.crawl, item.tags, links)

    def _place(self, item: Item, said: Scores, now: int) -> Item:
        """Return an item with its score, and due earlier: the lease looks only at the first due of a host."""
        if said.score is None:
            return item
        due = now - int(said.score * self._settings.head_start * 1000)
        return msgspec.structs.replace(item, score=said.score, due=due)

    def _ask(self, crawl: int, urls: list[UrlToScore]) -> list[Scores]:
        """Return a score for each URL, or nothing when no strategy could score them."""
        found: list[Scores] = []
        while len(found) < len(urls) and crawl in self._numbers:
            part = urls[len(found) : len(found) + BATCH]
            number = self._numbers[crawl]
            said = ask(self._session, number, part, self._settings.seconds)
            self._session.transact(partial(self._judge, crawl, number, said))
            if isinstance(said, StrategyFailure):
                found = []
                if said.slow:
                    return found
            else:
                found += said
        if not found or len(found) < len(urls) or crawl not in self._numbers:
            return []
        return self._session.transact(partial(self._scale, self._numbers[crawl], found))

    def _scale(self, number: int, said: list[Scores], cursor: Cursor) -> list[Scores]:
        widen(cursor, number, scale_for(each.score for each in said))
        return scale_scores(said, scale_of(cursor, number))

    def _judge(self, crawl: int, number: int, said: list[Scores] | StrategyFailure, cursor: Cursor) -> None:
        if not isinstance(said, StrategyFailure):
            if number in self._was_slow:
                record_success(cursor, number)
            self._was_slow.discard(number)
            return
        (self._was_slow.add if said.slow else self._was_slow.discard)(number)
        out = record_failure(cursor, number, said)
        self._numbers = read_active(cursor)
        follows = f"strategy {self._numbers[crawl]}" if crawl in self._numbers else "the default order"
        then = f"it is deactivated, {follows} holds" if out else "these URLs keep the default score"
        _log.warning("strategy %d: %s; %s", number, said.what, then)

    def _active_crawls(self) -> list[int]:
        """Return the crawls that have a strategy."""
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._numbers = self._session.transact(read_active)
            self._looked_at = time.monotonic()
        return list(self._numbers)


def _takes_score(item: Item) -> bool:
    return item.score <= 1 and item.due is None and item.depth > 0 and item.crawl != WATCH
