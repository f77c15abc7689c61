"""The counts of URLs that each block list refused, in the database; workers add to them in batches."""

from collections.abc import Mapping

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

_SQL = statements("tamias.filters", "blocked.sql")


class Blocked(msgspec.Struct, frozen=True):
    """The count of URLs that one list refused: links, seeds, and known URLs when their turn came."""

    list: str
    urls: int
    latest: int
    """Milliseconds UTC of the last count."""


def count_blocked(session: Session, counts: Mapping[str, int]) -> None:
    """Add to the counts."""
    if not counts:
        return
    names = sorted(counts)
    added = {"list": names, "urls": [counts[name] for name in names], "now": session.now()}
    session.transact(lambda cursor: _do(cursor, added))


def blocked_figures(session: Session) -> list[Blocked]:
    """Return all lists that kept something out, the busiest first."""
    return [Blocked(*row) for row in session.fetch_all(_SQL["blocked_figures"])]


def _do(cursor: Cursor, added: dict[str, object]) -> None:
    cursor.execute(_SQL["count_blocked"].text, added)
