"""The keeper: a small process that owns the embedded server of one data directory.

Every Tamias process holds a shared lock on `pg/users.lock`. The keeper stops the server when it can have the
lock alone, starts it again when it dies, and takes it along when it is killed itself.
"""

import os
import select
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

import msgspec

from tamias.database.disk import refusals
from tamias.database.embedded.account import ServerAccount, server_account
from tamias.database.embedded.cluster import ready_cluster
from tamias.database.embedded.server import Server
from tamias.database.locks import alone, opened, try_alone
from tamias.model.errors import DatabaseError, TamiasError

_POLL_SECONDS = 0.2
_LOCK_SECONDS = 30
_LOG_LIMIT = 10 << 20
_RESTARTS = 20
_RESTART_WINDOW = 60.0


class Running(msgspec.Struct, frozen=True):
    """What the keeper tells its users, in `pg/running.json`, for as long as they may connect."""

    server_pid: int
    keeper_pid: int


class StartReport(msgspec.Struct, frozen=True):
    """The keeper's one message to the process that started it: ready, or what went wrong."""

    error: str | None = None
    message: str = ""


def main() -> None:
    """`python -m tamias.database.embedded.keeper DATA READY_FD`, started by `embedded.py` only."""
    folder = Path(sys.argv[1]) / "pg"
    with os.fdopen(int(sys.argv[2]), "wb", buffering=0) as ready:
        _forget_surroundings()
        try:
            with refusals(folder), alone(folder / "keeper.lock", _LOCK_SECONDS):
                # So that nobody who lives longer has to wait for the keeper. The lock goes with it: whoever
                # sees the first process end knows by the lock whether there is a second.
                if os.fork() != 0:
                    os._exit(0)
                _keep(folder, ready)
        except TamiasError as error:
            _tell(ready, StartReport(type(error).__name__, str(error)))
            with suppress(OSError):  # on a full disk there is no room for this either
                sys.stderr.write(f"{error}\n")
                sys.stderr.flush()


def _forget_surroundings() -> None:
    """The user's settings for PostgreSQL's programs and for language are not meant for our server.

    Until the server is to be started, any signal simply ends the keeper; initdb and pg_upgrade go on without.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
    os.environ["LC_ALL"] = "C"


def _keep(folder: Path, ready: IO[bytes]) -> None:
    running = folder / "running.json"
    running.unlink(missing_ok=True)
    server = _server(folder)
    with opened(folder / "users.lock") as users:
        if try_alone(users):
            return  # whoever wanted the server has been ended meanwhile
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        server.start()
        _publish(running, server)
        _tell(ready, StartReport())
        _watch(folder, running, server)
    finally:
        running.unlink(missing_ok=True)
        server.stop()


def _server(folder: Path) -> Server:
    account = server_account(folder)
    account.own(folder)
    account.must_reach(folder)
    _make_sockets(folder / "socket", account)
    log = _log_file(folder)
    cluster, programs = ready_cluster(folder, account)
    return Server(cluster, programs, account, log)


def _watch(folder: Path, running: Path, server: Server) -> None:
    """Until nobody uses the server. A server that dies is started again, but not for ever."""
    restarts: list[float] = []
    with opened(folder / "users.lock") as users:
        while not try_alone(users):
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
            _publish(running, server)
        # The lock is held meanwhile, so a newcomer waits for a clean stop.
        running.unlink()
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


def _make_sockets(sockets: Path, account: ServerAccount) -> None:
    shutil.rmtree(sockets, ignore_errors=True)
    sockets.mkdir(mode=0o700)
    account.own(sockets)


def _log_file(folder: Path) -> Path:
    logs = folder.parent / "log"
    logs.mkdir(mode=0o700, exist_ok=True)
    log = logs / "postgres.log"
    if log.exists() and log.stat().st_size > _LOG_LIMIT:
        log.replace(logs / "postgres.log.old")
    return log


def _publish(running: Path, server: Server) -> None:
    partial = running.with_name("running.json.new")
    partial.write_bytes(msgspec.json.encode(Running(server.pid, os.getpid())))
    partial.replace(running)


def _tell(ready: IO[bytes], told: StartReport) -> None:
    """Says it once: later there is nobody to listen."""
    if not ready.closed:
        with suppress(BrokenPipeError), ready:
            ready.write(msgspec.json.encode(told) + b"\n")


def _leave(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
