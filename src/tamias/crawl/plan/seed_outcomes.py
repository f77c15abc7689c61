"""Outcomes of the seeds of a crawl: whether any of them could be fetched, and why not."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.put import by_bucket, numbered, url_columns
from tamias.model.capture import Outcome
from tamias.model.item import Item

MOST_SHOWN = 5
"""Seeds that are named when none could be fetched."""
_FETCHED = (Outcome.NEW, Outcome.OK, Outcome.UNCHANGED)
"""New is what was had from elsewhere, as where a redirect led; nothing is left to do for it."""
_SQL = statements("tamias.crawl.plan", "crawl.sql")


class SeedState(msgspec.Struct, frozen=True):
    """State of a seed in the frontier, after its latest visit."""

    url: str
    outcome: Outcome
    reason: str
    done: bool
    """Whether it will not be visited again as things are."""
    cut: int
    """Bits of `tamias.model.cut`."""


def unfetched_seeds(
    session: Session, buckets: int, crawl: int, items: Sequence[Item], *, others_fetched: bool
) -> list[SeedState]:
    """Return some seeds if none could be fetched, else nothing; without items, look at all seeds.

    `others_fetched`: a skipped seed is then taken for had, as a part of a dataset that was copied as a whole.
    """
    name, queries = "outcomes_of_seeds", [{"bucket": bucket, "crawl": crawl} for bucket in range(buckets)]
    if items:
        name, queries = "states_of", _by_bucket(buckets, items)
    found = _read(session, name, queries, MOST_SHOWN)
    fetched = (*_FETCHED, Outcome.SKIPPED) if others_fetched else _FETCHED
    return [] if any(each.outcome in fetched for each in found) else found[:MOST_SHOWN]


def seed_states(session: Session, buckets: int, items: Sequence[Item]) -> dict[str, SeedState]:
    """Return those of the seeds that are known, by their URLs."""
    return {each.url: each for each in _read(session, "states_of", _by_bucket(buckets, items), None)}


def _by_bucket(buckets: int, items: Sequence[Item]) -> list[dict[str, Any]]:
    parts = by_bucket(numbered(items, 0)[0], buckets).items()
    return [{"bucket": bucket, **url_columns(part, 0)} for bucket, part in parts]


def _read(session: Session, name: str, queries: list[dict[str, Any]], most: int | None) -> list[SeedState]:
    def read(cursor: Cursor) -> list[SeedState]:
        found = (cursor.execute(_SQL[name].text, {**words, "most": most}) for words in queries)
        return [SeedState(url, Outcome(status), *more) for rows in found for url, status, *more in rows]

    return session.transact(read)
