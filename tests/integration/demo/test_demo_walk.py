"""A tiny crawler finds exactly what is expected: the links, the data and the ground truth agree."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from html.parser import HTMLParser
from urllib.parse import quote, urldefrag, urljoin, urlsplit

import pytest
import zstandard
from gpyrobotstxt.robots_cc import RobotsMatcher
from pyoxigraph import NamedNode, RdfFormat, parse

from tamias.features.demo.plan import make_plan
from tamias.features.demo.server import requests_of_disallowed, serving
from tamias.features.demo.web import in_document, missing


def sole_zip_member(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(archive.infolist()[0])


def sole_tar_member(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return archive.extractfile(archive.next()).read()


UNPACKERS = {
    "tar.gz": sole_tar_member,
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zst": zstandard.decompress,
    "zip": sole_zip_member,
}


class Anchors(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.references = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in {"a", "link"}:
            self.references.append(dict(attributes)["href"])


class Walker:
    """Follows every link it finds, obeys robots.txt, and comes again when it is asked to."""

    def __init__(self, get):
        self.get = get
        self.known = set()
        self.robots = {}
        self.documents = {}

    def walk(self, seeds):
        waiting = list(seeds)
        while waiting:
            url = fetch_form(waiting.pop())
            if url.startswith("http:") and url not in self.known and self.permits(url):
                self.known.add(url)
                waiting.extend(self.visit(url))

    def permits(self, url):
        host = urlsplit(url).netloc
        if host not in self.robots:
            response = self.get(f"http://{host}/robots.txt")
            self.robots[host] = response.body if response.status == 200 else b""
        return RobotsMatcher().one_agent_allowed_by_robots(self.robots[host], "walker", url)

    def visit(self, url):
        response = self.get(url)
        if response.status == 503:
            response = self.get(url)
        if "location" in response.headers:
            return [urljoin(url, response.headers["location"])]
        if response.status != 200:
            return []
        if response.headers["content-type"].startswith("text/html"):
            return [urljoin(url, reference) for reference in Anchors(response.body.decode()).references]
        self.documents[url] = read(url, response)
        return [term.value for quad in self.documents[url] for term in quad if isinstance(term, NamedNode)]


def fetch_form(iri):
    return quote(urldefrag(iri).url, safe=":/?&=()%")


def read(url, response):
    """The quads of a document, whatever it is packed in; plain text is taken for Turtle."""
    packing = next((name for name in UNPACKERS if url.endswith(f".{name}")), None)
    body = UNPACKERS[packing](response.body) if packing else response.body
    name = url.removesuffix(f".{packing}")
    if response.headers["content-type"] == "text/plain":
        syntax = RdfFormat.TURTLE
    else:
        told = RdfFormat.from_media_type(response.headers["content-type"])
        syntax = told or RdfFormat.from_extension(name.rpartition(".")[2])
    return in_document(parse(body, format=syntax, base_iri=url), url)


@pytest.fixture(
    scope="module", params=[(1, 12), (2, 60), (3, 1)], ids=lambda chosen: "seed {}, {} nodes".format(*chosen)
)
def walked(request, get):
    """A web, and a walker that has been all over it."""
    seed, nodes = request.param
    with serving(make_plan(seed, nodes, resources=6), latency=0) as web:
        walker = Walker(get)
        walker.walk(web.seeds)
        yield web, walker


def test_a_walk_from_the_seeds_comes_to_every_document(walked):
    web, walker = walked
    assert walker.documents.keys() == web.expected.documents.keys()


def test_a_walk_finds_every_expected_statement(walked):
    web, walker = walked
    found = set().union(*walker.documents.values())
    assert missing(web.expected.quads, found) == set()


def test_a_walk_finds_nothing_that_is_not_expected(walked):
    web, walker = walked
    found = set().union(*walker.documents.values())
    assert missing(found, web.expected.quads) == set()


def test_a_walk_that_obeys_robots_asks_for_nothing_disallowed(walked):
    web, _ = walked
    assert requests_of_disallowed(web.log, web.expected.disallowed) == []


def test_only_robots_keeps_a_walker_from_what_is_disallowed(get):
    with serving(make_plan(1, 4, resources=3), latency=0) as web:
        walker = Walker(get)
        walker.permits = lambda _: True
        walker.walk(web.seeds)
        assert {visit.url for visit in web.log} >= web.expected.disallowed
