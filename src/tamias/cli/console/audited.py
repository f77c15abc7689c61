"""Commands that write are noted in the audit log, as calls to the service are."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING

from tamias.model.errors import TamiasError

if TYPE_CHECKING:
    from tamias.database.connect import Session


def command_caller() -> str:
    """Who runs the command."""
    try:
        return f"command:{getuser()}"
    except (KeyError, OSError):  # a container without names of users
        return "command"


@contextmanager
def audited(session: "Session", data: Path, what: str, targets: Sequence[str]) -> Iterator[None]:
    """Notes what is done inside, and how it ended."""
    from tamias.serve.access.audit import record

    try:
        yield
    except TamiasError as error:
        record(session, data, command_caller(), what, targets, f"failed: {error}"[:200])
        raise
    record(session, data, command_caller(), what, targets)
