"""The demonstration: what it finds and archives, and the pages that it serves on a terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

import httpx
import pytest

TAMIAS = (sys.executable, "-m", "tamias")
PATIENCE = 120


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What a demonstration without a terminal says, and where it left its data."""
    data = tmp_path_factory.mktemp("demo") / "data"
    done = subprocess.run(
        [*TAMIAS, "demo", "--nodes", "3", "--json", "--data", str(data)],
        check=False, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), data


def test_the_demonstration_finds_every_quad_and_asks_for_nothing_forbidden(told):
    found, _ = told
    assert found["ok"]
    assert (found["missing"], found["disallowed"], found["most_in_flight"]) == (0, 0, 1)


def test_the_demonstration_keeps_a_version_of_every_day(told):
    found, data = told
    done = subprocess.run(
        [*TAMIAS, "versions", found["archive"]["changing"], "--json", "--data", str(data)],
        check=True, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert [version["number"] for version in json.loads(done.stdout)] == [1, 2, 3]


def test_the_demonstration_tells_what_changed_in_a_table(told):
    diff = told[0]["archive"]["diff"]
    assert (diff["kind"], diff["added"], diff["removed"]) == ("rows", 1, 1)
    assert diff["changed"] > 0


class Terminal:
    """A process that believes to talk to a terminal."""

    def __init__(self, *words):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [*TAMIAS, *words], stdin=slave, stdout=slave, stderr=slave, close_fds=True
        )
        os.close(slave)
        self.text = ""

    def read_until(self, pattern):
        """What the pattern finds in all that was said."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < deadline, self.text
            self._read()
        return found

    def _read(self):
        if select.select([self.master], [], [], 1)[0]:
            try:
                self.text += os.read(self.master, 65_536).decode()
            except OSError:
                raise AssertionError(f"it ended: {self.text}") from None

    def close(self):
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.mark.nightly
def test_on_a_terminal_the_demonstration_serves_its_pages_until_it_is_interrupted(tmp_path):
    terminal = Terminal("demo", "--nodes", "3", "--data", str(tmp_path / "data"))
    try:
        address = terminal.read_until(r"The web pages are at (http://127\.0\.0\.1:\d+/)")[1]
        found = httpx.get(
            f"{address}search", params={"q": "prices"}, headers={"Accept": "text/html"}, timeout=30
        )
        assert "/open-data/prices.csv" in found.text
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(60) == 0
    finally:
        terminal.close()
