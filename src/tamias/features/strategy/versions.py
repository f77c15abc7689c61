"""The versions of strategies: applied, activated, rolled back. Each crawl has one that is active, or none."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.features.strategy.build import Trial, build, ready_strategies
from tamias.features.strategy.scores import SQL, StrategyFailure, UrlToScore, schema, widen
from tamias.model.errors import TamiasError, UsageError
from tamias.model.item import WATCH

MOST_SLOW = 3
"""Slow batches in a row after which a strategy counts as failed."""
RESTORE_SECONDS = 30.0
"""The time limit of building a version after a restore: it was tried when it was applied."""


class StrategyVersion(msgspec.Struct, frozen=True):
    """A version of a strategy."""

    number: int
    name: str
    state: str
    """`in force`, `replaced`, `refused` when it was applied, or `failed` while it was in force."""
    made_at: datetime
    in_force_at: datetime | None
    problem: str | None
    text: str
    crawl: int
    crawl_name: str
    """Empty when the crawl was deleted."""


def versions(session: Session) -> list[StrategyVersion]:
    """Return every version, the newest first."""
    rows = session.transact(lambda cursor: cursor.execute(SQL["versions"].text).fetchall())
    return [StrategyVersion(*row) for row in rows]


def read_active(cursor: Cursor) -> dict[int, int]:
    """Return the numbers of the active versions, by crawl."""
    return dict(cursor.execute(SQL["in_force"].text).fetchall())


def check(session: Session, text: str, sample: Sequence[UrlToScore], seconds: float) -> Trial:
    """Build and try a strategy, and leave nothing of it."""
    session.transact(ready_strategies)
    return build(session, 0, text, sample, seconds, keep=False)


def apply(
    session: Session, crawl: int, name: str, text: str, sample: Sequence[UrlToScore], seconds: float
) -> tuple[int, Trial]:
    """Activate a new version for a crawl. Raises `UsageError`, and changes nothing, if it does not work."""
    if crawl == WATCH:
        raise UsageError("watched resources keep their schedule; a strategy is for a crawl")
    session.transact(ready_strategies)
    given = {"crawl": crawl, "name": name, "text": text.replace("\0", "\N{REPLACEMENT CHARACTER}")}
    number = session.transact(lambda cursor: _number(cursor, "begin_version", given))
    assert number is not None
    try:
        tried = build(session, number, text, sample, seconds)
    except TamiasError as error:
        words = {"number": number, "problem": str(error)}
        session.transact(partial(_number, name="refuse", words=words))
        raise
    session.transact(lambda cursor: widen(cursor, number, tried.scale))
    session.transact(partial(_activate, crawl=crawl, number=number, again=False))
    return number, tried


def roll_back(session: Session, crawl: int, number: int | None) -> int:
    """Activate an earlier version of a crawl again: this one, or the one that was active before."""

    def work(cursor: Cursor) -> int:
        chosen = number if number is not None else _number(cursor, "in_force_before", {"crawl": crawl})
        if chosen is None:
            raise UsageError(
                "there is no earlier strategy; 'tamias strategy off' deactivates the present one"
            )
        if _activate(cursor, crawl, chosen, again=True) is None:
            raise UsageError(
                f"strategy {chosen} was never active in this crawl; 'tamias strategy list' shows all"
            )
        return chosen

    return session.transact(work)


def turn_off(session: Session, crawl: int) -> int | None:
    """Deactivate the strategy of a crawl; return its number, if there was one."""

    def work(cursor: Cursor) -> int | None:
        was = _number(cursor, "retire", {"crawl": crawl})
        if was is not None:
            cursor.execute(SQL["start_rescoring"].text, {"crawl": crawl})
        return was

    return session.transact(work)


def delete_strategies(session: Session, crawl: int) -> None:
    """Delete all strategies of a crawl."""

    def work(cursor: Cursor) -> None:
        cursor.execute(SQL["make_here"].text)
        for (number,) in cursor.execute(SQL["forget_versions"].text, {"crawl": crawl}).fetchall():
            cursor.execute(SQL["drop_schema"].text.replace(b":schema", schema(number).encode()))
        cursor.execute(SQL["forget_rescoring"].text, {"crawl": crawl})

    session.transact(work)


def rebuild_strategies(session: Session) -> None:
    """Build the functions of versions that a restored backup has only the rows of."""
    held = [each for each in versions(session) if each.in_force_at is not None]
    if held:
        session.transact(ready_strategies)
    for each in held:
        build(session, each.number, each.text, (), RESTORE_SECONDS)


def record_failure(cursor: Cursor, number: int, broken: StrategyFailure) -> bool:
    """Replace a strategy that failed in use by the one before it; return whether this was done."""
    if broken.slow and (_number(cursor, "count_slow", {"number": number}) or 0) < MOST_SLOW:
        return False
    crawl = _number(cursor, "fail", {"number": number, "problem": broken.what})
    if crawl is None:
        return True
    before = _number(cursor, "in_force_before", {"crawl": crawl})
    cursor.execute(SQL["start_rescoring"].text, {"crawl": crawl})
    if before is not None:
        _activate(cursor, crawl, before, again=True)
    return True


def record_success(cursor: Cursor, number: int) -> None:
    """Forget how often a strategy was too slow: it answered in time."""
    cursor.execute(SQL["forget_slow"].text, {"number": number})


def rescoring_left(session: Session, crawl: int) -> bool:
    """Return whether known URLs of a crawl still have to be scored again."""
    wanted = {"crawl": crawl}
    row = session.transact(lambda cursor: cursor.execute(SQL["rescoring_left"].text, wanted).fetchone())
    return bool(row and row[0])


def _activate(cursor: Cursor, crawl: int, number: int, *, again: bool) -> int | None:
    cursor.execute(SQL["retire"].text, {"crawl": crawl})
    held = _number(cursor, "put_in_force", {"crawl": crawl, "number": number, "again": again})
    cursor.execute(SQL["start_rescoring"].text, {"crawl": crawl})
    return held


def _number(cursor: Cursor, name: str, words: dict[str, Any]) -> int | None:
    cursor.execute(SQL[name].text, words)
    row = cursor.fetchone() if cursor.description else None
    return None if row is None else int(row[0])
