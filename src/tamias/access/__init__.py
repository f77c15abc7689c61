"""Named tokens with scopes, and the log of writing calls: commands note theirs by `audited`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tamias.database.connect import Session


def command_caller() -> str:
    """Return who runs the command."""
    try:
        return f"command:{getuser()}"
    except (KeyError, OSError):  # a container without names of users
        return "command"


class Audited(msgspec.Struct):
    """The end of a command that no exception tells of."""

    failure: str | None = None


@contextmanager
def audited(session: "Session", data: Path, what: str, targets: Sequence[str]) -> Iterator[Audited]:
    """Note in the audit log what is done inside, and how it ended: by an exception, or as it is told."""
    from tamias.access.audit import record

    ending = Audited()
    try:
        yield ending
    except BaseException as error:
        ending.failure = str(error) or type(error).__name__
        raise
    finally:
        outcome = "ok" if ending.failure is None else f"failed: {ending.failure}"[:200]
        record(session, data, command_caller(), what, targets, outcome)
