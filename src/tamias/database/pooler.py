"""Connections by way of a pooler such as PgBouncer, which takes no options of a session when it begins.

It must give each of our connections one of the server's for as long as it lasts: the schema and the role of a
process are settings of the session, and what a strategy leaves there must not be met by others.
"""

import secrets
import shlex
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
from psycopg import errors as pg

from tamias.model.errors import DatabaseError

Connection = psycopg.Connection[tuple[Any, ...]]
_TRIES = 5
_MARK = "tamias.session"
_SET = "SELECT pg_catalog.set_config(%s, %s, false)"
SHARED = (
    "the pooler at {place} gives a connection of the server to another client after each transaction; Tamias "
    "needs it for a whole session: set pool_mode = session for this database (PgBouncer: in [databases] or "
    "[pgbouncer]), or name the server itself with --db"
)


def refuses_options(error: psycopg.Error) -> bool:
    """Return whether somebody between us and the server does not take a session's options."""
    return "unsupported startup parameter" in str(error)


def set_up(connection: Connection, options: str) -> None:
    """Make the settings by statements that could not be options."""
    for name, value in _settings(options):
        connection.execute(_SET, [name, value])


def refuse_shared(connect: Callable[[], Connection], place: str) -> None:
    """Raise `DatabaseError` if what is set on one connection is met on another, or lost."""
    with closing(connect()) as first, closing(connect()) as second:
        try:
            shared = any(_is_shared(first, second) for _ in range(_TRIES))
        except (pg.FeatureNotSupported, psycopg.OperationalError, pg.ProtocolViolation) as error:
            raise DatabaseError(f"{SHARED.format(place=place)} ({error})") from error
    if shared:
        raise DatabaseError(SHARED.format(place=place))


def _is_shared(first: Connection, second: Connection) -> bool:
    mark = secrets.token_hex(8)
    first.execute(_SET, [_MARK, mark])
    seen = [_read(each) for each in (second, first)]
    second.execute(_SET, [_MARK, ""])
    return seen not in (["", mark], [None, mark])


def _read(connection: Connection) -> str | None:
    row = connection.execute("SELECT pg_catalog.current_setting(%s, true)", [_MARK]).fetchone()
    return row[0] if row else None


def _settings(options: str) -> Iterator[tuple[str, str]]:
    """Read `-c name=value`, `-cname=value` and `--name=value`.

    >>> list(_settings("-c search_path=tamias,public --jit=off"))
    [('search_path', 'tamias,public'), ('jit', 'off')]
    """
    words = iter(shlex.split(options))
    for word in words:
        text = next(words, "") if word == "-c" else word.removeprefix("--").removeprefix("-c")
        name, equals, value = text.partition("=")
        if not equals:
            raise DatabaseError(f"--db has the option {word}, which cannot pass a pooler; leave it out")
        yield name.replace("-", "_"), value
