"""A large dump: read as a stream, so the worker stays small; killed, it is read on where it was."""

import os
import threading
from pathlib import Path

import pytest

LINES = 250_000 if os.environ.get("TAMIAS_NIGHTLY") else 100_000
LEASE = "6"
"""Seconds until a document can be read on after the death of its reader."""
MOST_GROWTH = 60 << 20 if LINES > 100_000 else 30 << 20


def dump(site, lines=LINES):
    """About 12 MB of N-Triples, at night 30; every tenth subject is a link to follow."""
    for number in range(lines):
        yield (
            f"<{site.url(f'/page/{number}')}> <{site.url('/terms')}#number> "
            f'"{number:08d} and some words to make it longer" .\n'
        )


def proportional_memory(pid):
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


class Watch(threading.Thread):
    """The least and the most memory that any worker has had."""

    def __init__(self, tamias):
        super().__init__(daemon=True)
        self.tamias = tamias
        self.seen = []
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.1):
            self.seen += filter(None, map(proportional_memory, self.tamias.workers()))


def test_a_large_dump_is_read_whole_by_a_worker_that_stays_small(tamias, site, reply):
    body = "".join(dump(site)).encode()
    assert len(body) > 116 * LINES
    site.pages["/dump.nt"] = reply(200, body, **{"Content-Type": "application/n-triples"})
    watch = Watch(tamias)
    watch.start()
    words = ("--max-urls", 1, "--workers", 1, "--exclude", "/page/[0-9]*[1-9]$", "--scope", "host")
    done = tamias.crawl(site.url("/dump.nt"), *words, timeout=120)
    watch.over.set()
    watch.join()
    assert done.returncode == 5, done.stderr
    assert f"{LINES // 10 + 1:,} URLs are left" in done.stderr
    assert len(tamias.quads()) == LINES
    assert max(watch.seen) - min(watch.seen) < MOST_GROWTH, [min(watch.seen), max(watch.seen)]


def killed_at(tamias, kill, place, *words):
    """Crawls until a worker dies at a place; then the rest dies, too."""
    tamias.env |= {"TAMIAS_FAULT": place, "TAMIAS_FRONTIER__LEASE": LEASE}
    crawl = tamias.start("crawl", "--allow-private", "--delay", "0", "--workers", "1", *words)
    said = []
    for line in crawl.stderr:
        said.append(line)
        if line.startswith("TAMIAS_FAULT: killed at"):
            break
    else:
        pytest.fail(f"nothing was killed at {place}: {''.join(said)}")
    kill(crawl.pid)
    crawl.wait()
    del tamias.env["TAMIAS_FAULT"]


def test_a_dump_killed_three_times_is_fetched_once_and_read_on_where_it_was(tamias, site, reply, kill):
    lines = list(dump(site, 250_000)) + [f'_:node <urn:p> "{number}" .\n' for number in range(100_000)]
    site.pages["/dump.nt"] = reply(200, "".join(lines).encode(), **{"Content-Type": "application/n-triples"})
    words = (site.url("/dump.nt"), "--depth", "0")
    killed_at(tamias, kill, "position-saved", *words)  # at the beginning
    for place in ("position-saved", "position-saved", "segments-synced"):
        killed_at(tamias, kill, place, *words)
        (body,) = tamias.data.glob("harvests/*.body")
        with body.open("r+b") as file:  # what was read is not read again
            file.write(b"<http://changed.test/")
    done = tamias.crawl(*words, timeout=240)
    assert done.returncode == 0, done.stderr
    assert site.asked("/dump.nt") == 1
    graph = f" <{site.url('/dump.nt')}> .\n"
    told = {line.removesuffix("\n") for line in tamias.quads() if not line.startswith("_:")}
    assert told == {line.replace(" .\n", graph)[:-1] for line in lines if not line.startswith("_:")}
    nodes = {line.split()[0] for line in tamias.quads() if line.startswith("_:")}
    assert len(nodes) == 1
    assert not list(tamias.data.glob("harvests/*"))


def written(syntax, triples):
    """The triples as a dump in a syntax, the last one with an anonymous blank node."""
    if syntax == "trig":
        text = "".join(f"{subject} <urn:p> {value} .\n" for subject, value in triples)
        return f"<urn:g> {{\n{text}<urn:s> <urn:q> [] .\n}}\n"
    text = "".join(
        f'<rdf:Description rdf:about="{subject[1:-1]}"><p>{value[1:-1]}</p></rdf:Description>\n'
        for subject, value in triples
    )
    last = '<rdf:Description rdf:about="urn:s"><q rdf:parseType="Resource"/></rdf:Description>'
    space = 'xmlns="urn:" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    return f"<rdf:RDF {space}>{text}{last}</rdf:RDF>"


@pytest.mark.parametrize("syntax", ["trig", "rdf+xml"])
def test_a_dump_whose_syntax_has_no_positions_is_read_again_and_fetched_once(
    tamias, site, reply, kill, syntax
):
    triples = [(f"<urn:s:{number}>", f'"{number:09d}{" and more words" * 20}"') for number in range(60_000)]
    media_type = f"application/{syntax}"
    site.pages["/dump"] = reply(200, written(syntax, triples).encode(), **{"Content-Type": media_type})
    killed_at(tamias, kill, "position-saved", site.url("/dump"), "--depth", "0")
    assert [path.stat().st_size for path in tamias.data.glob("harvests/*") if path.suffix != ".body"] == [0]
    done = tamias.crawl(site.url("/dump"), "--depth", "0", timeout=240)
    assert done.returncode == 0, done.stderr
    assert site.asked("/dump") == 1
    *plain, _ = sorted(tamias.quads(), key=lambda line: "<urn:q>" in line)
    (graph,) = {line.rsplit(maxsplit=2)[1] for line in plain}
    assert sorted(plain) == sorted(f"{subject} <urn:p> {value} {graph} ." for subject, value in triples)
