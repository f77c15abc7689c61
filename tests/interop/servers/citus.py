"""A Citus cluster: a coordinator and nodes, of an installation that `TAMIAS_CITUS` names.

The folder has the programs of PostgreSQL in `bin` (or in `usr/lib/postgresql/VERSION/bin`) and the extension.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg

from servers.packages import NotRun
from servers.postgres import OWNER, PostgresServer
from servers.postgres import start as start_postgres

VARIABLE = "TAMIAS_CITUS"
_TRIES = 5
SETTINGS = (
    "shared_preload_libraries=citus",
    "wal_level=logical",
    "max_prepared_transactions=200",
    "citus.node_conninfo=sslmode=require",
)


class CitusCluster:
    """Its servers; the first is the coordinator."""

    def __init__(self, servers: list[PostgresServer]) -> None:
        self.coordinator, *self.nodes = servers
        self.servers = servers

    def make_first_database(self, name: str) -> None:
        """As docs/scaling.md tells; Citus makes the roles on the nodes too."""
        self._make_database(name, None)
        self.coordinator.make_owner(name)
        self._give(name)

    def make_database(self, name: str, nodes: int | None = None) -> str:
        """An empty database on all servers, spread over so many nodes, when the roles are there."""
        self._make_database(name, nodes)
        # Citus takes note of roles that are there when something of theirs is made by a superuser.
        self.coordinator.execute(
            "CREATE FUNCTION public.noted() RETURNS int LANGUAGE sql AS 'SELECT 1'", name
        )
        self.coordinator.execute(f"ALTER FUNCTION public.noted() OWNER TO {OWNER}", name)
        self.coordinator.execute("DROP FUNCTION public.noted()", name)
        self._give(name)
        return self.coordinator.url(name)

    def _make_database(self, name: str, nodes: int | None) -> None:
        for server in self.servers:
            server.execute(f"CREATE DATABASE {name}")
            server.execute("CREATE EXTENSION citus", name)
        self.coordinator.execute(
            f"SELECT citus_set_coordinator_host('127.0.0.1', {self.coordinator.port})", name
        )
        for node in self.nodes[:nodes]:
            self.add_node(name, node)

    def _give(self, name: str) -> None:
        self.coordinator.execute(f"ALTER DATABASE {name} OWNER TO {OWNER}", name)

    def add_node(self, name: str, node: PostgresServer) -> None:
        """Makes a server a node of the database's cluster."""
        self.coordinator.execute(f"SELECT citus_add_node('127.0.0.1', {node.port})", name)

    def drop_database(self, name: str) -> None:
        """On all servers."""
        for server in self.servers:
            for _ in range(_TRIES):
                with suppress(psycopg.errors.ObjectInUse):  # a daemon of Citus may just have come
                    server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
                    break


def programs() -> Path:
    """Return the programs of the PostgreSQL with Citus that `TAMIAS_CITUS` names; raise NotRun without it."""
    named = os.environ.get(VARIABLE)
    if not named:
        raise NotRun(f"{VARIABLE} does not name a folder with PostgreSQL and the extension Citus")
    folder = Path(named).absolute()
    for place in (folder / "bin", folder, *sorted(folder.glob("usr/lib/postgresql/*/bin"))):
        if (place / "postgres").exists():
            return place
    raise FileNotFoundError(f"{VARIABLE}={named}: there is no PostgreSQL in this folder")


@contextmanager
def start(folder: Path, bin_folder: Path, nodes: int = 2) -> Iterator[CitusCluster]:
    """A coordinator and so many nodes, with the owner and the roles made on each."""
    with ExitStack() as stack:
        # One certificate for all: who trusts one node trusts the others.
        first = folder / "server-0"
        servers = [stack.enter_context(start_postgres(first, bin_folder, SETTINGS))]
        servers += [
            stack.enter_context(start_postgres(folder / f"server-{number}", bin_folder, SETTINGS, first))
            for number in range(1, nodes + 1)
        ]
        cluster = CitusCluster(servers)
        cluster.make_first_database("first")
        yield cluster
