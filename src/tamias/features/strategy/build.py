"""Versions of a strategy are built from its text: under the role, checked, and tried on a sample."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import psycopg
from psycopg import errors as pg

from tamias.database.citus import is_citus
from tamias.database.connect import Cursor, Session
from tamias.database.roles import for_administrators, ready_role
from tamias.features.strategy.scores import (
    SQL,
    SeenLink,
    TimeLimitExceeded,
    UrlToScore,
    cluster,
    describe_error,
    read_scores,
    scale_for,
    schema,
    time_limit,
    timeout_message,
)
from tamias.model.errors import DatabaseError, UsageError

ROLE = "tamias_strategy"
LONGEST_TEXT = 1 << 20
SHAPES = {
    "score_url": {
        "text": ":schema.:function((given.page).url)",
        "known_url": ":schema.:function(given.page)",
        "url": ":schema.:function((given.page).url::url)",
    },
    "score_link": {
        "text": (
            ":schema.:function(concat_ws(' ', (seen.link).context_left, (seen.link).anchor,"
            " (seen.link).context_right))"
        ),
        "seen_link": ":schema.:function(seen.link)",
    },
    "order_url": {
        "double precision, double precision, known_url": (
            ":schema.:function(it.url_score, it.link_score, it.page)"
        )
    },
}
"""Calls of each function, by the arguments that it may have."""
OTHER_NAMES = {"scoreurl": "score_url", "scorelink": "score_link"}
"""Names of the same functions in the YeSQL crawler (docs/papers.md)."""
UNLESS_MADE = {
    "score_url": "NULL",
    "score_link": "NULL",
    "order_url": (
        "CASE WHEN it.url_score IS NULL AND it.link_score IS NULL THEN NULL"
        " ELSE coalesce(it.url_score, 0) + coalesce(it.link_score, 0) END"
    ),
}
NUMBERS = frozenset({"double precision", "real", "numeric", "integer", "bigint", "smallint"})
ODD = (
    UrlToScore("http://example.org/", "example.org", 1, 1),
    UrlToScore(
        "https://example.org/a/very%20odd/page.html?query=1&other=%C3%A9",
        "example.org",
        32_767,
        1,
        ("kind=sparql",),
        {
            "http://example.org/": SeenLink(from_url="http://example.org/"),
            "": SeenLink("", "", "", from_score=0.0, from_quads=0),
        },
    ),
    UrlToScore(
        "http://example.com/",
        "example.com",
        2,
        1,
        links={"": SeenLink("a", "words before", "words after", 1, "en", "http://example.org/", 1.0, 10**9)},
    ),
)
"""Unusual values that every strategy must be able to score."""


class Trial(msgspec.Struct, frozen=True):
    """The result of trying a version."""

    functions: tuple[str, ...]
    sample: int
    """The number of URLs that it was tried on."""
    links: int
    milliseconds: float
    scale: float = 1.0
    """The number that scores are divided by, so that they are between 0 and 1."""
    note: str | None = None
    """A note for the author about the scores."""


def ready_strategies(cursor: Cursor) -> None:
    """Create the role that strategies run as, if there is none."""
    try:
        with cursor.connection.transaction():
            ready_role(cursor, ROLE)
            cursor.execute(SQL["grant_use"].text)
            cursor.execute(SQL["grant_reading"].text)
            if is_citus(cursor):
                # Not by the cursor: a request for binary answers holds one statement only.
                cursor.connection.execute(SQL["grant_columns"].text)
    except pg.InsufficientPrivilege as error:
        raise DatabaseError(
            f"strategies run as the role {ROLE}, and the database's user may not make it "
            f"({error.diag.message_primary}); let an administrator of the server run: "
            f"{for_administrators(cursor, [ROLE], login=is_citus(cursor))}; "
            f"GRANT CREATE ON DATABASE {cursor.connection.info.dbname} TO {cursor.connection.info.user}"
        ) from error


def build(
    session: Session,
    number: int,
    text: str,
    sample: Sequence[UrlToScore],
    seconds: float,
    *,
    keep: bool = True,
) -> Trial:
    """Create and try a version; without `keep` nothing is left of it.

    It has a connection of its own, closed at the end: the text can change its settings. Raises
    `UsageError` with the reason if the version is refused.
    """
    _refuse_odd(text)
    apart = session.apart()

    def work(cursor: Cursor) -> Trial:
        try:
            with cursor.connection.transaction(force_rollback=not keep):
                calls = _create_version(session, cursor, number, text, seconds)
                return _try_version(session, cursor, number, calls, [*ODD, *sample], seconds)
        except psycopg.Error as error:
            if cursor.connection.closed:
                raise
            raise UsageError(_line(error, text) + describe_error(error, seconds)) from error

    try:
        return apart.transact(work)
    except TimeLimitExceeded as error:
        raise UsageError(timeout_message(seconds, goes_on=error.goes_on)) from error
    finally:
        apart.close()


def _create_version(
    session: Session, cursor: Cursor, number: int, text: str, seconds: float
) -> dict[str, str]:
    """Run the text, create the function that calls its functions, and return how they are called."""
    cursor.execute(SQL["one_at_a_time"].text)
    cursor.execute(SQL["make_here"].text)
    for step in ("make_schema", "take_role", "make_url_type", "make_builder", "leave_role"):
        _do(cursor, step, number)
    others = _others(cursor, number)
    cursor.execute(SQL["limit_time"].text, {"milliseconds": str(int(seconds * 1000))})
    with time_limit(session, cursor, seconds):
        cursor.execute(SQL["build"].text.replace(b":schema", schema(number).encode()), {"text": text})
    _do(cursor, "trust_no_path", number)
    _do(cursor, "drop_builder", number)
    calls = _find_calls(cursor, number)
    _do(cursor, "take_role", number)
    cursor.execute(_scores_function(number, calls))
    _do(cursor, "leave_role", number)
    left = cursor.execute(SQL["find_leftovers"].text).fetchone()
    if left is not None:
        raise UsageError(f"it {left[0]}: that could run with more rights than a strategy's")
    _refuse_changes_of_others(cursor, number, others)
    return calls


def _others(cursor: Cursor, number: int) -> Any:
    """Return a digest of all other strategies, which share the role."""
    return cursor.execute(SQL["state_of_others"].text, {"schema": schema(number)}).fetchone()


def _refuse_changes_of_others(cursor: Cursor, number: int, before: Any) -> None:
    rows = cursor.execute(SQL["find_foreign_rows"].text, {"schema": schema(number)}).fetchone()
    if rows is not None:
        raise UsageError(f"it changes rows of {rows[0]}, which is another strategy's")
    if _others(cursor, number) != before:
        raise UsageError("it changes something of another strategy's")


def _try_version(
    session: Session,
    cursor: Cursor,
    number: int,
    calls: dict[str, str],
    pages: list[UrlToScore],
    seconds: float,
) -> Trial:
    begun = time.perf_counter()
    with cursor.connection.transaction(force_rollback=True), time_limit(session, cursor, seconds):
        scores = [each.score for each in read_scores(cursor, number, pages, seconds)][len(ODD) :]
    taken = (time.perf_counter() - begun) * 1000
    links = sum(len(page.links) for page in pages)
    return Trial(tuple(calls), len(pages), links, taken, scale_for(scores), cluster(scores))


def _find_calls(cursor: Cursor, number: int) -> dict[str, str]:
    """Return how the functions of the strategy are called."""
    calls: dict[str, str] = {}
    for name, arguments, result, is_set in cursor.execute(
        SQL["find_functions"].text, {"schema": schema(number)}
    ).fetchall():
        meaning = OTHER_NAMES.get(str(name), str(name))
        shapes = SHAPES[meaning]
        bare = arguments.replace("tamias.", "").replace(f"{schema(number)}.", "")
        if bare not in shapes:
            wanted = " or ".join(f"{name}({shape})" for shape in shapes if shape != "url")
            raise UsageError(f"{name}({bare}) has other arguments than {wanted}")
        if result not in NUMBERS or is_set:
            raise UsageError(f"{name} returns {'a set of ' * is_set}{result}; it must return one number")
        if meaning in calls:
            raise UsageError(f"{meaning} is there twice; leave one of them")
        calls[meaning] = shapes[bare].replace(":function", name)
    if not calls:
        raise UsageError("it defines none of the functions score_url, score_link, order_url")
    return calls


def _scores_function(number: int, calls: dict[str, str]) -> bytes:
    text = SQL["make_scores"].text.decode()
    for name, usual in UNLESS_MADE.items():
        text = text.replace(f":{name}", calls.get(name, usual))
    return text.replace(":schema", schema(number)).encode()


def _do(cursor: Cursor, name: str, number: int) -> None:
    cursor.execute(SQL[name].text.replace(b":schema", schema(number).encode()))


def _refuse_odd(text: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise UsageError(f"it is longer than {LONGEST_TEXT} characters")
    if "\0" in text:
        raise UsageError("it is not text: it holds a NUL")


def _line(error: psycopg.Error, text: str) -> str:
    """Return the line of the file that the server points at, if it does."""
    position = error.diag.internal_position
    if position is None or error.diag.internal_query != text:
        return ""
    return f"line {text.count(chr(10), 0, int(position) - 1) + 1}: "
