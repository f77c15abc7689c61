"""The walls that a sandbox builds around itself: memory, time, files, no network, no privileges.

Only what any Linux offers to any user: resource limits, `prctl` and namespaces; no seccomp filter.
"""

import ctypes
import os
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path

from tamias.crawl.catalogue.seclusion import seclude
from tamias.settings import SandboxSettings

NETWORK = "network"
NICE = 5
"""Whoever reads a difficult document must not slow down those who fetch."""
_FILES = 64
_OOM_FIRST = "1000"
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """The sandbox ends when its worker does; at once, if that was before we could ask for it."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(1)


def build_walls(settings: SandboxSettings, file_bytes: int) -> tuple[str, ...]:
    """Builds them around this process, which has one thread only; returns those that cannot be built here."""
    missing = _leave_network()
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_FIRST, encoding="ascii")
    os.nice(NICE)
    for limit, value in (
        (resource.RLIMIT_AS, settings.memory),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    return missing


def _leave_network() -> tuple[str, ...]:
    try:
        seclude()
    except OSError:
        return (NETWORK,)
    return ()


class CpuAllowance:
    """Processor time for one document: so much without anything found, and so much in all.

    The kernel keeps it (RLIMIT_CPU, in whole seconds): nothing else interrupts native code.
    """

    def __init__(self, idle: int, whole: int) -> None:
        self._idle = idle
        self._ends = int(time.process_time()) + whole
        self._renewed = -1
        self.renew()

    def renew(self) -> None:
        """Something was found."""
        used = int(time.process_time())
        if used != self._renewed:
            self._renewed = used
            most = max(used + 1, min(used + self._idle, self._ends))
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
