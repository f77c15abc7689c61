"""Makes a version of a strategy from its text: under the role, checked, and tried on a sample."""

import time
from collections.abc import Sequence

import msgspec
import psycopg
from psycopg import errors as pg

from tamias.crawl.strategy.scoring import SQL, Asked, Seen, asked_as_role, schema, told
from tamias.database.connect import Cursor
from tamias.database.roles import for_administrators, ready_role
from tamias.model.errors import DatabaseError, UsageError

ROLE = "tamias_strategy"
LONGEST_TEXT = 1 << 20
SHAPES = {
    "score_url": {
        "text": ":schema.score_url((given.page).url)",
        "known_url": ":schema.score_url(given.page)",
    },
    "score_link": {
        "text": (
            ":schema.score_link(concat_ws(' ', (seen.link).context_left, (seen.link).anchor,"
            " (seen.link).context_right))"
        ),
        "seen_link": ":schema.score_link(seen.link)",
    },
    "order_url": {
        "double precision, double precision, known_url": (
            ":schema.order_url(it.url_score, it.link_score, it.page)"
        )
    },
}
"""The arguments that a function may have, and how it is called with them."""
UNLESS_MADE = {
    "score_url": "NULL",
    "score_link": "NULL",
    "order_url": (
        "CASE WHEN it.url_score IS NULL AND it.link_score IS NULL THEN NULL"
        " ELSE coalesce(it.url_score, 0) + coalesce(it.link_score, 0) END"
    ),
}
NUMBERS = frozenset({"double precision", "real", "numeric", "integer", "bigint", "smallint"})
_UNSTOPPABLE = ("query_canceled", "57014")
ODD = (
    Asked(url="http://example.org/", host="example.org", depth=1, crawl=1),
    Asked(
        url="https://example.org/a/very%20odd/page.html?query=1&other=%C3%A9",
        host="example.org",
        depth=32_767,
        crawl=1,
        tags=("kind=sparql",),
        links=(
            Seen(from_url="http://example.org/"),
            Seen(anchor="", context_left="", context_right="", from_score=0.0, from_quads=0),
        ),
    ),
    Asked(
        url="http://example.com/",
        host="example.com",
        depth=2,
        crawl=1,
        links=(
            Seen(
                anchor="an anchor", context_left="words before", context_right="words after", language="en",
                from_url="http://example.org/", from_score=1.0, from_quads=10**9,
            ),
        ),
    ),
)  # fmt: skip
"""Values that may come, and that a strategy may not have thought of."""


class Tried(msgspec.Struct, frozen=True):
    """A version that was made and answered."""

    functions: tuple[str, ...]
    sample: int
    """Pages that it was tried on."""
    links: int
    milliseconds: float


def ready_strategies(cursor: Cursor) -> None:
    """Makes the role that strategies run as, where it is not yet."""
    try:
        with cursor.connection.transaction():
            ready_role(cursor, ROLE)
            cursor.execute(SQL["grant_use"].text)
            cursor.execute(SQL["grant_reading"].text)
    except pg.InsufficientPrivilege as error:
        raise DatabaseError(
            f"strategies run as the role {ROLE}, and the database's user may not make it "
            f"({error.diag.message_primary}); let an administrator of the server run: "
            f"{for_administrators(cursor, [ROLE])}; "
            f"GRANT CREATE ON DATABASE {cursor.connection.info.dbname} TO {cursor.connection.info.user}"
        ) from error


def build(cursor: Cursor, number: int, text: str, sample: Sequence[Asked], seconds: float) -> Tried:
    """Makes and tries a version within the present transaction.

    Raises `UsageError` with the reason if it is not to be taken: then the transaction must not be committed.
    """
    _refuse_unstoppable(text)
    try:
        with cursor.connection.transaction():
            return _build(cursor, number, text, sample, seconds)
    except psycopg.Error as error:
        if cursor.connection.closed:
            raise
        raise UsageError(_line(error, text) + told(error, seconds)) from error


def _build(cursor: Cursor, number: int, text: str, sample: Sequence[Asked], seconds: float) -> Tried:
    _do(cursor, "make_schema", number)
    _do(cursor, "take_role", number)
    _do(cursor, "make_builder", number)
    _do(cursor, "leave_role", number)
    cursor.execute(SQL["limit_time"].text, {"milliseconds": str(int(seconds * 1000))})
    cursor.execute(SQL["build"].text.replace(b":schema", schema(number).encode()), {"text": text})
    _do(cursor, "drop_builder", number)
    calls = _calls(cursor, number)
    _do(cursor, "take_role", number)
    cursor.execute(_scores_function(number, calls))
    _do(cursor, "leave_role", number)
    opened = cursor.execute(SQL["find_open_doors"].text).fetchall()
    if opened:
        raise UsageError(f"it changes {opened[0][0]}, which is Tamias's own")
    pages = [*ODD, *sample]
    begun = time.perf_counter()
    with cursor.connection.transaction(force_rollback=True):
        asked_as_role(cursor, number, pages, seconds)
    taken = (time.perf_counter() - begun) * 1000
    return Tried(tuple(calls), len(pages), sum(len(page.links) for page in pages), taken)


def _calls(cursor: Cursor, number: int) -> dict[str, str]:
    """How the functions that the strategy made are called."""
    calls: dict[str, str] = {}
    for name, arguments, result, is_set in cursor.execute(
        SQL["find_functions"].text, {"schema": schema(number)}
    ).fetchall():
        shapes = SHAPES[name]
        bare = arguments.replace("tamias.", "")
        if bare not in shapes:
            wanted = " or ".join(f"{name}({shape})" for shape in shapes)
            raise UsageError(f"{name}({bare}) has other arguments than {wanted}")
        if result not in NUMBERS or is_set:
            raise UsageError(f"{name} returns {'a set of ' * is_set}{result}; it must return one number")
        if name in calls:
            raise UsageError(f"{name} is there twice; leave one of them")
        calls[name] = shapes[bare]
    if not calls:
        raise UsageError("it makes none of the functions score_url, score_link, order_url")
    return calls


def _scores_function(number: int, calls: dict[str, str]) -> bytes:
    text = SQL["make_scores"].text.decode()
    for name, usual in UNLESS_MADE.items():
        text = text.replace(f":{name}", calls.get(name, usual))
    return text.replace(":schema", schema(number)).encode()


def _do(cursor: Cursor, name: str, number: int) -> None:
    cursor.execute(SQL[name].text.replace(b":schema", schema(number).encode()))


def _refuse_unstoppable(text: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise UsageError(f"it is longer than {LONGEST_TEXT} characters")
    if "\0" in text:
        raise UsageError("it is not text: it holds a NUL")
    caught = next((word for word in _UNSTOPPABLE if word in text.lower()), None)
    if caught:
        raise UsageError(f"it speaks of {caught}: what catches that could not be stopped by the time limit")


def _line(error: psycopg.Error, text: str) -> str:
    """The line of the file that the server points at, where it does."""
    position = error.diag.internal_position
    if position is None or error.diag.internal_query != text:
        return ""
    return f"line {text.count(chr(10), 0, int(position) - 1) + 1}: "
