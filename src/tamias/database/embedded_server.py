"""A Tamias process and the embedded server: holds the users' lock and sees to it that a keeper is there."""

import fcntl
import os
import secrets
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tamias.database.child_server import NEWCOMER_SECONDS, ServerUse
from tamias.database.disk import is_free, is_shared, make_data_folder, opened, refusals
from tamias.model.errors import DatabaseError, DatabaseUnavailable, DataInUse, DataMissing, TamiasError
from tamias.plugins import parts

OLDEST_MAJOR = 15
"""The oldest version of PostgreSQL that is supported."""
OWNER = "tamias_owner"
SUPERUSER = "tamias"
DATABASE = "postgres"
LOGIN_FILE = "password"
"""The file of the owner's password, in the form that libpq reads."""
_STOP_POLL_SECONDS = 0.05
_SOCKET_PATH_LIMIT = 107


def keeper_module() -> str:
    """Return the program that owns the server. Raises `DatabaseError` where no feature has one."""
    found = parts("keepers")
    if "database" not in found:
        raise DatabaseError("the embedded server is off or not installed; name a PostgreSQL server with --db")
    return found["database"]


def clusters(folder: Path) -> list[Path]:
    """The complete clusters in a folder, which need not be there."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return [path for path in folder.iterdir() if path.name.isdigit()]
    return []


class Embedded(ServerUse):
    """The use of a data directory's server by this process, until `close`."""

    failure = DatabaseError
    unavailable = DatabaseUnavailable
    unanswered = DataInUse

    def __init__(self, data: Path, *, create: bool = True) -> None:
        self.keeper = keeper_module()
        self._data = data.absolute()
        folder = self._data / "pg"
        with refusals(folder):
            if not create and not clusters(folder):
                raise DataMissing(
                    f"there is no Tamias data at {data}; 'tamias crawl' or 'tamias add' creates it"
                )
            make_data_folder(self._data)
            folder.mkdir(mode=0o700, exist_ok=True)
            super().__init__(folder)
        self._worker_lock: IO[bytes] | None = None
        self.worker = 0

    def address(self) -> str:
        """Return where to connect to. Starts a keeper if there is none; cheap when there is one."""
        from psycopg.conninfo import make_conninfo  # takes long to load, and the server can start meanwhile

        self.start(str(self._data))
        password = self.folder / LOGIN_FILE
        if not password.exists():
            raise DataInUse(f"an earlier version of Tamias works on {self._data}; end it, then try again")
        # Empty words keep PGHOSTADDR and PGPASSWORD out.
        return make_conninfo(
            host=self._sockets(),
            hostaddr="",
            port=5432,
            user=OWNER,
            password="",
            passfile=str(password),
            dbname=DATABASE,
        )

    def lets_in_without_password(self) -> list[str]:
        """The users whom the server asks for no password; there should be none."""
        from psycopg.conninfo import conninfo_to_dict

        place = {**conninfo_to_dict(self.address()), "password": "wrong"}
        return [user for user in (OWNER, SUPERUSER) if _lets_in({**place, "user": user})]

    def enrol(self) -> int:
        """A worker's number, proven alive by a file lock for as long as this process lives."""
        folder = self.folder / "workers"
        folder.mkdir(mode=0o700, exist_ok=True)
        self.worker = secrets.randbelow(2**31 - 1) + 1
        # Locked before it has its name: nobody can take it for a dead worker's.
        nameless = folder / f".{self.worker}"
        self._worker_lock = opened(nameless)
        fcntl.flock(self._worker_lock, fcntl.LOCK_EX)
        nameless.rename(folder / str(self.worker))
        return self.worker

    def dead_workers(self) -> list[int]:
        """The numbers of workers whose process is gone; `forget` each when its leases are given back."""
        folder = self.folder / "workers"
        return [each for each in self.workers() if each != self.worker and is_free(folder / str(each))]

    def workers(self) -> list[int]:
        """Return the numbers of workers that live, or died and are not forgotten yet."""
        folder = self.folder / "workers"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return [int(name) for name in names if name.isdigit()]

    def forget(self, worker: int) -> None:
        """A dead worker's leases are given back; its lock file can go."""
        (self.folder / "workers" / str(worker)).unlink(missing_ok=True)

    def close(self) -> None:
        """Stop using the server; the last user ends it."""
        if self._worker_lock is not None:
            self._worker_lock.close()
        super().close()

    def _sockets(self) -> str:
        """The socket folder; by way of our descriptor where its path is too long, or reads like a list."""
        near = self.folder / "socket"
        if len(os.fsencode(near / ".s.PGSQL.5432")) <= _SOCKET_PATH_LIMIT and "," not in str(near):
            return str(near)
        return f"/proc/self/fd/{self._directory}/socket"


class EarlyStart:
    """Starts the server of existing data in a thread, while this process imports what will use it.

    Errors are met again by whoever connects first, and told there.
    """

    def __init__(self, data: Path) -> None:
        self._use: Embedded | None = None
        self._thread = threading.Thread(target=self._start, args=(data,), daemon=True)
        self._thread.start()

    def _start(self, data: Path) -> None:
        with suppress(TamiasError, OSError):
            self._use = Embedded(data, create=False)
            self._use.start(str(data.absolute()))

    def close(self) -> None:
        """Wait for the start, then stop using the server. May be called twice."""
        self._thread.join()
        if self._use is not None:
            self._use.close()


def wait_until_unused(data: Path) -> None:
    """Return when the server of a data directory has ended, or at once if others use it."""
    folder = data.absolute() / "pg"
    deadline = time.monotonic() + NEWCOMER_SECONDS
    while (folder / "keeper.lock").exists() and time.monotonic() < deadline:
        if is_free(folder / "keeper.lock") or is_shared(folder / "users.lock"):
            return
        time.sleep(_STOP_POLL_SECONDS)


def _lets_in(place: dict[str, Any]) -> bool:
    import psycopg

    try:
        psycopg.connect(**place, connect_timeout=10).close()
    except psycopg.OperationalError:
        return False
    return True
