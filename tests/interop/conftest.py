"""Real servers for the tests of this folder, and the table of what was copied from each."""

import os
from contextlib import ExitStack

import pytest

FULL = bool(os.environ.get("TAMIAS_NIGHTLY"))
"""Set by `make nightly`: all servers, at full size."""
TABLE = pytest.StashKey[list[str]]()
AGREEMENT = pytest.StashKey[list[str]]()
HEAD = (
    f"{'server':<18}{'expected':>10}{'got':>10}  {'':<10}{'requests':>9}{'command':>9}{'visit':>9}"
    f"{'naive loop':>12}"
)
"""Seconds of the whole command, which makes a database first, and of the visit alone."""


@pytest.fixture(scope="session")
def table(request):
    """Lines of the table that is printed at the end of the run."""
    return request.config.stash.setdefault(TABLE, [])


@pytest.fixture(scope="session")
def agreement(request):
    """Lines of the table of readers that agree with ours or not, printed at the end of the run."""
    return request.config.stash.setdefault(AGREEMENT, [])


@pytest.fixture
def started(tmp_path, table):
    """`started(module, name, **options)` is a running server.

    Where it cannot run, the test is skipped and says so. A server that `make nightly` must show fails the run
    instead.
    """
    from servers.packages import NotRun

    with ExitStack() as stack:

        def start(module, name, *, required=False, **options):
            folder = tmp_path / "server"
            folder.mkdir()
            try:
                return stack.enter_context(module.start(folder, **options))
            except NotRun as reason:
                table.append(f"{name:<18}NOT RUN: {reason}")
                if FULL and required:
                    pytest.fail(f"{name} must run for `make nightly`: {reason}")
                pytest.skip(f"{name} not run: {reason}")

        yield start


def pytest_terminal_summary(terminalreporter, config):
    """Prints the tables."""
    if lines := config.stash.get(TABLE, []):
        terminalreporter.section("copies of real servers")
        for line in (HEAD, *lines):
            terminalreporter.write_line(line)
    if lines := config.stash.get(AGREEMENT, []):
        terminalreporter.section("files read by others and by us")
        for line in lines:
            terminalreporter.write_line(line)
