"""A Citus cluster: a coordinator and nodes, of PostgreSQL 15 with the extension built from its source.

Citus is under the AGPL: it is built and run for tests only. Its source is a suite (`TAMIAS_SUITES`).
"""

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg

from servers.packages import NotRun, debian, installed, is_installed, program
from servers.postgres import DEBIAN_15, OWNER, PostgresServer
from servers.postgres import start as start_postgres

VERSION = "13.2.2"
NAME = f"citus {VERSION} with {' '.join(DEBIAN_15)}"
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


def is_built() -> bool:
    """Whether a cluster can be started without minutes of compiling."""
    return is_installed(NAME)


def build(source: Path) -> Path:
    """The programs of a PostgreSQL 15 that has Citus, built once."""
    if not is_built() and not source.exists():
        raise NotRun(f"Citus is not built, and its source is not at {source}")
    plain = debian(*DEBIAN_15)

    def compile_all(folder: Path) -> None:
        shutil.copytree(plain, folder, symlinks=True, dirs_exist_ok=True)
        (folder / "complete").unlink()
        with tarfile.open(source) as tar:
            tar.extractall(folder / "source", filter="data")
        _compile(folder, next((folder / "source").rglob("configure")).parent)
        shutil.rmtree(folder / "source")

    return installed(NAME, compile_all) / "usr/lib/postgresql/15/bin"


def _compile(root: Path, source: Path) -> None:
    header = source / "src/include/pg_version_compat.h"
    # The server has a function of that name since 15.19.
    header.write_text(
        re.sub(
            r"\bhave_createdb_privilege\(void\)", "citus_have_createdb_privilege(void)", header.read_text()
        )
    )
    libraries = root / "usr/lib/x86_64-linux-gnu"
    environment = {
        **os.environ,
        "PG_CONFIG": str(root / "usr/lib/postgresql/15/bin/pg_config"),
        "LD_LIBRARY_PATH": str(libraries),
        "CPPFLAGS": f"-I{root}/usr/include -I{root}/usr/include/mit-krb5 -I{root}/usr/include/postgresql",
        "LDFLAGS": f"-L{libraries}",
    }
    make = [program("nice"), program("make"), "-s", "with_llvm=no"]
    without = ("--without-libcurl", "--without-lz4", "--without-zstd")
    for command in (["./configure", *without], [*make, "extension"], [*make, "install-extension"]):
        done = subprocess.run(
            command, cwd=source, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NotRun(f"{' '.join(command)} failed: {(done.stderr or done.stdout)[-600:]}")


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
