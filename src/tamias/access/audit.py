"""The log of writing calls: who did what, when, and how it ended; in the database and as JSON lines."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tamias.archive.moments import of_row, rfc3339
from tamias.database.columns import storable
from tamias.database.connect import Session
from tamias.database.disk import private
from tamias.database.sql import statements
from tamias.model.url import shown_target, without_password

NOTED_TARGETS = 20
"""Of a call that concerns more, the first so many are named, and all are counted."""
_LONGEST = 500
_LONGEST_OUTCOME = 200
_LAST = 2**62
_log = logging.getLogger(__name__)
_SQL = statements("tamias.access", "audit.sql")


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A writing call."""

    entry: int
    at: str
    who: str
    """The name of a token, `secret`, or `command:` and a login name."""
    what: str
    """Method and route, call, or command."""
    targets: list[str]
    """What it was about: the first 20 URLs, hosts or names."""
    count: int
    """How many it was about."""
    outcome: str
    """`ok`, or what it was answered instead."""


def record(
    session: Session, data: Path, who: str, what: str, targets: Sequence[str] = (), outcome: str = "ok"
) -> None:
    """Notes a call that has just been answered."""
    now = session.now()
    noted = [storable(shown_target(each)[:_LONGEST]) for each in targets[:NOTED_TARGETS]]
    ended = storable(without_password(outcome)[:_LONGEST_OUTCOME])
    row = {"at": now, "who": who, "what": what, "targets": noted, "count": len(targets), "outcome": ended}
    _append(data, {**row, "at": rfc3339(now)})
    session.execute(_SQL["put_entry"], row)


def list_entries(
    session: Session, *, before: int | None = None, since: int = 0, who: str | None = None, limit: int = 100
) -> list[AuditEntry]:
    """The latest calls first."""
    values = {"before": before or _LAST, "since": since, "who": who, "limit": limit}
    return [of_row(AuditEntry, row) for row in session.fetch_all(_SQL["list_entries"], values)]


def _append(data: Path, line: dict[str, object]) -> None:
    """Append with one write, so that lines of several processes do not mix."""
    path = data / "log" / "audit.jsonl"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = private(str(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, msgspec.json.encode(line) + b"\n")
        finally:
            os.close(descriptor)
    except OSError as error:
        _log.error("cannot write the audit log %s: %s", path, error.strerror)
