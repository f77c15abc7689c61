"""The walls that a sandbox builds around itself: memory, time, files, no network, no privileges.

Only what Linux offers to any user. Where the kernel or a container refuses one, the others stand.

System calls that Python has no names for (mounts, Landlock, seccomp) raise `OSError` where the kernel does
not have what they ask for.
"""

import ctypes
import math
import os
import platform
import resource
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from tamias.settings import SandboxSettings

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_MNT_DETACH = 2
_MOUNT_SETATTR = 442
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION = 1
_BENEATH = 1
_READ_FILE, _READ_DIR, _WRITE_FILE, _TRUNCATE = 1 << 2, 1 << 3, 1 << 1, 1 << 14
_FIRST_RIGHTS = (1 << 13) - 1
"""Those of Landlock's first version; each later one adds some."""
_PR_SET_SECCOMP, _FILTER = 22, 2


def unshare(flags: int) -> None:
    """Leaves what is shared with others: this process, which has one thread only."""
    _must(_libc.unshare(flags), "unshare")


def drop_capabilities() -> None:
    """Drop all capabilities of the process."""
    header = struct.pack("Ii", 0x20080522, 0)
    _must(_libc.capset(header, bytes(24)), "capset")


def leave_files(readable: Iterable[Path], writable: Path) -> None:
    """Gives this process, in a mount namespace of its own, a tree with nothing in it but these folders.

    They have the names they had; the tree itself and what is only readable cannot be written to.
    """
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    root = writable / "root"
    root.mkdir()
    _mount("tmpfs", str(root), "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
    for path in readable:
        _bind(path, root, _MS_REC)
    inside = _bind(writable, root)
    _set_attributes(root, add=_MOUNT_ATTR_RDONLY)
    _set_attributes(inside, clear=_MOUNT_ATTR_RDONLY)
    os.chdir(root)
    _must(_libc.syscall(_number("pivot_root"), b".", b"."), "pivot_root")
    # The old tree lies over the new one now: what is unmounted is the upper one.
    _must(_libc.umount2(b".", _MNT_DETACH), "umount2")
    os.chdir("/")


def _bind(path: Path, root: Path, flags: int = 0) -> Path:
    target = root / path.relative_to("/")
    if path.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount(str(path), str(target), "", _MS_BIND | flags)
    return target


def _set_attributes(root: Path, *, add: int = 0, clear: int = 0) -> None:
    attributes = struct.pack("QQQQ", add, clear, 0, 0)
    flags, size = ctypes.c_uint(_AT_RECURSIVE), ctypes.c_size_t(len(attributes))
    done = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(root), flags, attributes, size)
    _must(done, "mount_setattr")


def landlock_version() -> int:
    """Return the version of the kernel's Landlock. Raises `OSError` where there is none."""
    version: int = _libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_LANDLOCK_VERSION))
    _must(min(version, 0), "landlock")
    return version


def restrict_files(readable: Sequence[Path], writable: Sequence[Path]) -> None:
    """Forbid all other files, TCP, and signals and abstract sockets to other processes."""
    version = landlock_version()
    extra = sum(1 << bit for least, bit in ((2, 13), (3, 14), (5, 15)) if version >= least)
    files = _FIRST_RIGHTS | extra
    sent = struct.pack("QQQ", files, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    sent = sent[: 24 if version >= 6 else 16 if version >= 4 else 8]
    ruleset = _libc.syscall(_LANDLOCK_CREATE, sent, ctypes.c_size_t(len(sent)), ctypes.c_uint(0))
    _must(min(ruleset, 0), "landlock_create_ruleset")
    try:
        for path in readable:
            _allow(ruleset, path, _READ_FILE | _READ_DIR if path.is_dir() else _READ_FILE)
        for path in writable:
            _allow(ruleset, path, files if path.is_dir() else files & (_READ_FILE | _WRITE_FILE | _TRUNCATE))
        _must(_libc.syscall(_LANDLOCK_RESTRICT, ruleset, ctypes.c_uint(0)), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, folder)
        _must(_libc.syscall(_LANDLOCK_ADD, ruleset, _BENEATH, rule, ctypes.c_uint(0)), "landlock_add_rule")
    finally:
        os.close(folder)


FORBIDDEN = {
    # name: number on x86_64, on aarch64 (None: it has none)
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242), "socketpair": (53, 199), "sendto": (44, 206), "sendmsg": (46, 211),
    "sendmmsg": (307, 269), "execve": (59, 221), "execveat": (322, 281), "fork": (57, None),
    "vfork": (58, None), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "process_madvise": (440, 440), "kill": (62, 129),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "kcmp": (312, 272), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "bpf": (321, 280), "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "userfaultfd": (323, 282), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "syslog": (103, 116), "acct": (163, 89), "quotactl": (179, 60),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "personality": (135, 92),
    "iopl": (172, None), "ioperm": (173, None), "uselib": (134, None), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180), "fanotify_init": (300, 262),
}  # fmt: skip
"""What reading a document never needs. They fail with EPERM, as for somebody who may not."""
_OTHERS = {"clone": (56, 220), "clone3": (435, 435), "tgkill": (234, 131), "prlimit64": (302, 261),
           "ioctl": (16, 29)}  # fmt: skip
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_CLONE_THREAD, _TIOCSTI, _TIOCLINUX = 0x10000, 0x5412, 0x541C
_X32 = 0x40000000


def forbid_calls() -> None:
    """Forbid the system calls of `FORBIDDEN`, new processes, and signals and limits for others."""
    program = b"".join(_program())
    buffer = ctypes.create_string_buffer(program)
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    _must(_libc.prctl(_PR_SET_SECCOMP, _FILTER, filters, 0, 0), "seccomp")


def _program() -> list[bytes]:
    """Classic BPF on `struct seccomp_data`: number at 0, architecture at 4, arguments from 16."""
    column, architecture = _architecture()
    steps = [_load(4), _unless(architecture, [_return(_KILL)]), _load(0)]
    steps += [_if_at_least(_X32, [_return(_ERRNO | _EPERM)])] if column == 0 else []
    for numbers in FORBIDDEN.values():
        if (number := numbers[column]) is not None:
            steps.append(_if(number, [_return(_ERRNO | _EPERM)]))
    refuse = _return(_ERRNO | _EPERM)
    is_thread = [_load(16), _step(_ANY_BIT, _CLONE_THREAD, 1, 0), refuse, _return(_ALLOW)]
    is_own = [_load(16), _step(_EQUAL, os.getpid(), 1, 0), refuse, _return(_ALLOW)]
    is_self = [_load(16), _step(_EQUAL, 0, 1, 0), refuse, _return(_ALLOW)]
    is_harmless = [_load(24), _if(_TIOCSTI, [refuse]), _if(_TIOCLINUX, [refuse]), _return(_ALLOW)]
    # The arguments of clone3 are in memory, where a filter cannot see them: without it, clone is used.
    for name, then in (
        ("clone", is_thread), ("clone3", [_return(_ERRNO | _ENOSYS)]), ("tgkill", is_own),
        ("prlimit64", is_self), ("ioctl", is_harmless),
    ):  # fmt: skip
        steps.append(_if(_OTHERS[name][column], then))
    return [*steps, _return(_ALLOW)]


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)


def _load(offset: int) -> bytes:
    return _step(_LOAD, offset)


def _return(value: int) -> bytes:
    return _step(_RETURN, value)


def _if(value: int, then: list[bytes]) -> bytes:
    block = b"".join(then)
    return _step(_EQUAL, value, 0, len(block) // 8) + block


def _unless(value: int, then: list[bytes]) -> bytes:
    block = b"".join(then)
    return _step(_EQUAL, value, len(block) // 8, 0) + block


def _if_at_least(value: int, then: list[bytes]) -> bytes:
    block = b"".join(then)
    return _step(_AT_LEAST, value, 0, len(block) // 8) + block


def _number(name: str) -> int:
    found = FORBIDDEN[name][_architecture()[0]]
    assert found is not None
    return found


def _architecture() -> tuple[int, int]:
    try:
        return _ARCHITECTURES[platform.machine()]
    except KeyError:
        raise OSError(_ENOSYS, f"system calls of {platform.machine()} are not known here") from None


def _mount(source: str, target: str, kind: str, flags: int, words: str = "") -> None:
    where = os.fsencode(source), os.fsencode(target), kind.encode() or None
    _must(_libc.mount(*where, ctypes.c_ulong(flags), words.encode() or None), f"mount {target}")


def _must(result: int, what: str) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


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
    missing += _try(LANDLOCK, lambda: restrict_files(readable, [scratch, *devices]))
    missing += _try(USER, lambda: _become_nobody(really=FILES not in missing, scratch=scratch))
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    for limit, value in (
        (resource.RLIMIT_AS, settings.memory),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    missing += _try(CALLS, forbid_calls)
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
    both = CLONE_NEWNET | CLONE_NEWIPC
    uid, gid = os.geteuid(), os.getegid()
    is_root = not _try(NETWORK, lambda: unshare(both))
    if not is_root and _try(NETWORK, lambda: unshare(CLONE_NEWUSER | both)):
        return [NETWORK, FILES]

    def leave() -> None:
        if not is_root:
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")
        unshare(CLONE_NEWNS)
        leave_files(readable, scratch)

    return _try(FILES, leave)


def _become_nobody(*, really: bool, scratch: Path) -> None:
    """Root becomes nobody, where nobody can read Python's files; everybody loses all privileges."""
    if os.geteuid() == 0 and really and _is_for_all(Path(__file__)) and _is_for_all(Path(os.__file__)):
        with suppress(OSError):  # the root of a user namespace has no other users
            os.chown(scratch, _NOBODY, _NOBODY)
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    drop_capabilities()


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
