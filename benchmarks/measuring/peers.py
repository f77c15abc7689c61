"""Programs of others that are measured in the same run, where they are installed."""

import re
import resource
import shlex
import shutil
from collections.abc import Iterable

import msgspec

_FOLDERS = re.compile(r"(?<![\w:/.*])/(?:[\w.+@-]+/)+")


class Skipped(msgspec.Struct, frozen=True):
    """One that cannot be run here, and why."""

    name: str
    reason: str


def skipped_program(name: str, package: str) -> Skipped | None:
    """None where the program is installed; `package` is its name in Debian."""
    if shutil.which(name) is not None:
        return None
    return Skipped(name, f"it is not installed (Debian: apt-get install {package})")


def children_seconds() -> float:
    """Processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shown_command(command: Iterable[str]) -> str:
    """A command as a reader may type it: without the folders of this machine."""
    return shlex.join(_FOLDERS.sub("", word) for word in command)
