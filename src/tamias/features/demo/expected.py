"""The ground truth of a web: what a complete and polite crawl finds, and what it leaves alone. Pure.

And two documents that change from day to day, which an archive is for; nothing links to them.
"""

from collections.abc import Iterable

import msgspec
from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad

from tamias.features.demo.kinds import DemoWeb, File, quads_of


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """The expected result: what must be found, and what must not be requested."""

    documents: dict[str, frozenset[Quad]]
    """By final URL, all that hold data. A statement without a graph is in the graph of that URL."""
    disallowed: frozenset[str]
    """URLs that exist, are linked, and that robots.txt forbids."""
    refused_quads: frozenset[Quad]
    """What is written there: found only by an impolite crawler."""

    @property
    def quads(self) -> frozenset[Quad]:
        """Return all statements of the web."""
        return frozenset().union(*self.documents.values())


def expected_of(web: DemoWeb) -> Expected:
    """The ground truth, read off the pages themselves."""
    documents: dict[str, frozenset[Quad]] = {}
    refused: dict[str, frozenset[Quad]] = {}
    for site in web.sites.values():
        for path, page in site.pages.items():
            quads = quads_of(page)
            if quads:
                group = refused if path in site.disallowed else documents
                group[site.url(path)] = in_document(quads, site.url(path))
    return Expected(
        documents=documents,
        disallowed=frozenset(site.url(path) for site in web.sites.values() for path in site.disallowed),
        refused_quads=frozenset().union(*refused.values()),
    )


def in_document(quads: Iterable[Quad], url: str) -> frozenset[Quad]:
    """The statements of a document, those without a graph in the graph of its final URL."""
    graph = NamedNode(url)
    return frozenset(
        Quad(quad.subject, quad.predicate, quad.object, graph) if quad.graph_name == DefaultGraph() else quad
        for quad in quads
    )


def missing(expected: Iterable[Quad], found: Iterable[Quad]) -> set[Quad]:
    """The expected statements that were not found. A blank node is equal to any other."""
    have = {nameless(quad) for quad in found}
    return {quad for quad in expected if nameless(quad) not in have}


def nameless(quad: Quad) -> Quad:
    """The statement with every blank node under the same label."""
    any_node = BlankNode("any")
    subject = any_node if isinstance(quad.subject, BlankNode) else quad.subject
    value = any_node if isinstance(quad.object, BlankNode) else quad.object
    return Quad(subject, quad.predicate, value, quad.graph_name)


TABLE = "/open-data/prices.csv"
STATEMENTS = "/open-data/stations.ttl"
_GOODS = (
    *("apples", "bread", "butter", "cheese", "coffee", "eggs"),
    *("milk", "pears", "rice", "salt", "sugar", "tea"),
)


def put_watched(web: DemoWeb, day: int) -> tuple[str, str]:
    """Puts them on the first host as they are on some day, from 0; returns their addresses."""
    site = next(iter(web.sites.values()))
    site.pages[TABLE] = File(table(day), "text/csv")
    site.pages[STATEMENTS] = File(statements(day), "text/turtle")
    return site.url(TABLE), site.url(STATEMENTS)


def table(day: int) -> bytes:
    """Prices: each day one line goes, one comes, and some prices rise."""
    goods = (*_GOODS[day:], *(f"new kind {number}" for number in range(1, day + 1)))
    rows = [f"{name},{_price(name, day) / 100:.2f}" for name in goods]
    return "\n".join(["product,price", *rows, ""]).encode()


def statements(day: int) -> bytes:
    """Stations: each day one more opens."""
    lines = ["@prefix ex: <http://stations.example/> .", ""]
    lines += [f'ex:station{number} a ex:Station ; ex:name "Station {number}" .' for number in range(5 + day)]
    return "\n".join([*lines, ""]).encode()


def _price(name: str, day: int) -> int:
    """Return a price in hundredths; every third product becomes dearer."""
    usual = 100 + 7 * len(name)
    return usual + (5 * day if (ord(name[0]) + day) % 3 == 0 else 0)
