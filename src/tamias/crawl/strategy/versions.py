"""The versions of strategies: applied, activated, rolled back. Each crawl has one that is active, or none."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from tamias.crawl.strategy.building import Tried, build, ready_strategies
from tamias.crawl.strategy.scale import widen
from tamias.crawl.strategy.scoring import SQL, Asked, Broken, schema
from tamias.database.connect import Cursor, Session
from tamias.frontier.service.state import WATCH
from tamias.model.errors import TamiasError, UsageError

MOST_SLOW = 3
"""Batches in a row that take too long, and a strategy counts as failed; one may be the machine's fault."""


class StrategyVersion(msgspec.Struct, frozen=True):
    """A strategy as it was brought."""

    number: int
    name: str
    state: str
    """`in force`, `replaced`, `refused` when it was brought, or `failed` while it was in force."""
    made_at: datetime
    in_force_at: datetime | None
    problem: str | None
    text: str
    crawl: int
    crawl_name: str
    """Empty when the crawl was deleted."""


def versions(session: Session) -> list[StrategyVersion]:
    """All that were ever brought, the newest first."""
    rows = session.transact(lambda cursor: cursor.execute(SQL["versions"].text).fetchall())
    return [StrategyVersion(*row) for row in rows]


def in_force(cursor: Cursor) -> dict[int, int]:
    """The numbers of the active ones, by crawl."""
    return dict(cursor.execute(SQL["in_force"].text).fetchall())


def check(session: Session, text: str, sample: Sequence[Asked], seconds: float) -> Tried:
    """Makes and tries a strategy, and leaves nothing of it."""
    session.transact(ready_strategies)
    return build(session, 0, text, sample, seconds, keep=False)


def apply(
    session: Session, crawl: int, name: str, text: str, sample: Sequence[Asked], seconds: float
) -> tuple[int, Tried]:
    """Activates a new version for a crawl if it can be made and answers; else `UsageError`, and no change."""
    _refuse_watched(crawl)
    session.transact(ready_strategies)
    brought = {"crawl": crawl, "name": name, "text": text.replace("\0", "\N{REPLACEMENT CHARACTER}")}
    number = session.transact(lambda cursor: _number(cursor, "begin_version", brought))
    assert number is not None
    try:
        tried = build(session, number, text, sample, seconds)
    except TamiasError as error:
        _refuse(session, number, str(error))
        raise
    session.transact(lambda cursor: widen(cursor, number, tried.scale))
    session.transact(partial(_hold, crawl=crawl, number=number, again=False))
    return number, tried


def roll_back(session: Session, crawl: int, number: int | None) -> int:
    """Activates an earlier version of a crawl again: this one, or the one that was active before."""

    def work(cursor: Cursor) -> int:
        chosen = number if number is not None else _number(cursor, "in_force_before", {"crawl": crawl})
        if chosen is None:
            raise UsageError(
                "there is no earlier strategy; 'tamias strategy off' deactivates the present one"
            )
        if _hold(cursor, crawl, chosen, again=True) is None:
            raise UsageError(
                f"strategy {chosen} was never active in this crawl; 'tamias strategy list' shows all"
            )
        return chosen

    return session.transact(work)


def turn_off(session: Session, crawl: int) -> int | None:
    """No strategy for a crawl from now on; returns the one that was active."""

    def work(cursor: Cursor) -> int | None:
        was = _number(cursor, "retire", {"crawl": crawl})
        if was is not None:
            cursor.execute(SQL["start_rescoring"].text, {"crawl": crawl})
        return was

    return session.transact(work)


def forget_strategies(session: Session, crawl: int) -> None:
    """Removes all strategies of a crawl that is to be deleted."""

    def work(cursor: Cursor) -> None:
        cursor.execute(SQL["make_here"].text)
        for (number,) in cursor.execute(SQL["forget_versions"].text, {"crawl": crawl}).fetchall():
            cursor.execute(SQL["drop_schema"].text.replace(b":schema", schema(number).encode()))
        cursor.execute(SQL["forget_rescoring"].text, {"crawl": crawl})

    session.transact(work)


def build_anew(session: Session, seconds: float) -> None:
    """Makes the functions of versions that only have their rows, as after a restore."""
    held = [each for each in versions(session) if each.in_force_at is not None]
    if held:
        session.transact(ready_strategies)
    for each in held:
        build(session, each.number, each.text, (), seconds)


def note_broken(cursor: Cursor, number: int, broken: Broken) -> bool:
    """A strategy failed in use: it is taken out and the one before it comes back. Returns whether it was."""
    if broken.slow and (_number(cursor, "count_slow", {"number": number}) or 0) < MOST_SLOW:
        return False
    crawl = _number(cursor, "fail", {"number": number, "problem": broken.what})
    if crawl is None:
        return True
    before = _number(cursor, "in_force_before", {"crawl": crawl})
    cursor.execute(SQL["start_rescoring"].text, {"crawl": crawl})
    if before is not None:
        _hold(cursor, crawl, before, again=True)
    return True


def note_quick(cursor: Cursor, number: int) -> None:
    """A strategy answered in time."""
    cursor.execute(SQL["forget_slow"].text, {"number": number})


def rescoring_left(session: Session, crawl: int) -> bool:
    """Whether known URLs of a crawl still have to be scored again."""
    asked = {"crawl": crawl}
    row = session.transact(lambda cursor: cursor.execute(SQL["rescoring_left"].text, asked).fetchone())
    return bool(row and row[0])


def _hold(cursor: Cursor, crawl: int, number: int, *, again: bool) -> int | None:
    cursor.execute(SQL["retire"].text, {"crawl": crawl})
    held = _number(cursor, "put_in_force", {"crawl": crawl, "number": number, "again": again})
    cursor.execute(SQL["start_rescoring"].text, {"crawl": crawl})
    return held


def _refuse_watched(crawl: int) -> None:
    if crawl == WATCH:
        raise UsageError("watched resources keep their schedule; a strategy is for a crawl")


def _refuse(session: Session, number: int, problem: str) -> None:
    words = {"number": number, "problem": problem}
    session.transact(partial(_number, name="refuse", words=words))


def _number(cursor: Cursor, name: str, words: dict[str, Any]) -> int | None:
    cursor.execute(SQL[name].text, words)
    row = cursor.fetchone() if cursor.description else None
    return None if row is None else int(row[0])
