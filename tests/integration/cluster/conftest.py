"""A real Citus cluster, PostgreSQL servers of every version, a pooler; and the table of what ran on them.

`make cluster-test` runs all of it, and builds Citus first. Without it, only what needs no building is run.
"""

import os

import pytest
from servers import citus as citus_server
from servers.packages import NotRun

from tests.conftest import SUITES

FULL = bool(os.environ.get("TAMIAS_CLUSTER"))
"""Set by `make cluster-test`."""
SOURCE = SUITES / f"citus-{citus_server.VERSION}-source.tar.gz"
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
        pytest.skip("a Citus cluster is built and run by `make cluster-test`")
    programs = run_or_skip("Citus", lambda: citus_server.build(SOURCE))
    with citus_server.start(tmp_path_factory.mktemp("citus"), programs) as cluster:
        yield cluster


def pytest_terminal_summary(terminalreporter, config):
    """Prints the table."""
    if lines := config.stash.get(TABLE, []):
        terminalreporter.section("databases of many machines")
        for line in lines:
            terminalreporter.write_line(line)
