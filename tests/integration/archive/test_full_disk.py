"""A full disk: the crawl pauses, says so, and goes on when there is room."""

import json
import os
import random
import subprocess
from contextlib import closing

import pytest

from tamias.archive.reader.library import ArchiveReader
from tests.messages import unsaid

PAGES = 8
PAGE_BYTES = 500_000


@pytest.fixture
def tamias(fresh):
    return fresh("data")


@pytest.fixture
def pages(site, reply):
    """More than the small disk holds, and not to be compressed."""
    found = {f"/{number}.bin": random.Random(number).randbytes(PAGE_BYTES) for number in range(PAGES)}
    site.pages |= {
        path: reply(200, body, Content_Type="application/octet-stream") for path, body in found.items()
    }
    return {site.url(path): body for path, body in found.items()}


@pytest.fixture
def disk(tamias):
    """`disk(megabytes)` is where the blobs are; `disk(megabytes, "remount")` changes its size."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = tamias.data / "blobs"
    folder.mkdir()

    def mount(megabytes, *options):
        words = ["-o", ",".join([f"size={megabytes}m", *options]), "tmpfs", str(folder)]
        done = subprocess.run(["mount", "-t", "tmpfs", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        return folder

    yield mount
    subprocess.run(["umount", "--lazy", str(folder)], check=False)


@pytest.fixture
def crawl(tamias, pages):
    usual = ("--sink", "archive", "--allow-private", "--delay", "0", "--workers", "1")
    return lambda *words: tamias.start("crawl", *pages, *usual, *words)


def said(process, what):
    """Reads on until these words come."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if what in line:
            return line
    pytest.fail("".join(lines))


def kept(data):
    with closing(ArchiveReader(data)) as archive:
        return {
            each.url: [
                archive.get(each.url, version=version.number).bytes()
                for version in archive.versions(each.url)
            ]
            for each in archive.resources()
        }


def test_a_disk_that_fills_up_is_waited_for_and_nothing_is_lost_or_doubled(tamias, disk, pages, crawl):
    tamias.env["TAMIAS_CRAWL__ROOM"] = "0"
    disk(2)
    running = crawl()
    assert not unsaid(said(running, "paused:"))
    disk(50, "remount")
    assert running.wait(60) == 0, running.stderr.read()
    assert kept(tamias.data) == {url: [body] for url, body in pages.items()}
    assert tamias.run("check").returncode == 0


def test_with_less_room_than_must_stay_free_nothing_is_fetched_until_there_is_more(
    tamias, disk, pages, site, crawl
):
    tamias.env["TAMIAS_CRAWL__ROOM"] = "5"
    other = disk(20) / "of-somebody-else"
    other.write_bytes(bytes(16_000_000))
    running = crawl()
    assert "(crawl.room)" in said(running, "paused:")
    assert json.loads(tamias.run("status", "--once", "--json").stdout)["paused"].startswith(
        "no disk space left"
    )
    assert site.log == []
    other.unlink()
    assert running.wait(60) == 0, running.stderr.read()
    assert kept(tamias.data) == {url: [body] for url, body in pages.items()}


def test_no_room_for_longer_than_max_wait_ends_the_crawl_with_its_own_code(disk, crawl):
    disk(2)
    running = crawl("--max-wait", "1")
    assert running.wait(60) == 12
    assert running.stderr.read().splitlines()[-1].startswith("tamias: no disk space left")
