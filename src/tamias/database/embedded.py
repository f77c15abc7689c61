"""A Tamias process and the embedded server: holds the users' lock and sees to it that a keeper is there."""

import contextlib
import fcntl
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import msgspec

from tamias.database.cluster import SUPERUSER
from tamias.database.keeper import Running, Told, lock_file
from tamias.model import errors
from tamias.model.errors import DatabaseError, DataInUse, DataMissing, DiskFull

_NEWCOMER_SECONDS = 120


class Embedded:
    """This process's use of the server of one data directory, from now until `close`."""

    def __init__(self, data: Path, *, create: bool = True) -> None:
        self._folder = data.absolute() / "pg"
        if not create and not self._folder.is_dir():
            raise DataMissing(f"there is no Tamias data at {data}; 'tamias crawl' or 'tamias add' makes it")
        self._make_folder()
        self._users = _share(self._folder / "users.lock")
        self._worker_lock: IO[bytes] | None = None
        self._keepers: list[subprocess.Popen[bytes]] = []
        self.worker = 0

    def address(self) -> str:
        """Where to connect to. Starts a keeper if there is none; cheap when there is one."""
        with lock_file(self._folder / "start.lock").open("rb") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if _is_free(self._folder / "keeper.lock"):
                self._start_keeper()
            running = self._running()
        return f"host={running.sockets} port=5432 user={SUPERUSER} dbname=postgres"

    def enrol(self) -> int:
        """A worker's number, proven alive by a file lock for as long as this process lives."""
        folder = self._folder / "workers"
        folder.mkdir(mode=0o700, exist_ok=True)
        self.worker = secrets.randbelow(2**31 - 1) + 1
        # Locked before it has its name: nobody can take it for a dead worker's.
        nameless = folder / f".{self.worker}"
        self._worker_lock = nameless.open("wb")
        fcntl.flock(self._worker_lock, fcntl.LOCK_EX)
        nameless.rename(folder / str(self.worker))
        return self.worker

    def dead_workers(self) -> list[int]:
        """The numbers of workers whose process is gone; `forget` each when its leases are given back."""
        folder = self._folder / "workers"
        if not folder.is_dir():
            return []
        numbers = [path.name for path in folder.iterdir() if path.name.isdigit()]
        return [int(name) for name in numbers if int(name) != self.worker and _is_free(folder / name)]

    def forget(self, worker: int) -> None:
        """A dead worker's leases are given back; its lock file can go."""
        (self._folder / "workers" / str(worker)).unlink(missing_ok=True)

    def close(self) -> None:
        """This process needs the server no more; the last one to say so ends it."""
        if self._worker_lock is not None:
            self._worker_lock.close()
        self._users.close()
        for keeper in self._keepers:
            keeper.returncode = 0  # it may outlive us on purpose: others can still be using the server

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        except OSError as error:
            kind = DiskFull if error.errno in (28, 122) else DatabaseError
            raise kind(f"cannot make {self._folder}: {error.strerror}; choose another --data") from error

    def _start_keeper(self) -> None:
        reading, writing = os.pipe()
        command = [sys.executable, "-m", "tamias.database.keeper", str(self._folder.parent), str(writing)]
        with _log(self._folder.parent) as log, os.fdopen(reading, "rb") as answer:
            # Its parent need not wait for it, and a terminal's Ctrl-C must not reach it.
            keeper = subprocess.Popen(
                command,
                pass_fds=[writing],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            os.close(writing)
            told = answer.read(64 * 1024)
        self._keepers = [each for each in [*self._keepers, keeper] if each.poll() is None]
        if not told:
            raise DatabaseError(f"the database keeper ended at once; see {self._folder.parent / 'log'}")
        _raise_told(msgspec.json.decode(told, type=Told))

    def _running(self) -> Running:
        deadline = time.monotonic() + _NEWCOMER_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                return msgspec.json.decode((self._folder / "running.json").read_bytes(), type=Running)
            if _is_free(self._folder / "keeper.lock"):
                self._start_keeper()
            time.sleep(0.05)
        raise DataInUse(f"the keeper of {self._folder} does not answer; look for its process and end it")


def _share(path: Path) -> IO[bytes]:
    """A shared lock; waits while a keeper is stopping the server."""
    handle = lock_file(path).open("rb")
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def _is_free(path: Path) -> bool:
    with lock_file(path).open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _log(data: Path) -> IO[bytes]:
    (data / "log").mkdir(exist_ok=True)
    return (data / "log" / "keeper.log").open("ab")


def _raise_told(told: Told) -> None:
    if told.error is not None:
        raise getattr(errors, told.error, DatabaseError)(told.message)
