"""Real Tamias processes on a real data directory, and what is seen of them from outside."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest

from tamias.database.connect import Database
from tamias.features.embedded.keeper import Running

SCRIPT = Path(__file__).with_name("user_process.py")
PATIENCE = 300.0


class User:
    """A process that uses a database; `sql` waits for its answer."""

    def __init__(self, path, *, env=None, account=None, script=SCRIPT, **words):
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(path), json.dumps(words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
            **(account or {}),
        )

    def sql(self, statement):
        self.process.stdin.write(statement + "\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self):
        line = self.process.stdout.readline()
        assert line, "the process ended without a word"
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.end()


class Place:
    """A data directory, the processes that use it and the ones that serve it."""

    def __init__(self, path):
        self.path = path
        self.users = []

    def user(self, **words):
        """A process that has the database open, or has said why not."""
        user = self.begin(**words)
        user.opened = user.hear()
        return user

    def begin(self, **words):
        """The same, still opening."""
        self.users.append(User(self.path, **words))
        return self.users[-1]

    def running(self):
        return Running(**json.loads((self.path / "pg" / "running.json").read_bytes()))

    def kill(self, which):
        """Kills the keeper or the server, by `running()`'s word; false if it was gone already."""
        try:
            os.kill(getattr(self.running(), f"{which}_pid"), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            return False
        return True

    def processes(self):
        """The process ids of keepers and servers at work here."""
        return [
            int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._has(entry)
        ]

    def wait_until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain; running: {self.processes()}"
            time.sleep(0.02)

    def wait_until_nothing_runs(self):
        self.wait_until(lambda: not self.processes())

    def end(self):
        for user in self.users:
            if user.process.poll() is None:
                user.process.kill()
            user.end()

    def _has(self, process):
        place = os.fsencode(self.path)
        try:
            words = (process / "cmdline").read_bytes()
            inside = os.fsencode((process / "cwd").readlink()).startswith(place + b"/pg")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return False
        return inside or (
            place in words and (b"tamias.features.embedded.keeper" in words or b"bin/postgres" in words)
        )


@pytest.fixture
def tmp_path():
    """A private folder, gone after the test; in memory where there is room: no kill -9 needs a disk."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    folder = Path(tempfile.mkdtemp(prefix="tamias-test-", dir=memory if roomy else None))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def place_at(tmp_path):
    """`place_at(path)` is a data directory there; whatever a test did, nothing may be left running on it."""
    places = []

    def make(path):
        places.append(Place(path))
        return places[-1]

    yield make
    for place in places:
        place.end()
    for place in places:
        place.wait_until_nothing_runs()


@pytest.fixture
def new_place(place_at, tmp_path):
    """A data directory that is not there yet."""
    return place_at(tmp_path / "data")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """A data directory with a database in it, to be copied: that is quicker than to make one."""
    place = Place(tmp_path_factory.mktemp("made") / "data")
    Database(place.path).close()
    place.wait_until_nothing_runs()
    return place.path


@pytest.fixture
def place(new_place, made_once):
    """A data directory with a new database, not in use."""
    shutil.copytree(made_once, new_place.path)
    return new_place


@pytest.fixture
def session(place):
    """A session of this very process."""
    with closing(Database(place.path)) as database, closing(database.session()) as session:
        yield session


@pytest.fixture
def ask():
    """`ask(session, statement, parameters)`: the rows of one statement in one transaction."""

    def run(session, statement, parameters=None):
        def work(cursor):
            cursor.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

        return session.transact(work)

    return run


@pytest.fixture
def as_root():
    """Skips where the test is not run by root."""
    if os.geteuid() != 0:
        pytest.skip("only root can do this")


@pytest.fixture
def small_disk(as_root, tmp_path):
    """`small_disk(megabytes)` is a file system of that size."""
    mounted = []

    def mount(megabytes):
        folder = tmp_path / f"disk-{megabytes}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
