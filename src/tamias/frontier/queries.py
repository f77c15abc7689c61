"""How the statements of the frontier's files are run: by their names, in the transaction of a cursor."""

from typing import Any

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.rows import Row

_FILES = {
    "tamias.frontier": ("addresses.sql", "crawls.sql", "frontier.sql"),
    "tamias.frontier.due": (
        "make_due.sql", "reopen.sql", "rescore.sql", "retire.sql", "unreachable.sql", "waiting.sql",
    ),
    "tamias.frontier.service": ("held.sql", "queues.sql", "state.sql"),
    "tamias.frontier.tagging": ("tag_sets.sql",),
}  # fmt: skip
_SQL = {
    name: statement
    for folder, files in _FILES.items()
    for file in files
    for name, statement in statements(folder, file).items()
}


def rows_of(cursor: Cursor, name: str, parameters: dict[str, Any]) -> list[Row]:
    """All rows that a statement gives."""
    return cursor.execute(_SQL[name].text, parameters).fetchall()


def alone(session: Session, name: str, parameters: dict[str, Any]) -> list[Row]:
    """The same in a transaction of its own, in one round trip."""
    return session.fetch_all(_SQL[name], parameters)


def count_of(cursor: Cursor, name: str, parameters: dict[str, Any]) -> int:
    """The number that a statement gives."""
    return int(rows_of(cursor, name, parameters)[0][0])


def done_by(cursor: Cursor, name: str, parameters: dict[str, Any]) -> int:
    """How many rows a statement changed."""
    return cursor.execute(_SQL[name].text, parameters).rowcount
