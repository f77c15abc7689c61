"""Scores known URLs anew after the strategy has changed: some at a time, by whoever looks after the crawl."""

import logging
from collections.abc import Sequence

from tamias.crawl.plan.admit import usual_score
from tamias.crawl.strategy.links import read_links
from tamias.crawl.strategy.scale import scale_for, scale_of, scaled, widen
from tamias.crawl.strategy.scoring import SQL, Asked, Broken, Scores, ask
from tamias.crawl.strategy.versions import in_force, note_broken, note_quick
from tamias.database.connect import Cursor, Session
from tamias.frontier.due.rescore import FIRST_PLACE, Place, Unvisited, read_unvisited, set_scores
from tamias.frontier.postgres import PostgresFrontier
from tamias.settings import StrategySettings

BATCH = 1000

_log = logging.getLogger(__name__)


class Rescoring:
    """Goes through a crawl's URLs after each change, in the order of their keys. Several may run at once."""

    def __init__(
        self,
        session: Session,
        frontier: PostgresFrontier,
        settings: StrategySettings,
    ) -> None:
        self._session = session
        self._frontier = frontier
        self._settings = settings

    def step(self) -> bool:
        """Looks at some URLs; false when there is nothing (more) to do."""
        return self._session.transact(self._step)

    def _step(self, cursor: Cursor) -> bool:
        row = cursor.execute(SQL["read_rescoring"].text).fetchone()
        if row is None:
            return False
        crawl, bucket, place = row[0], row[1], (row[2], row[3], row[4])
        now, number = self._frontier.now(), in_force(cursor).get(crawl)
        found, last = read_unvisited(cursor, bucket, place, now, of_crawl=crawl, most=BATCH)
        scores = self._scores(cursor, bucket, number, found)
        if scores is None:
            return True
        if isinstance(scores, Broken):
            assert number is not None
            if note_broken(cursor, number, scores):
                _log.warning("strategy %d: %s; it is out of force", number, scores.what)
                return True
            scores = {}
        elif number is not None:
            note_quick(cursor, number)
        head_start = 0 if number is None else int(self._settings.head_start * 1000)
        set_scores(cursor, bucket, scores, now, head_start_ms=head_start, only_up=False)
        self._note(cursor, crawl, bucket, last)
        return True

    def _scores(
        self, cursor: Cursor, bucket: int, number: int | None, found: list[Unvisited]
    ) -> dict[Place, float] | Broken | None:
        """None when all is to begin anew, on a wider scale."""
        usual = {each.place: usual_score(each.depth) for each in found}
        if number is None or not found:
            return usual
        said = ask(self._session, number, sample(cursor, bucket, found), self._settings.seconds)
        if isinstance(said, Broken):
            return said
        if widen(cursor, number, scale_for(each.score for each in said)):
            return None
        said = scaled(said, scale_of(cursor, number))
        return {
            each.place: _chosen(score, usual[each.place]) for each, score in zip(found, said, strict=True)
        }

    def _note(self, cursor: Cursor, of_crawl: int, bucket: int, last: Place | None) -> None:
        if last is None:
            bucket, last = bucket + 1, FIRST_PLACE
        done = bucket >= self._frontier.buckets
        where = {
            "of_crawl": of_crawl,
            "done": done,
            "bucket": 0 if done else bucket,
            "qid": last[0],
            "crawl": last[1],
            "uid": last[2],
        }
        cursor.execute(SQL["write_rescoring"].text, where)


def _chosen(said: Scores, usual: float) -> float:
    return usual if said.score is None else said.score


def sample(cursor: Cursor, bucket: int, found: Sequence[Unvisited]) -> list[Asked]:
    """Known URLs with the links that are kept of them, as a strategy is asked about them."""
    links = read_links(cursor, bucket, [each.place for each in found])
    return [
        Asked(url=each.url, host=each.host, depth=each.depth, crawl=each.place[1], tags=each.tags, links=seen)
        for each, seen in zip(found, links, strict=True)
    ]
