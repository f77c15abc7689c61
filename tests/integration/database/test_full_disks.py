"""A disk without any room: every command says so in a sentence and ends with 12, and nothing is damaged."""

import os

import pytest

from tests.integration.conftest import Tamias

COMMANDS = {
    "query": ("query", "ASK {}"),
    "serve": ("serve", "--port", "8099"),
    "export": ("export",),
    "list": ("list",),
    "add": ("add", "http://127.0.0.1:8099/other"),
    "crawl": ("crawl", "--allow-private", "http://127.0.0.1:8099/"),
}


def fill(disk):
    """Not a byte is left."""
    with (disk / "other files").open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    assert os.statvfs(disk).f_bavail == 0


@pytest.mark.parametrize("megabytes", [1, 24, 41])
@pytest.mark.parametrize("command", ["add", "serve"])
def test_a_first_start_without_room_says_so(small_disk, command, megabytes):
    tamias = Tamias(small_disk(megabytes) / "data")
    verb, *words = COMMANDS[command]
    done = tamias.run(verb, *words)
    tamias.end()
    assert done.returncode == 12, done.stderr
    assert "no disk space" in done.stderr


def test_every_command_on_a_full_disk_says_so(small_disk):
    disk = small_disk(100)
    tamias = Tamias(disk / "data")
    assert tamias.run("add", "http://127.0.0.1:8099/a").returncode == 0
    tamias.end()
    fill(disk)
    for verb, *words in COMMANDS.values():
        done = tamias.run(verb, *words)
        assert (verb, done.returncode) == (verb, 12), done.stderr
        assert "disk space" in done.stderr or "No space left" in done.stderr
        assert "Traceback" not in done.stderr
    tamias.end()
    (disk / "other files").unlink()
    done = tamias.run("check")
    assert done.returncode == 0, done.stdout + done.stderr
    tamias.end()
