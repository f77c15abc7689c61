"""The keeper: a small process that owns the embedded server of one data directory.

Every Tamias process holds a shared lock on `pg/users.lock`. The keeper stops the server when it can have the
lock alone, starts it again when it dies, and takes it along when it is killed itself.
"""

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tamias.database.child_server import (
    Keeping,
    StartReport,
    leave_on,
    run_keeper,
    server_log,
    socket_folder,
)
from tamias.database.disk import opened, try_alone
from tamias.features.embedded.cluster import ready_cluster
from tamias.features.embedded.server import Server, server_account
from tamias.model.errors import DatabaseError
from tamias.model.process import end_process

_POLL_SECONDS = 0.2
_RESTARTS = 20
_RESTART_WINDOW = 60.0


class Running(NamedTuple):
    """The contents of `pg/running.json`, which lets users connect."""

    server_pid: int
    keeper_pid: int


def main() -> None:
    """`python -m tamias.features.embedded.keeper DATA READY_FD`, started by `embedded.py` only."""
    _forget_surroundings()
    run_keeper(Path(sys.argv[1]) / "pg", int(sys.argv[2]), _keep)
    end_process(0)


def _forget_surroundings() -> None:
    """The user's settings for PostgreSQL's programs and for language are not meant for our server.

    Until the server is to be started, any signal simply ends the keeper; initdb and pg_upgrade go on without.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
    os.environ["LC_ALL"] = "C"


def _keep(keeping: Keeping) -> None:
    keeping.withdraw()
    server = _server(keeping.folder)
    with opened(keeping.folder / "users.lock") as users:
        if try_alone(users):
            return  # whoever wanted the server has been ended meanwhile
    leave_on(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    try:
        server.start()
        _publish(keeping, server)
        keeping.report(StartReport())
        _watch(keeping, server)
    finally:
        keeping.withdraw()
        server.stop()


def _publish(keeping: Keeping, server: Server) -> None:
    running = Running(server.pid, os.getpid())
    keeping.publish(json.dumps(running._asdict()).encode())


def _server(folder: Path) -> Server:
    account = server_account(folder)
    account.own(folder)
    account.must_reach(folder)
    account.own(socket_folder(folder))
    log = server_log(folder, "postgres.log")
    cluster, programs = ready_cluster(folder, account)
    return Server(cluster, programs, account, log)


def _watch(keeping: Keeping, server: Server) -> None:
    """Watch the server until nobody uses it; restart it if it dies, but not for ever."""
    restarts: list[float] = []
    with opened(keeping.folder / "users.lock") as users:
        while not try_alone(users):
            _sleep_or_death(server.pid)
            if server.is_running():
                continue
            restarts = [then for then in restarts if time.monotonic() - then < _RESTART_WINDOW]
            if len(restarts) >= _RESTARTS:
                raise DatabaseError(f"the database died {_RESTARTS} times in a minute; see {server.log}")
            restarts.append(time.monotonic())
            server.start()
            _publish(keeping, server)
        # The lock is held meanwhile, so a newcomer waits for a clean stop.
        keeping.withdraw()
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


if __name__ == "__main__":
    main()
