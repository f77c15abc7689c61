"""Between what visits found and the frontier: new URLs get the scores of their crawl's active strategy."""

import logging
import time
from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.crawl.strategy.links import LinkTarget, Sourced, Targets, gather, placed, write_links
from tamias.crawl.strategy.scale import scale_for, scale_of, scaled, widen
from tamias.crawl.strategy.scoring import Asked, Broken, Scores, ask
from tamias.crawl.strategy.versions import in_force, note_broken, note_quick
from tamias.database.connect import Cursor, Session
from tamias.frontier.due.rescore import Place, set_scores
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.item import Item
from tamias.settings import StrategySettings

LOOK_SECONDS = 1.0
"""How long a strategy may hold that is no longer in force."""
BATCH = 1000

_log = logging.getLogger(__name__)


class Strategist:
    """Scores and keeps links. Used by one thread, that of the database."""

    def __init__(
        self,
        session: Session,
        frontier: PostgresFrontier,
        admission: Admission,
        settings: StrategySettings,
        *,
        not_of: Sequence[int] = (),
    ) -> None:
        """`not_of` are crawls whose order is not the strategy's business."""
        self._session = session
        self._frontier = frontier
        self._admission = admission
        self._settings = settings
        self._not_of = tuple(not_of)
        self._looked_at = float("-inf")
        self._numbers: dict[int, int] = {}
        self._was_slow: set[int] = set()
        self._targets: Targets = {}
        self._known: list[tuple[LinkTarget, Scores]] = []

    def scored(self, items: list[Item], found: Iterable[Sourced]) -> list[Item]:
        """The items with the scores of their crawls' strategies, if any. To be followed by `keep`."""
        self._targets, self._known = {}, []
        crawls = self._in_force()
        if not crawls and not self._settings.links:
            return items
        fresh = {(item.crawl, item.key): item for item in items}
        if self._settings.links:
            self._targets = gather(found, self._admission, fresh, self._not_of)
        ahead: dict[tuple[int, str], Item] = {}
        for crawl in crawls:
            ahead |= self._scored_of(crawl, fresh)
        return [ahead.get((item.crawl, item.key), item) for item in items] if ahead else items

    def _scored_of(self, crawl: int, fresh: dict[tuple[int, str], Item]) -> dict[tuple[int, str], Item]:
        """The new items of a crawl with their scores; those of known URLs are remembered for `keep`."""
        ours = {place: item for place, item in fresh.items() if item.crawl == crawl and self._is_ours(item)}
        known = [
            target for place, target in self._targets.items() if place[0] == crawl and place not in fresh
        ]
        scores = self._scores(
            crawl, [self._asked(*each) for each in ours.items()] + [each.asked() for each in known]
        )
        if not scores:
            return {}
        self._known += zip(known, scores[len(ours) :], strict=True)
        now = self._frontier.now()
        return {place: self._moved(ours[place], said, now) for place, said in zip(ours, scores, strict=False)}

    def take(self, targets: Targets) -> None:
        """Keeps links that somebody inserted, and lifts the known URLs they lead to."""
        self._targets, self._known = targets, []
        for crawl in self._in_force():
            self._scored_of(crawl, {})
        self.keep()

    def keep(self) -> None:
        """After the items were put: keeps their links, and lifts known URLs that a better one leads to."""
        for bucket, targets in placed(self._targets.values(), self._frontier.buckets).items():
            for start in range(0, len(targets), BATCH):
                part = targets[start : start + BATCH]
                self._session.transact(partial(self._write, bucket, part))
        lifted = {id(target): said.score for target, said in self._known if said.score is not None}
        better = (target for target, _ in self._known if id(target) in lifted)
        for bucket, targets in placed(better, self._frontier.buckets).items():
            scores = {place: lifted[id(target)] for place, target in targets}
            self._session.transact(partial(self._lift, bucket, scores))
        self._targets, self._known = {}, []

    def _write(self, bucket: int, targets: Sequence[tuple[Place, LinkTarget]], cursor: Cursor) -> None:
        write_links(cursor, bucket, targets, self._frontier.now())

    def _lift(self, bucket: int, scores: dict[Place, float], cursor: Cursor) -> None:
        now, head_start = self._frontier.now(), int(self._settings.head_start * 1000)
        set_scores(cursor, bucket, scores, now, head_start_ms=head_start, only_up=True)

    def _is_ours(self, item: Item) -> bool:
        return item.score <= 1 and item.due is None and item.depth > 0 and item.crawl not in self._not_of

    def _asked(self, place: tuple[int, str], item: Item) -> Asked:
        target = self._targets.get(place)
        links = list(target.links.values()) if target else []
        return Asked(
            url=item.url, host=item.host, depth=item.depth, crawl=item.crawl, tags=item.tags, links=links
        )

    def _moved(self, item: Item, said: Scores, now: int) -> Item:
        """With its score, and due so much earlier: the lease looks at the first due of a host only."""
        if said.score is None:
            return item
        due = now - int(said.score * self._settings.head_start * 1000)
        return msgspec.structs.replace(item, score=said.score, due=due)

    def _scores(self, crawl: int, asked: list[Asked]) -> list[Scores]:
        """One for each that was asked for; none at all when no strategy could say."""
        found: list[Scores] = []
        while len(found) < len(asked) and crawl in self._numbers:
            part = asked[len(found) : len(found) + BATCH]
            number = self._numbers[crawl]
            said = ask(self._session, number, part, self._settings.seconds)
            self._session.transact(partial(self._judge, crawl, number, said))
            if isinstance(said, Broken):
                found = []
                if said.slow:
                    return found
            else:
                found += said
        if not found or len(found) < len(asked) or crawl not in self._numbers:
            return []
        return self._session.transact(partial(self._scaled, self._numbers[crawl], found))

    def _scaled(self, number: int, said: list[Scores], cursor: Cursor) -> list[Scores]:
        widen(cursor, number, scale_for(each.score for each in said))
        return scaled(said, scale_of(cursor, number))

    def _judge(self, crawl: int, number: int, said: list[Scores] | Broken, cursor: Cursor) -> None:
        if number in self._was_slow and not isinstance(said, Broken):
            note_quick(cursor, number)
        if isinstance(said, Broken) and said.slow:
            self._was_slow.add(number)
        else:
            self._was_slow.discard(number)
        if isinstance(said, Broken):
            out = note_broken(cursor, number, said)
            self._numbers = in_force(cursor)
            follows = f"strategy {self._numbers[crawl]}" if crawl in self._numbers else "the usual order"
            then = f"it is out of force, {follows} holds" if out else "these URLs keep the usual score"
            _log.warning("strategy %d: %s; %s", number, said.what, then)

    def _in_force(self) -> list[int]:
        """The crawls that have a strategy."""
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._numbers = self._session.transact(in_force)
            self._looked_at = time.monotonic()
        return list(self._numbers)
