"""A running PostgreSQL server: started as a child, ready, stopped. It ends when its parent does.

Programs at work on its cluster run while it is stopped.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tamias.database.child_server import ChildServer
from tamias.database.disk import is_full, no_room, tells_of_no_room
from tamias.database.locks import alone
from tamias.features.embedded.account import ServerAccount
from tamias.features.embedded.binaries import Binaries
from tamias.model.errors import DatabaseError, DataInUse, TamiasError

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
