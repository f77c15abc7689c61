"""The walls that a sandbox builds around itself: memory, time, files, no network, no privileges.

Only what Linux offers to any user. Where the kernel or a container refuses one, the others stand.
"""

import ctypes
import math
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from tamias.crawl.sandbox import syscalls as kernel
from tamias.settings import SandboxSettings

NETWORK = "network"
FILES = "files"
LANDLOCK = "Landlock"
CALLS = "system calls"
USER = "user"
WALLS = {
    NETWORK: "a network of its own, without a way out",
    FILES: "a tree of files of its own, without the data directory",
    LANDLOCK: "no other file can be opened",
    CALLS: "no sockets, programs or processes (seccomp)",
    USER: "an ordinary user without privileges",
}
"""Those that a system may refuse. Limits on memory, time and sizes stand everywhere."""
_NOBODY = 65534
_SYSTEM = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
NICE, NICEST = 5, 19
"""Whoever reads a difficult document must not slow down those who fetch, and still gets on beside others."""
_NICE_STEP = 1.25
"""What a process gets of a processor, compared with one that is nicer by 1."""
_PRIORITY_TRIES, _PRIORITY_SECONDS = 10, 0.1
"""The kernel lets ordinary users change the priority of a session ten times a second, all together."""
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


def niceness(workers: int | None) -> int:
    """Return the niceness of each sandbox of a crawl: higher with more workers for each core.

    >>> niceness(None)
    5
    """
    load = (workers or 1) / (os.cpu_count() or 1)
    return min(NICEST, NICE + round(math.log(max(1.0, load) ** 2, _NICE_STEP)))


def lower_priority(leader: int, nice: int) -> None:
    """Lower the priority of a process and its session, from its start on.

    Where the kernel shares out processor time by session (autogroup), a process's own priority only counts
    inside its session, and the session's counts among sessions.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, leader, nice)
    for _ in range(_PRIORITY_TRIES):
        try:
            Path(f"/proc/{leader}/autogroup").write_text(str(nice), encoding="ascii")
        except BlockingIOError:
            time.sleep(_PRIORITY_SECONDS)
        except OSError:
            return
        else:
            return


def build_walls(settings: SandboxSettings, file_bytes: int) -> tuple[str, ...]:
    """Builds them around this process, which has one thread only; returns those that cannot be built here.

    It can still read what Python may have to load, and write to its own folder for temporary files.
    """
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_FIRST, encoding="ascii")
    scratch = Path(tempfile.gettempdir())
    readable, devices = readable_paths(), [Path(name) for name in _DEVICES if Path(name).exists()]
    missing = [*_leave_namespaces(readable + devices, scratch)]
    missing += _try(LANDLOCK, lambda: kernel.restrict_files(readable, [scratch, *devices]))
    missing += _try(USER, lambda: _become_nobody(really=FILES not in missing, scratch=scratch))
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    for limit, value in (
        (resource.RLIMIT_AS, settings.memory),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    missing += _try(CALLS, kernel.forbid_calls)
    return tuple(missing)


def missing_walls() -> tuple[str, ...]:
    """Return those of `WALLS` that this machine cannot build, tried in a short-lived process."""
    answer, ours = os.pipe()
    with tempfile.TemporaryDirectory(prefix="tamias-walls-") as scratch:
        child = os.fork()
        if child == 0:
            tempfile.tempdir = scratch
            try:
                os.write(ours, msgspec.json.encode(build_walls(SandboxSettings(), 1 << 20)))
            finally:
                os._exit(0)
        os.close(ours)
        with os.fdopen(answer, "rb") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
    return msgspec.json.decode(said, type=tuple[str, ...]) if said else tuple(WALLS)


def readable_paths() -> list[Path]:
    """Return the paths that Python may still read: itself, libraries and plug-ins, not the working folder."""
    here = Path.cwd()
    named = [*_SYSTEM, sys.prefix, sys.base_prefix, *sys.path]
    paths = {Path(name).absolute() for name in named if name and Path(name).exists()} - {here, Path("/")}
    return sorted(path for path in paths if paths.isdisjoint(path.parents))


def _try(wall: str, build: Callable[[], None]) -> list[str]:
    try:
        build()
    except OSError:
        return [wall]
    return []


def _leave_namespaces(readable: list[Path], scratch: Path) -> list[str]:
    """Leave the namespaces as root, or as the root of a user namespace, whose rights are dropped too."""
    both = kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC
    uid, gid = os.geteuid(), os.getegid()
    is_root = not _try(NETWORK, lambda: kernel.unshare(both))
    if not is_root and _try(NETWORK, lambda: kernel.unshare(kernel.CLONE_NEWUSER | both)):
        return [NETWORK, FILES]

    def leave() -> None:
        if not is_root:
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.leave_files(readable, scratch)

    return _try(FILES, leave)


def _become_nobody(*, really: bool, scratch: Path) -> None:
    """Root becomes nobody, where nobody can read Python's files; everybody loses all privileges."""
    if os.geteuid() == 0 and really and _is_for_all(Path(__file__)) and _is_for_all(Path(os.__file__)):
        with suppress(OSError):  # the root of a user namespace has no other users
            os.chown(scratch, _NOBODY, _NOBODY)
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    kernel.drop_capabilities()


def _is_for_all(file: Path) -> bool:
    return bool(file.stat().st_mode & 0o004)


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
        """Extend the limit of CPU time because something was found."""
        used = int(time.process_time())
        if used != self._renewed:
            self._renewed = used
            most = max(used + 1, min(used + self._idle, self._ends))
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
