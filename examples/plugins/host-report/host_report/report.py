"""The rows of the report."""

import msgspec

from tamias.database.connect import Session
from tamias.database.sql import statements

_SQL = statements("host_report", "report.sql")


class HostRow(msgspec.Struct, frozen=True):
    """A host, and how much is watched there."""

    host: str
    resources: int
    versions: int


def host_rows(session: Session) -> list[HostRow]:
    """Read the report."""
    return session.transact(
        lambda cursor: [HostRow(*row) for row in cursor.execute(_SQL["hosts"].text).fetchall()]
    )
