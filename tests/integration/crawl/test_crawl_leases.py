"""A host belongs to whoever has its lease: a worker that lost it stops, and what it did does not count."""

import os
import re
import signal
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

from tamias.database.connect import Database

pytestmark = pytest.mark.processes

PAGE = b'<> <#says> "page" .'


class Patient:
    """A page that is slow at first, and notices when its visitor leaves."""

    def __init__(self, reply, seconds):
        self.reply = reply
        self.seconds = seconds
        self.visits = 0
        self.left_after = None

    def __call__(self, handler):
        self.visits += 1
        begun = time.monotonic()
        while self.visits == 1 and time.monotonic() - begun < self.seconds:
            time.sleep(0.05)
            if left(handler.connection):
                self.left_after = time.monotonic() - begun
                return
        self.reply(handler)


def left(connection):
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@pytest.fixture
def slow(site, reply):
    def page(seconds):
        site.pages["/"] = Patient(reply(200, PAGE, **{"Content-Type": "text/turtle"}), seconds)
        return site.pages["/"]

    return page


def lend_to_somebody_else(cursor):
    later = "(extract(epoch FROM now()) * 1000 + 1000)::int8"
    cursor.execute(f"UPDATE host SET token = 1, lease_end = {later}, ready_at = {later}")


def test_what_was_done_without_the_lease_is_dropped_and_done_again(tamias, site, slow):
    page = slow(1.0)
    crawl = tamias.start("crawl", "--allow-private", "--delay", "0", "--workers", "1", site.url("/"))
    tamias.wait_until(lambda: page.visits == 1)
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        session.transact(lend_to_somebody_else)
    _, said = crawl.communicate(timeout=30)
    assert crawl.returncode == 0, said
    assert page.visits == 2
    assert len(tamias.attempts()[site.url("/")]) == 1
    assert len(tamias.quads()) == 1


def test_a_worker_that_cannot_renew_leaves_the_host_before_its_lease_ends(tamias, site, slow):
    page = slow(10.0)
    tamias.env["TAMIAS_FRONTIER__LEASE"] = "3"
    crawl = tamias.start("crawl", "--allow-private", "--delay", "0", "--workers", "1", site.url("/"))
    tamias.wait_until(lambda: page.visits == 1)
    servers = [pid for pid in tamias.in_use() if b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    for pid in servers:
        os.kill(pid, signal.SIGSTOP)
    try:
        tamias.wait_until(lambda: page.left_after is not None, seconds=9)
    finally:
        for pid in servers:
            os.kill(pid, signal.SIGCONT)
    _, said = crawl.communicate(timeout=30)
    assert crawl.returncode == 0, said
    assert page.visits == 2
    assert len(tamias.quads()) == 1


def test_a_long_delay_is_waited_for_without_the_host(tamias, site, reply):
    """Otherwise a worker full of slow hosts has no room for quick ones."""
    site.pages |= {
        "/robots.txt": b"User-agent: *\nCrawl-delay: 12\n",
        "/": reply(302, Location="/here"),
        "/here": PAGE,
    }
    done = tamias.crawl(site.url("/"), "--max-wait", 5)
    assert done.returncode == 5, done.stderr
    assert re.search(r"the next host can be visited in (1[0-2]|[6-9]) seconds", done.stderr), done.stderr
    assert [path for path, _ in site.log] == ["/robots.txt"]
