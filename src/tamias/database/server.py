"""One running PostgreSQL server: started as a child, ready, stopped. It ends when its parent does."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import BinaryIO

from tamias.database.account import Account
from tamias.database.binaries import Binaries
from tamias.model.errors import DatabaseError, DataInUse, DiskFull

_START_SECONDS = 120
_STOP_SECONDS = 60
_MEGABYTE = 1 << 20


class Server:
    """A server for one cluster, reachable through a socket folder and nothing else."""

    def __init__(self, cluster: Path, programs: Binaries, account: Account, sockets: Path, log: Path) -> None:
        self._cluster = cluster
        self._programs = programs
        self._account = account
        self._sockets = sockets
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Returns when the server takes connections. A server of ours that is still ending is waited for."""
        deadline = time.monotonic() + _START_SECONDS
        while not self._try_start(deadline):
            time.sleep(0.1)

    def poll(self) -> int | None:
        """The exit code if the server has ended."""
        return None if self._process is None else self._process.poll()

    def stop(self) -> None:
        """A clean stop: open transactions are rolled back, nothing committed is lost."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()

    def _try_start(self, deadline: float) -> bool:
        with self._log.open("ab") as log:
            told_before = log.tell()
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=self._account.enter(ends_with_parent=True),  # noqa: PLW1509 (one thread)
            )
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                return self._ended_early(told_before, deadline)
            if self._says_ready():
                return True
            time.sleep(0.02)
        self.stop()
        raise DatabaseError(f"the database did not start within {_START_SECONDS} s; see {self._log}")

    def _says_ready(self) -> bool:
        """Line 1 of the lock file is the process id, line 8 its state."""
        try:
            lines = (self._cluster / "postmaster.pid").read_text(encoding="ascii").splitlines()
        except (FileNotFoundError, UnicodeDecodeError):
            return False
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _ended_early(self, told_before: int, deadline: float) -> bool:
        """False when trying again makes sense; otherwise raises what the log says."""
        with self._log.open("rb") as log:
            told = _tail(log, told_before)
        in_use = "already exists" in told or "is still in use" in told
        if in_use and time.monotonic() < deadline and self._leftover_is_ours():
            return False
        if in_use:
            raise DataInUse(
                f"another PostgreSQL server is running on {self._cluster}; stop it, or choose another --data"
            )
        if "No space left on device" in told:
            raise DiskFull(
                f"no room for the database at {self._cluster.parent}; free some space and try again"
            )
        raise DatabaseError(f"the database did not start: {_reason(told)}; see {self._log}")

    def _leftover_is_ours(self) -> bool:
        """Whether what holds the cluster was a child of a keeper: such a server is ending by itself."""
        try:
            lines = (self._cluster / "postmaster.pid").read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return True
        return len(lines) >= 5 and lines[4] == str(self._sockets)

    def _command(self) -> list[str]:
        words = [self._programs.program("postgres"), "-D", str(self._cluster)]
        for name, value in self._settings().items():
            words += ["-c", f"{name}={value}"]
        return words

    def _settings(self) -> dict[str, str | int | float]:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MEGABYTE
        return {
            "listen_addresses": "",
            "unix_socket_directories": str(self._sockets),
            "unix_socket_permissions": "0700",
            "shared_buffers": f"{max(16, min(256, memory // 8))}MB",
            "max_connections": 100,
            "max_wal_size": "1GB",
            "checkpoint_timeout": "15min",
            "autovacuum_naptime": "10s",
            "random_page_cost": 1.1,
            "jit": "off",
            "log_min_messages": "warning",
            "idle_in_transaction_session_timeout": "60s",
        }


def _tail(log: BinaryIO, start: int) -> str:
    log.seek(start)
    return log.read(64 * 1024).decode("utf-8", "replace")


def _reason(told: str) -> str:
    fatal = [line.split("FATAL:")[1].strip() for line in told.splitlines() if "FATAL:" in line]
    return fatal[0] if fatal else "it ended without a word"
