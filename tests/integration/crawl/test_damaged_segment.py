"""Bytes are missing in the middle of a segment: all else is still there, and a crawl mends the rest."""

import hashlib
from collections import defaultdict

import pytest
import zstandard

from tests.messages import unsaid

DOCUMENTS = 7


def triples(name):
    """Half a megabyte that does not shrink: some documents share a frame, some have several."""
    words = (hashlib.sha512(f"{name} {turn}".encode()).hexdigest() for turn in range(3000))
    return "".join(f'<#{turn}> <http://e.test/p> "{word}" .\n' for turn, word in enumerate(words)).encode()


def page(name):
    """Answers 304 to those who have it: what is to be read again must be asked for as a whole."""
    body = triples(name)

    def answer(handler):
        known = handler.headers.get("If-None-Match") == '"one"'
        handler.send_response(304 if known else 200)
        handler.send_header("ETag", '"one"')
        handler.send_header("Content-Type", "text/turtle")
        handler.send_header("Content-Length", "0" if known else str(len(body)))
        handler.end_headers()
        handler.wfile.write(b"" if known else body)

    return answer


def graphs(text):
    """The lines of an export by their graph."""
    found = defaultdict(set)
    for line in text.splitlines():
        found[line.rsplit(" ", 2)[1].strip("<>")].add(line)
    return found


@pytest.fixture
def crawled(tamias, site):
    site.pages = {f"/{name}": page(name) for name in range(DOCUMENTS)}
    seeds = [site.url(path) for path in site.pages]
    assert tamias.crawl("--depth", "0", "--delay", "0", *seeds).returncode == 0
    return seeds


def cut(tamias):
    """Takes 100 bytes out of the largest segment, near its start: most of it stands behind them.

    Returns the documents that stood in it.
    """
    segment = max((tamias.data / "rdf").glob("*.nq.zst"), key=lambda path: path.stat().st_size)
    content = segment.read_bytes()
    place = len(content) // 10
    segment.write_bytes(content[:place] + content[place + 100 :])
    with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as stood:
        return set(graphs(stood.read().decode()))


def test_all_but_what_is_damaged_is_exported_and_a_crawl_mends_the_rest(tamias, crawled):
    before = graphs(tamias.run("export").stdout)
    assert set(before) == set(crawled)
    stood = cut(tamias)
    export = tamias.run("export")
    missing = {line.removeprefix("missing: ") for line in export.stderr.splitlines() if "missing: " in line}
    assert export.returncode == 1
    assert set() < missing < stood
    assert graphs(export.stdout) == {url: before[url] for url in crawled if url not in missing}
    assert not unsaid(export.stderr, len(missing))

    check = tamias.run("check", "--repair")
    assert check.returncode == 1
    assert {line.split()[-1] for line in check.stdout.splitlines() if "statements of" in line} == missing
    assert tamias.crawl("--depth", "0", "--delay", "0", *crawled).returncode == 0
    mended = tamias.run("export")
    assert (mended.returncode, graphs(mended.stdout)) == (0, before)


def test_what_is_missing_of_a_history_is_said_with_its_time(tamias, crawled):
    cut(tamias)
    export = tamias.run("export", "--history")
    assert export.returncode == 1
    assert any(f"missing: {url} of 20" in export.stderr for url in crawled)
