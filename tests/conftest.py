"""What several tests share: the public test data, unpacked where it is to be had."""

import gc
import os
import re
import signal
import subprocess
import sys
import tarfile
import tomllib
from contextlib import closing
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests import commands
from tests.examples import examples

# Hundreds of commands are run: each would compile all of Tamias where the machine forbids to keep bytecode,
# and each process of the tests would rewrite the assertions of all files.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that starts the tests in the background makes them ignore SIGINT, and commands would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _files_in_memory():
    """Whether /dev/shm has room for what the tests write at any one time, and lets programs be run."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        return False
    stats, lines = os.statvfs(memory), Path("/proc/meminfo").read_text().splitlines()
    available = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    room = min(stats.f_bavail * stats.f_frsize, available)
    return room > 8 << 30 and not stats.f_flag & os.ST_NOEXEC


# A thousand databases of as many files are copied and removed: in memory that takes a fifth of the time.
# Whoever names a place, by TMPDIR or --basetemp, has it.
if "TMPDIR" not in os.environ and _files_in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

ROOT = Path(__file__).resolve().parent.parent
# It is read by type checkers, and not to be run.
collect_ignore = ["unit/user_script.py"]
SUITES = Path(os.environ.get("TAMIAS_SUITES", ROOT.parent / "shared" / "suites"))
NIGHTLY = bool(os.environ.get("TAMIAS_NIGHTLY"))
"""Set by `make nightly`: everything, with many examples."""
_RING = re.compile(r"^\| `(tests/[^`]*)` \| (test|nightly)\b", re.MULTILINE)


def pytest_collection_modifyitems(config, items):
    """Leaves out what is for the night: what is marked so, and what the table of CONTRIBUTING.md says."""
    rings = dict(_RING.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))

    def is_nightly(item):
        names = [name for name in rings if item.nodeid.startswith(name)]
        return item.get_closest_marker("nightly") or rings[max(names, key=len)] == "nightly"

    left_out = [] if NIGHTLY else [item for item in items if is_nightly(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Tests are many objects that stay: nobody looks through them for garbage, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collect_file(file_path, parent):
    """Before a test file that uses Hypothesis is imported, and only then: to load it takes a second."""
    if "hypothesis" not in sys.modules and b"\nfrom hypothesis import" in file_path.read_bytes():
        _be_patient()


def _be_patient():
    """Machines are noisy: how long an example takes, or takes to be made, is no reason to fail."""
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "patient",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        max_examples=examples(100),
    )
    settings.load_profile("patient")


def pytest_sessionstart(session):
    """Plug-ins are found by what was installed, which a change of pyproject.toml leaves behind."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        groups = tomllib.load(file)["project"]["entry-points"]
    wanted = {(group, name, target) for group, parts in groups.items() for name, target in parts.items()}
    found = {(each.group, each.name, each.value) for each in distribution("tamias").entry_points}
    if wanted != {each for each in found if each[0] != "console_scripts"}:
        again = ".venv/bin/pip install --no-deps --no-build-isolation -e ."
        pytest.exit(f"the installed plug-ins are not those of pyproject.toml: {again}", returncode=4)


@pytest.fixture(scope="session")
def suites(tmp_path_factory):
    """`suites(name)` is the folder of an unpacked public suite; the test is skipped where it is absent."""

    def unpacked(name):
        packed = (SUITES / f"{name}.tar.{codec}" for codec in ("gz", "xz"))
        archive = next((each for each in packed if each.exists()), None)
        if archive is None:
            pytest.skip(f"public suite {name} is not at {SUITES}")
        folder = tmp_path_factory.getbasetemp() / f"suite-{name}"
        if not folder.exists():
            partial = folder.with_name(folder.name + ".partial")
            with tarfile.open(archive) as tar:
                safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                tar.extractall(partial, **safely)
            partial.rename(folder)
        return folder

    return unpacked


@pytest.fixture(scope="session")
def database(tmp_path_factory):
    """An embedded database for the whole run; tests that write to it take `clean_database`."""
    from tamias.database.connect import Database

    database = Database(tmp_path_factory.mktemp("data"))
    yield database
    database.close()


@pytest.fixture
def clean_database(database):
    """The same with empty tables and one bucket."""
    with closing(database.session()) as session:
        session.transact(empty_tables)
    return database


@pytest.fixture(scope="session")
def administrator(tmp_path_factory):
    """How to connect to a server of somebody else as its superuser, who is asked for no password."""
    from tamias.features.embedded import server
    from tamias.features.embedded.server import Server, server_account

    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "socket").mkdir()
    account, programs = server_account(folder), server.newest()
    account.own(folder)
    words = [
        "-D",
        str(folder / "pg"),
        "-U",
        "boss",
        "--auth=trust",
        "--locale=C",
        "--encoding=UTF8",
        "--no-sync",
    ]
    subprocess.run(
        [programs.program("initdb"), *words],
        check=True,
        capture_output=True,
        preexec_fn=account.enter(),
    )
    server = Server(folder / "pg", programs, account, folder / "log")
    server.start()
    yield {"host": str(folder / "socket"), "port": 5432, "user": "boss", "dbname": "postgres"}
    server.stop()


def empty_tables(cursor):
    """Leaves the schema, takes the rows."""
    cursor.execute(
        "TRUNCATE host, queue, url, capture, stored_file, robots, unreachable, sink, outbox, placed, "
        "current_document"
    )
    cursor.execute("DELETE FROM crawl WHERE crawl > 2")
    cursor.execute("UPDATE meta SET buckets = 1")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file is run by one process, for what its tests share takes long to make.

    The files keep their order: the quick ones of tests/unit are last, so that all processes end together.
    """
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


def pytest_terminal_summary(terminalreporter):
    """In continuous integration a suite that is at hand and was skipped is a failure."""
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if "public suite" in str(report.longrepr)
    ]
    if os.environ.get("CI") and SUITES.is_dir() and skipped:
        terminalreporter.write_line(
            f"{len(skipped)} tests skipped a suite although {SUITES} is there", red=True
        )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """The exit code that goes with it, and the end of the process that forks commands."""
    commands.close()
    gc.unfreeze()  # or extension modules complain that their objects were never freed
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if (
        os.environ.get("CI")
        and SUITES.is_dir()
        and any("public suite" in str(each.longrepr) for each in skipped)
    ):
        session.exitstatus = 1
