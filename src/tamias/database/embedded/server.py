"""A running PostgreSQL server: started as a child, ready, stopped. It ends when its parent does."""

import os
import signal
import time
from pathlib import Path

from tamias.database.child_server import ChildServer
from tamias.database.disk import is_full, no_room, tells_of_no_room
from tamias.database.embedded.account import ServerAccount
from tamias.database.embedded.binaries import Binaries
from tamias.database.locks import alone
from tamias.model.errors import DatabaseError, DataInUse

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
        if tells_of_use(output):
            raise cluster_in_use(self._cluster)
        if tells_of_no_room(output) or is_full(self._cluster):
            raise no_room(self._cluster.parent)
        raise DatabaseError(f"the database did not start: {_reason(output)}; see {self.log}")

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


def tells_of_use(output: str) -> bool:
    """Return whether a server refused to start because another one runs on its cluster."""
    return ("lock file" in output and "already exists" in output) or "is still in use" in output


def cluster_in_use(cluster: Path) -> DataInUse:
    """The error for that."""
    return DataInUse(f"another PostgreSQL server is running on {cluster}; stop it, or choose another --data")


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


def _reason(output: str) -> str:
    fatal = [line.split("FATAL:")[1].strip() for line in output.splitlines() if "FATAL:" in line]
    return fatal[0] if fatal else "it ended without a word"
