"""The keeper: a small process that owns the embedded server of one data directory.

Every Tamias process holds a shared lock on `pg/users.lock`. The keeper stops the server when it can have the
lock alone, starts it again when it dies, and takes it along when it is killed itself.
"""

import fcntl
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

import msgspec

from tamias.database.account import server_account
from tamias.database.cluster import ready_cluster
from tamias.database.server import Server
from tamias.model.errors import DatabaseError, DataInUse, TamiasError

_POLL_SECONDS = 0.2
_SOCKET_PATH_LIMIT = 107
_LOG_LIMIT = 10 << 20
_RESTARTS = 20
_RESTART_WINDOW = 60.0


class Running(msgspec.Struct, frozen=True):
    """What the keeper tells its users, in `pg/running.json`."""

    sockets: str
    server_pid: int
    keeper_pid: int


class Told(msgspec.Struct, frozen=True):
    """The keeper's one message to the process that started it: ready, or what went wrong."""

    error: str | None = None
    message: str = ""


def main() -> None:
    """`python -m tamias.database.keeper DATA READY_FD`, started by `embedded.py` only."""
    folder, ready = Path(sys.argv[1]) / "pg", int(sys.argv[2])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _leave)
    with lock_file(folder / "keeper.lock").open("rb") as keeper_lock:
        if not _wait_alone(keeper_lock, seconds=30):
            _tell(ready, DataInUse(f"{folder} is held by a keeper that does not end; look for its process"))
            return
        _keep(folder, ready)


def lock_file(path: Path) -> Path:
    """The file itself, made if need be; what is locked is never deleted."""
    path.touch(mode=0o600, exist_ok=True)
    return path


def _keep(folder: Path, ready: int) -> None:
    sockets = _socket_folder(folder)
    server: Server | None = None
    try:
        server = _start(folder, sockets)
        _publish(folder, sockets, server)
        _tell(ready, None)
        _watch(folder, sockets, server)
    except TamiasError as error:
        _tell(ready, error)
    finally:
        with suppress(FileNotFoundError):
            (folder / "running.json").unlink()
        if server is not None:
            server.stop()
        shutil.rmtree(sockets, ignore_errors=True)


def _start(folder: Path, sockets: Path) -> Server:
    account = server_account()
    account.own(sockets)
    cluster, programs = ready_cluster(folder, sockets, account)
    server = Server(cluster, programs, account, sockets, _log_file(folder))
    server.start()
    return server


def _watch(folder: Path, sockets: Path, server: Server) -> None:
    """Until nobody uses the server. A server that dies is started again, but not for ever."""
    restarts: list[float] = []
    with lock_file(folder / "users.lock").open("rb") as users:
        while not _try_alone(users):
            _sleep_or_death(server.pid)
            if server.poll() is None:
                continue
            restarts = [then for then in restarts if time.monotonic() - then < _RESTART_WINDOW]
            if len(restarts) >= _RESTARTS:
                raise DatabaseError(
                    f"the database died {_RESTARTS} times in a minute; see {_log_file(folder)}"
                )
            restarts.append(time.monotonic())
            server.start()
            _publish(folder, sockets, server)
        # The lock is held meanwhile, so a newcomer waits for a clean stop.
        with suppress(FileNotFoundError):
            (folder / "running.json").unlink()
        server.stop()


def _sleep_or_death(pid: int) -> None:
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([watched], [], [], _POLL_SECONDS)
    finally:
        os.close(watched)


def _socket_folder(folder: Path) -> Path:
    """`pg/socket`, or a private folder elsewhere when that path is too long for a socket."""
    near = folder / "socket"
    if len(os.fsencode(near / ".s.PGSQL.5432")) >= _SOCKET_PATH_LIMIT:
        return Path(tempfile.mkdtemp(prefix="tamias-"))
    shutil.rmtree(near, ignore_errors=True)
    near.mkdir(mode=0o700)
    return near


def _log_file(folder: Path) -> Path:
    logs = folder.parent / "log"
    logs.mkdir(exist_ok=True)
    log = logs / "postgres.log"
    if log.exists() and log.stat().st_size > _LOG_LIMIT:
        log.replace(logs / "postgres.log.old")
    return log


def _publish(folder: Path, sockets: Path, server: Server) -> None:
    note = Running(str(sockets), server.pid, os.getpid())
    partial = folder / "running.json.new"
    partial.write_bytes(msgspec.json.encode(note))
    partial.replace(folder / "running.json")


def _tell(ready: int, error: TamiasError | None) -> None:
    told = Told() if error is None else Told(type(error).__name__, str(error))
    with suppress(OSError):
        os.write(ready, msgspec.json.encode(told))
        os.close(ready)


def _try_alone(handle: IO[bytes]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_alone(handle: IO[bytes], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not _try_alone(handle):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _leave(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
