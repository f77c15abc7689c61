"""Executes the statements of the frontier's files, by their names."""

from typing import Any

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.rows import Row

_FILES = {
    "tamias.frontier": ("addresses.sql", "crawls.sql", "frontier.sql"),
    "tamias.frontier.due": (
        "far_times.sql", "make_due.sql", "reopen.sql", "retire.sql", "unreachable.sql", "waiting.sql",
    ),
    "tamias.frontier.service": ("queues.sql", "state.sql"),
    "tamias.frontier.tagging": ("tag_sets.sql",),
}  # fmt: skip
_SQL = {
    name: statement
    for folder, files in _FILES.items()
    for file in files
    for name, statement in statements(folder, file).items()
}


def add_statements(folder: str, file: str) -> None:
    """Add the statements of a feature's file."""
    _SQL.update(statements(folder, file))


def rows_of(cursor: Cursor, name: str, parameters: dict[str, Any]) -> list[Row]:
    """Return all rows that a statement gives."""
    return cursor.execute(_SQL[name].text, parameters).fetchall()


def done_by(cursor: Cursor, name: str, parameters: dict[str, Any]) -> int:
    """Execute a statement; return how many rows it changed."""
    return cursor.execute(_SQL[name].text, parameters).rowcount


def refresh(cursor: Cursor, hosts: dict[str, Any]) -> None:
    """Find out when queues of locked hosts have something to do, and with them the hosts."""
    done_by(cursor, "refresh_queues", hosts)
    done_by(cursor, "refresh_hosts", hosts)


def ask(session: Session, name: str, /, **parameters: Any) -> list[Row]:
    """Return all rows that a statement gives, in a transaction of its own and one round trip."""
    return session.fetch_all(_SQL[name], parameters)


def tell(session: Session, name: str, /, **parameters: Any) -> None:
    """Execute a statement in a transaction of its own."""
    session.execute(_SQL[name], parameters)


def read_buckets(session: Session) -> int:
    """Return how many parts the frontier has."""
    return int(ask(session, "read_buckets")[0][0])
