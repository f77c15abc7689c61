"""A document that takes long to read does not hold its host: the others of the host are visited meanwhile."""

import os
import time

import pytest

PAGE = b'<> <#says> "page" .'
PAGES = [f"/{number}" for number in range(12)]
SLOW = b"\x89PNG\r\n\x1a\n" + bytes(5_000_000)
ANALYSER = """
import time
from pathlib import Path
from pyoxigraph import Literal, NamedNode, Quad
from tamias.model.finding import Quads

class Slow:
    media_types = frozenset({"image/png"})

    def analyse(self, document):
        while not Path(__file__).with_name("may-end").exists():
            time.sleep(0.05)
        yield Quads([Quad(NamedNode(document.url), NamedNode("http://e.test/says"), Literal("slow"))])
"""

LEASE = 6
FEATURES = """
from tamias.plugins import Feature
FEATURES = [Feature("slow", "takes its time", __name__, analysers={"slow": "slow:Slow"})]
"""


@pytest.fixture
def slow(tamias, tmp_path):
    """An installed plug-in whose analyser goes on until a file says that it may end."""
    place = tmp_path / "site-packages"
    told = place / "slow-1.dist-info"
    told.mkdir(parents=True)
    (place / "slow.py").write_text(ANALYSER + FEATURES)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1\n")
    (told / "entry_points.txt").write_text("[tamias.features]\nslow = slow:FEATURES\n")
    tamias.env["PYTHONPATH"] = os.pathsep.join([str(place), tamias.env.get("PYTHONPATH", "")])
    tamias.env["TAMIAS_FRONTIER__LEASE"] = str(LEASE)
    return tamias


@pytest.fixture
def may_end(tmp_path):
    """`may_end()` lets the analyser end."""
    return (tmp_path / "site-packages" / "may-end").touch


@pytest.fixture
def crawling(slow, site, reply):
    """A crawl whose first document is slow, at the time when all others have been asked for."""
    site.pages |= dict.fromkeys(PAGES, PAGE)
    site.pages["/slow"] = reply(200, SLOW, **{"Content-Type": "image/png"})
    words = ("--allow-private", "--delay", "0", "--depth", "0", "--workers", "1", "--max-wait", "60")
    running = slow.start("crawl", *words, site.url("/slow"), *map(site.url, PAGES))
    slow.wait_until(lambda: all(site.asked(path) for path in PAGES) and is_being_read(slow))
    return running


def is_being_read(tamias):
    """The body stands in the spool until it was read."""
    return any((tamias.data / "spool").glob("*/*"))


def test_the_rest_of_its_host_is_visited_while_it_is_read(slow, site, crawling, may_end):
    time.sleep(LEASE + 1)  # who held the host no longer would lose the document to another
    may_end()
    crawling.communicate(timeout=300)
    assert crawling.returncode == 0
    assert {each[-1]["outcome"] for each in slow.attempts().values()} == {"ok"}
    assert len(slow.quads()) == len(PAGES) + 1
    assert site.asked("/slow") == 1


@pytest.mark.parametrize("stop", ["terminate", "kill"])
def test_it_is_read_by_a_later_run_when_the_crawl_ends_meanwhile(slow, site, crawling, may_end, stop):
    getattr(crawling, stop)()
    crawling.communicate(timeout=300)
    may_end()
    done = slow.run("crawl")
    assert done.returncode == 0, done.stderr
    assert [each["outcome"] for each in slow.attempts()[site.url("/slow")]] == ["ok"]
    assert len(slow.quads()) == len(PAGES) + 1
