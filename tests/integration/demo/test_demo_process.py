"""The web as a process of its own."""

import json
import signal
import subprocess
import sys

import msgspec
import pytest

from tamias.demo.server import LoggedRequest


@pytest.fixture
def process(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks.webs.smallweb",
        "--nodes",
        "3",
        "--log",
        str(tmp_path / "log"),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        yield started
        started.kill()


def test_the_process_tells_its_seeds_and_serves_them(process, get):
    ready = json.loads(process.stdout.readline())
    assert str(ready["port"]) in ready["seeds"][0]
    assert {get(seed).status for seed in ready["seeds"]} == {200}


def test_the_process_ends_when_its_stdin_is_closed(process):
    process.stdout.readline()
    process.stdin.close()
    assert process.wait(timeout=20) == 0


def test_the_process_ends_when_it_is_terminated(process):
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0


def test_the_process_leaves_its_log(process, get, tmp_path):
    seed = json.loads(process.stdout.readline())["seeds"][0]
    get(seed)
    process.stdin.close()
    process.wait(timeout=20)
    lines = (tmp_path / "log").read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=LoggedRequest).url for line in lines] == [seed]
