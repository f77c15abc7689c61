"""Programs of others that are measured in the same run, where they are installed."""

import resource
import shutil

import msgspec


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
