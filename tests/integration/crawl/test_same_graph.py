"""One document, one graph: by `tamias read`, a crawl, an archive capture, and a crawl that was killed."""

from collections import Counter
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, RdfFormat, serialize

import tamias as library
from tamias.content.blank_nodes import Colours, with_gaps

TYPES = {
    ".nt": "application/n-triples",
    ".nq": "application/n-quads",
    ".ttl": "text/turtle",
    ".n3": "text/n3",
    ".trig": "application/trig",
    ".rdf": "application/rdf+xml",
    ".owl": "application/rdf+xml",
    ".jsonld": "application/ld+json",
}
LARGEST = 15_000
KILLED_AT = ["segments-synced", "before-commit", "after-commit"]


def as_graph(triples):
    """A multiset of statements in which every blank node has the colour of what is said around it."""
    plain, blank = Counter(), []
    for line in dict.fromkeys(serialize(triples, format=RdfFormat.N_TRIPLES).splitlines()):
        found = with_gaps(line)
        if found is None:
            plain[line] += 1
        else:
            blank.append(found)
    names = {node: b"_:" + colour.hex().encode() for node, colour in Colours(blank).of.items()}
    plain.update(each.written(names) for each in blank)
    return plain


def keeps_own_names(quads, site):
    """Whether it names graphs of its own host, which no prefix tells to be its own."""
    names = {quad.graph_name for quad in quads if isinstance(quad.graph_name, NamedNode)}
    return any(name.value.startswith(site.url("/")) for name in names)


@pytest.fixture
def documents(suites, site, reply):
    """What `tamias.read` says of each real file, by the address where it is served."""
    found = {}
    for file in sorted(suites("real-rdf-files").rglob("*")):
        if file.suffix not in TYPES or file.stat().st_size > LARGEST or int(file.stem) % 2:
            continue  # half of them: enough of each kind, and quick
        path = f"/{file.name}"
        quads = list(library.read(file, base=site.url(path)).quads)
        if quads and not keeps_own_names(quads, site):
            site.pages[path] = reply(200, file.read_bytes(), Content_Type=TYPES[file.suffix])
            found[site.url(path)] = as_graph([quad.triple for quad in quads])
    assert len(found) > 50
    return found


def exported(tamias, urls, folder: Path):
    """The graphs of documents, as `tamias export` gives them, by the address."""
    file = folder / "export.nq"
    done = tamias.run("export", "-o", str(file))
    assert done.returncode == 0, done.stderr
    triples = {url: [] for url in urls}
    for quad in library.read(file).quads:
        triples[quad.graph_name.value.partition("#graph=")[0]].append(quad.triple)
    return {url: as_graph(each) for url, each in triples.items()}


def differing(found, expected):
    return {
        url: (found[url] - graph, graph - found[url])
        for url, graph in expected.items()
        if found[url] != graph
    }


def test_a_crawl_keeps_what_read_says(tamias, documents, tmp_path):
    done = tamias.crawl("--depth", 0, *documents)
    assert done.returncode == 0, done.stderr
    assert differing(exported(tamias, documents, tmp_path), documents) == {}


def test_an_archive_capture_is_read_as_read_says(tamias, documents, tmp_path):
    done = tamias.crawl("--depth", 0, "--sink", "archive", *documents)
    assert done.returncode == 0, done.stderr
    assert differing(exported(tamias, documents, tmp_path), documents) == {}
    for url in list(documents)[::50]:
        copy = tmp_path / "copy"
        done = tamias.run("get", url, "-o", str(copy))
        assert done.returncode == 0, done.stderr
        kind = TYPES["." + url.rpartition(".")[2]]
        quads = library.read(copy.read_bytes(), base=url, media_type=kind).quads
        assert as_graph([quad.triple for quad in quads]) == documents[url], url


def test_a_crawl_that_was_killed_keeps_the_same(tamias, documents, tmp_path, kill):
    for place in KILLED_AT:
        tamias.env["TAMIAS_FAULT"] = place
        crawl = tamias.start(
            "crawl", "--allow-private", "--delay", "0", "--workers", "1", "--depth", "0", *documents
        )
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
    done = tamias.crawl("--depth", 0, *documents)
    assert done.returncode == 0, done.stderr
    assert differing(exported(tamias, documents, tmp_path), documents) == {}
