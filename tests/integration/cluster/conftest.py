"""A real Citus cluster, PostgreSQL servers of every version, a pooler; and the table of what ran on them.

`make nightly` runs all of it; what needs Citus is not run where `TAMIAS_CITUS` names no installation.
"""

import os
from contextlib import ExitStack

import pytest
from servers import citus as citus_server
from servers import pgbouncer, postgres
from servers.packages import NotRun

FULL = bool(os.environ.get("TAMIAS_NIGHTLY"))
"""Set by `make nightly`."""
TABLE = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def table(request):
    """Lines of the table that is printed at the end of the run."""
    return request.config.stash.setdefault(TABLE, [])


@pytest.fixture(scope="session")
def run_or_skip(table):
    """`run_or_skip(name, start)`: what `start` returns; where that cannot run, the test is skipped."""

    def attempt(name, begin):
        try:
            return begin()
        except NotRun as reason:
            table.append(f"{name:<28}NOT RUN: {reason}")
            pytest.skip(f"{name} not run: {reason}")

    return attempt


@pytest.fixture(scope="session")
def citus(tmp_path_factory, run_or_skip):
    """A coordinator and two nodes."""
    if not FULL:
        pytest.skip("a Citus cluster is run by `make nightly`")
    programs = run_or_skip("Citus", citus_server.programs)
    with citus_server.start(tmp_path_factory.mktemp("citus"), programs) as cluster:
        yield cluster


@pytest.fixture
def database_of(citus):
    """`database_of(name)` is the URL of an empty database on the cluster; with `nodes=0` a plain one."""
    made = []

    def make(name, nodes=None):
        whole = f"{name}_{os.urandom(3).hex()}"
        made.append(whole)
        if nodes == 0:
            return citus.coordinator.make_database(whole)
        return citus.make_database(whole, nodes)

    yield make
    for each in made:
        for server in citus.servers:
            server.execute(f"DROP DATABASE IF EXISTS {each} WITH (FORCE)")


@pytest.fixture(scope="session")
def server_of(tmp_path_factory, run_or_skip):
    """`server_of(major)` runs, takes nobody without TLS and SCRAM, and has an owner who is no superuser."""
    made = {}
    with ExitStack() as stack:

        def start(major):
            if major not in made:
                if not FULL:
                    pytest.skip(f"PostgreSQL {major} with TLS is run by `make nightly`")
                folder = tmp_path_factory.mktemp(f"postgres-{major}")
                programs = run_or_skip(f"PostgreSQL {major}", lambda: postgres.programs(major))
                made[major] = run_or_skip(
                    f"PostgreSQL {major}",
                    lambda: stack.enter_context(postgres.start(folder / "server", programs)),
                )
                made[major].make_owner()
            return made[major]

        yield start


@pytest.fixture
def pooler_of(tmp_path, run_or_skip, server_of):
    """`pooler_of(**settings)` is a PgBouncer before a PostgreSQL 18."""
    if not FULL:
        pytest.skip("PgBouncer is run by `make nightly`")
    with ExitStack() as stack:

        def start(**settings):
            folder = tmp_path / "pooler"
            return run_or_skip(
                "PgBouncer", lambda: stack.enter_context(pgbouncer.start(folder, server_of(18), **settings))
            )

        yield start


def done(result):
    """What a command printed that did not fail."""
    assert result.returncode == 0, result.stderr
    return result.stdout


def pytest_terminal_summary(terminalreporter, config):
    """Prints the table."""
    if lines := config.stash.get(TABLE, []):
        terminalreporter.section("databases of many machines")
        for line in lines:
            terminalreporter.write_line(line)
