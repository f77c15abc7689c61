"""The ground a site is built on, and how things are described there. Pure.

Every IRI is at a host of the web itself, so that no crawl of it ever leaves the loopback network.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.features.demo.plan import DemoNode

XSD = "http://www.w3.org/2001/XMLSchema#"
LABELS = (
    Literal("chipmunk", language="en"),
    Literal("Streifenhörnchen", language="de"),
    Literal("シマリス", language="ja"),
    Literal("سنجاب مخطط", language="ar"),
    Literal('a "steward" \\ two\nlines\tand a tab', language="en-gb"),
    Literal("plain, with 🐿 beyond the basic plane and e\u0301 in two parts"),
    Literal("<p>markup &amp; entities</p>"),
    Literal(""),
)
VALUES = (
    Literal("042", datatype=NamedNode(XSD + "integer")),
    Literal("1.50", datatype=NamedNode(XSD + "decimal")),
    Literal("6.02e23", datatype=NamedNode(XSD + "double")),
    Literal("true", datatype=NamedNode(XSD + "boolean")),
    Literal("2024-02-29", datatype=NamedNode(XSD + "date")),
    Literal("2024-02-29T23:59:59.5+14:00", datatype=NamedNode(XSD + "dateTime")),
    Literal("not a number", datatype=NamedNode(XSD + "integer")),
)
PARTS_SHARE = 0.3


class Plot(NamedTuple):
    """One node, the port and the entrances of the web around it, and its own source of chance."""

    node: DemoNode
    port: int
    entrances: Sequence[str]
    """For each node of the web the address that others link to."""
    vocabulary: str
    rng: random.Random

    def url(self, path: str) -> str:
        """An address on this site."""
        return f"http://{self.node.address}:{self.port}{path}"

    def term(self, name: str) -> NamedNode:
        """A term of the vocabulary that the whole web shares."""
        return NamedNode(f"{self.vocabulary}#{name}")

    def inner_links(self) -> list[list[int]]:
        """For each resource those it links to: a tree from resource 0 reaches all; chance adds some."""
        size = self.node.resources
        links = [[self.rng.randrange(size)] for _ in range(size)]
        for number in range(1, size):
            links[self.rng.randrange(number)].append(number)
        return links

    def outer_links(self, extra: Sequence[str]) -> list[list[str]]:
        """For each resource the addresses elsewhere that it links to; resource 0 has the `extra` ones."""
        links: list[list[str]] = [[] for _ in range(self.node.resources)]
        links[0].extend(extra)
        for target in self.node.links:
            self.rng.choice(links).append(self.entrances[target])
        return links

    def describe(self, subject: str, links: Sequence[str] = ()) -> tuple[Quad, ...]:
        """What is said about a thing: kind, label, value, links, and of some a part without a name."""
        thing = NamedNode(subject)
        quads = [
            Quad(thing, self.term("kind"), self.term("Thing")),
            Quad(thing, self.term("label"), self.rng.choice(LABELS)),
            Quad(thing, self.term("value"), self.rng.choice(VALUES)),
            *(Quad(thing, self.term("link"), NamedNode(link)) for link in dict.fromkeys(links)),
        ]
        if self.rng.random() < PARTS_SHARE:
            part = BlankNode(f"b{self.rng.getrandbits(64):016x}")
            quads.append(Quad(thing, self.term("part"), part))
            quads.append(Quad(part, self.term("label"), self.rng.choice(LABELS)))
        return tuple(quads)
