"""Small documents that become large, at night more than a hundred, in one crawl with good pages."""

import os
import threading
from itertools import islice
from pathlib import Path

import pytest

from tamias.model.document import FREE_GROWTH, MAX_GROWTH

from ..conftest import replying
from .amplifiers import amplifiers, large_context, media_type

NIGHTLY = bool(os.environ.get("TAMIAS_NIGHTLY"))
GOOD = 100 if NIGHTLY else 30
EVERY = 1 if NIGHTLY else 11
"""Of the amplifiers: all of them take minutes."""
MOST_MEMORY = 700 << 20
"""Of a worker: an ordinary one has 150 MB."""
SANDBOX = {"CPU": "3", "CPU_PER_MB": "1", "MEMORY": str(512 << 20)}


def good_page(number):
    """One of ten forms that pages have, and the statements that it makes."""
    subject = f"http://good.example/{number}"
    said = [(f"http://good.example/p{row}", f"{number} says {row}") for row in range(10)]
    if number % 3 == 0:
        nodes = ",".join(f'"{predicate}": "{value}"' for predicate, value in said)
        return "application/ld+json", f'{{"@id": "{subject}", {nodes}}}', subject, said
    if number % 3 == 1:
        marked = "".join(f'<p property="{predicate}">{value}</p>' for predicate, value in said)
        return "text/html", f'<!DOCTYPE html><body about="{subject}">{marked}</body>', subject, said
    pairs = " ; ".join(f"<{predicate}> '{value}'" for predicate, value in said)
    return "text/turtle", f"<{subject}> {pairs} .", subject, said


@pytest.fixture
def good(site):
    """A site of good pages, and the lines that they become."""
    expected = set()
    for number in range(GOOD):
        kind, text, subject, said = good_page(number)
        path = f"/good/{number}"
        site.pages[path] = replying(200, text.encode(), Content_Type=kind)
        graph = site.url(path)
        expected |= {f'<{subject}> <{predicate}> "{value}" <{graph}> .' for predicate, value in said}
    return expected


@pytest.fixture
def hostile(site_at):
    """A site of amplifiers on another host, and their sizes by URL."""
    hostile, sizes = site_at("127.0.0.2"), {}
    hostile.pages["/large-context.jsonld"] = replying(
        200, large_context(), Content_Type="application/ld+json"
    )
    for name, body in islice(amplifiers(), 0, None, EVERY):
        hostile.pages[f"/{name}"] = replying(200, body, Content_Type=media_type(name))
        sizes[hostile.url(f"/{name}")] = len(body)
    return sizes


class Watched(threading.Thread):
    """Looks at the memory of the workers of a crawl until it is over."""

    def __init__(self, tamias):
        super().__init__()
        self.tamias, self.most, self.workers, self.over = tamias, 0, set(), threading.Event()

    def run(self):
        while not self.over.wait(1.0):
            for pid in self.tamias.workers():
                self.workers.add(pid)
                self.most = max(self.most, peak(pid))


def peak(pid):
    """The most memory that a process has had, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


def test_no_small_document_becomes_large_and_the_good_pages_beside_them_are_read(
    tamias, site, good, hostile, tmp_path
):
    seeds = tmp_path / "seeds.txt"
    pages = [site.url(f"/good/{number}") for number in range(GOOD)]
    seeds.write_text("\n".join([*hostile, *pages]))
    tamias.env |= {f"TAMIAS_SANDBOX__{name}": value for name, value in SANDBOX.items()}
    watched = Watched(tamias)
    watched.start()
    try:
        crawl = tamias.crawl("--seeds", seeds, "--depth", "0", timeout=1800)
    finally:
        watched.over.set()
        watched.join()
    lines = tamias.run("export", timeout=300).stdout.splitlines()
    assert good <= set(lines), crawl.stderr
    written = dict.fromkeys(hostile, 0)
    for line in lines:
        url = line[line.rindex("<") + 1 : -3].partition("#graph=")[0]
        if url in written:
            written[url] += len(line)
    grown = {url: size for url, size in written.items() if size > FREE_GROWTH + MAX_GROWTH * hostile[url]}
    assert grown == {}
    attempts = tamias.attempts()
    assert {url for url in hostile if url not in attempts} == set()
    assert not [url for url in hostile if "internal error" in str(attempts[url])]
    assert len(watched.workers) == 1, "a worker died"
    assert watched.most < MOST_MEMORY
