"""Database servers that tests share: each test has the whole database to itself, and finds it new.

To copy, start, stop and remove a server takes longer than most commands. Here the `pg` of a data directory
is a link to that of a running server, whose database is replaced by a copy of a new one between tests. For
Tamias nothing is different: it finds keeper, locks, socket and password where it looks for them.
"""

import json
import os
import shutil
import signal
from contextlib import closing, suppress

import psycopg

from tamias.database.embedded_server import DATABASE, OWNER, Embedded, clusters, wait_until_unused
from tamias.features.embedded import server
from tamias.features.embedded.server import run_single_session, server_account

_TESTER = "tester"
_NEW = "untouched"


class SharedServers:
    """As many as one test needs at the same time; they are started when there is no other that is free."""

    def __init__(self, made, folder):
        self._made = made
        self._folder = folder
        self._count = 0
        self._free = []

    def lend(self, data):
        """A server with a new database, for a data directory that is made."""
        if not self._free:
            self._count += 1
            self._free.append(SharedServer(self._made, self._folder / str(self._count)))
        server = self._free.pop()
        server.lend(data)
        return server

    def take_back(self, server):
        """Others have it next, if it was not ended."""
        if server.renew():
            self._free.append(server)
        else:
            server.close()

    def close(self):
        for each in self._free:
            each.close()


class SharedServer:
    """One running server, lent to one data directory after another."""

    def __init__(self, made, data):
        """`made` is a data directory with a new database, and no server; `data` is to be the server's own."""
        shutil.copytree(made, data)
        self._data = data
        self.folder = data / "pg"
        [cluster] = clusters(self.folder)
        account = server_account(self.folder)
        account.own(self.folder)
        script = f"CREATE ROLE {_TESTER} SUPERUSER LOGIN;\n\n".encode()
        run_single_session(cluster, server.newest(), account, script)
        self._use = Embedded(data)
        self._use.address()
        self._running = self._state()
        with (cluster / "pg_hba.conf").open("a") as hosts:
            hosts.write(f"local template1 {_TESTER} trust\n")
        os.kill(self._running["server_pid"], signal.SIGHUP)
        self._administer(f"CREATE DATABASE {_NEW} TEMPLATE {DATABASE} OWNER {OWNER}")

    def lend(self, data):
        """Makes a data directory that it is the server of."""
        data.mkdir(mode=0o700)
        (data / "log").mkdir(mode=0o700)
        (data / "pg").symlink_to(self.folder)

    def renew(self):
        """Takes what was written; false if it is not the server any more that it was."""
        if self._state().get("keeper_pid") != self._running["keeper_pid"]:
            return False
        made = f"CREATE DATABASE {DATABASE} TEMPLATE {_NEW} OWNER {OWNER} STRATEGY FILE_COPY"
        self._administer(f"DROP DATABASE {DATABASE} WITH (FORCE)", made)
        shutil.rmtree(self.folder / "workers", ignore_errors=True)
        return True

    def close(self):
        self._use.close()
        wait_until_unused(self._data)
        shutil.rmtree(self._data)

    def _state(self):
        with suppress(FileNotFoundError):
            return json.loads((self.folder / "running.json").read_bytes())
        return {}

    def _administer(self, *statements):
        place = {"host": self._use._sockets(), "port": 5432, "user": _TESTER, "dbname": "template1"}
        with closing(psycopg.connect(**place, autocommit=True)) as connection:
            for statement in statements:
                connection.execute(statement)
