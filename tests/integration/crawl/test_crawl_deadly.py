"""A document that ends its worker is then read in the sandbox, and set aside if that ends too."""

import os

import pytest

PAGE = b'<> <#says> "page" .'
PNG = b"\x89PNG\r\n\x1a\n"
ANALYSER = """
import os

class Deadly:
    media_types = frozenset({"image/png"})

    def analyse(self, document):
        if document.url.endswith("deadly"):
            os.abort()
        yield from ()
"""

FEATURES = """
from tamias.plugins import Feature
FEATURES = [Feature("deadly", "dies of pictures", __name__, analysers={"deadly": "deadly:Deadly"})]
"""


@pytest.fixture
def deadly(tamias, tmp_path):
    """An installed plug-in whose analyser does not survive some pictures."""
    place = tmp_path / "site-packages"
    told = place / "deadly-1.dist-info"
    told.mkdir(parents=True)
    (place / "deadly.py").write_text(ANALYSER + FEATURES)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1\n")
    (told / "entry_points.txt").write_text("[tamias.features]\ndeadly = deadly:FEATURES\n")
    tamias.env["PYTHONPATH"] = os.pathsep.join([str(place), tamias.env.get("PYTHONPATH", "")])
    return tamias


def test_a_document_that_kills_its_worker_and_its_sandbox_is_set_aside(deadly, site, reply):
    picture = reply(200, PNG, **{"Content-Type": "image/png"})
    site.pages |= {f"/{number}": PAGE for number in range(30)}
    site.pages |= {"/deadly": picture, "/also-deadly": picture, "/harmless": picture}
    done = deadly.crawl(*map(site.url, site.pages), "--scope", "host")
    assert done.returncode == 0, done.stderr
    attempts = deadly.attempts()
    for path in ("/deadly", "/also-deadly"):
        (told,) = attempts.pop(site.url(path))
        assert told["outcome"] == "failed"
        assert told["reason"].startswith("set aside")
        assert 2 <= site.asked(path) <= 3  # once more where the other one took the worker with it
    assert {each[-1]["outcome"] for each in attempts.values()} == {"ok"}
    assert len(deadly.quads()) == 30


def test_a_document_is_not_to_blame_when_the_crawl_is_interrupted_over_it(tamias, site, reply):
    line = '<{}> <http://127.0.0.1/p> "{}" .\n'
    dump = "".join(line.format(site.url(f"/{n}"), n) for n in range(200_000)).encode()
    site.pages["/dump"] = reply(200, dump, **{"Content-Type": "application/n-triples"})
    words = ("crawl", "--allow-private", "--delay", "0", "--depth", "0", site.url("/dump"))
    for _ in range(3):
        before = spooled(tamias)
        crawl = tamias.start(*words)
        tamias.wait_until(lambda before=before: spooled(tamias) - before)
        crawl.terminate()
        crawl.communicate(timeout=30)
        assert crawl.returncode == 130
    done = tamias.run("crawl")
    assert done.returncode == 0, done.stderr
    assert len(tamias.quads()) == 200_000


def spooled(tamias):
    """Return the bodies that are being read; each is in the spool meanwhile."""
    return set((tamias.data / "spool").glob("*/*"))
