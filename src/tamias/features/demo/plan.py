"""The shape of a web: which nodes there are, of what kind, and who links to whom. Pure, and free of ports.

A plan of another making (a benchmark's node graph) needs only to be a `WebPlan`.
"""

import random
from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import NamedTuple

import msgspec
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

FIRST_ADDRESS = "127.0.0.1"
MOST_NODES = 65_000
KIND_WEIGHTS = {"deref": 5, "dump": 4, "html": 2}
SYNTAXES = ("nt", "ttl", "rdf", "nq", "trig", "jsonld")
PACKINGS = ("", "gz", "bz2", "xz", "zst", "zip", "tar.gz")
ODDITIES = ("see-other", "hash", "moved", "gone", "busy", "slow", "mislabelled", "international", "private")
DELAYED_RESOURCES = 3
"""A node that asks for a Crawl-delay is small, so that a polite crawl of it ends soon."""


class DemoNode(msgspec.Struct, frozen=True, kw_only=True):
    """A host of the web."""

    number: int
    address: str
    kind: str
    resources: int
    links: tuple[int, ...]
    """The nodes that something on this one links to."""
    oddities: tuple[str, ...] = ()
    syntax: str = ""
    """How a dump is written, by its file extension."""
    packing: str = ""
    """How a dump is compressed, by its file extension; empty for not at all."""


class WebPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes, and those a crawl must start from to reach all. Node 0 holds the vocabulary."""

    seed: int
    nodes: tuple[DemoNode, ...]
    seeds: tuple[int, ...]


def make_plan(
    seed: int = 1,
    nodes: int = 12,
    resources: int = 20,
    links: int = 3,
    crawl_delay: bool = True,
) -> WebPlan:
    """A web of `nodes` hosts with `resources` things each, `links` edges for every host that joins."""
    if not 1 <= nodes <= MOST_NODES:
        raise ValueError(f"a web has 1 to {MOST_NODES} nodes, not {nodes}")
    rng = random.Random(seed)
    kinds = draw_kinds(rng, nodes)
    edges = draw_links(rng, nodes, links)
    bearers = share_oddities(kinds, ODDITIES)
    bearers[0].append("vocabulary")
    delayed = kinds.index("html") if crawl_delay and "html" in kinds else None
    if delayed is not None:
        bearers[delayed].append("crawl-delay")
    return WebPlan(
        seed=seed,
        seeds=starting_nodes(edges),
        nodes=tuple(
            DemoNode(
                number=number,
                address=str(IPv4Address(FIRST_ADDRESS) + number),
                kind=kind,
                resources=DELAYED_RESOURCES if number == delayed else resources,
                links=edges[number],
                oddities=tuple(bearers[number]),
                **dump_form(kind, seed + kinds[:number].count("dump")),
            )
            for number, kind in enumerate(kinds)
        ),
    )


def draw_kinds(rng: random.Random, nodes: int) -> list[str]:
    """Draw a node of each kind, the rest by weight; the first is a `deref` node."""
    kinds = list(KIND_WEIGHTS)
    weights = list(KIND_WEIGHTS.values())
    return (kinds + rng.choices(kinds, weights, k=max(0, nodes - len(kinds))))[:nodes]


def draw_links(rng: random.Random, nodes: int, links: int) -> list[tuple[int, ...]]:
    """Draw links between nodes: each is tied to earlier ones, either way round."""
    targets: list[set[int]] = [set() for _ in range(nodes)]
    for newcomer in range(1, nodes):
        for _ in range(links):
            pair = [newcomer, rng.randrange(newcomer)]
            rng.shuffle(pair)
            targets[pair[0]].add(pair[1])
    return [tuple(sorted(chosen)) for chosen in targets]


def share_oddities(kinds: Sequence[str], oddities: Sequence[str]) -> list[list[str]]:
    """The oddities of each node, dealt out among the `deref` nodes."""
    shares: list[list[str]] = [[] for _ in kinds]
    bearers = [number for number, kind in enumerate(kinds) if kind == "deref"]
    for turn, oddity in enumerate(oddities):
        shares[bearers[turn % len(bearers)]].append(oddity)
    return shares


def dump_form(kind: str, turn: int) -> dict[str, str]:
    """Syntax and packing of a dump. Six and seven have no common factor: in 42 turns every pair comes up."""
    if kind != "dump":
        return {}
    return {"syntax": SYNTAXES[turn % len(SYNTAXES)], "packing": PACKINGS[turn % len(PACKINGS)]}


def starting_nodes(edges: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The nodes nobody links to, then the lowest one not yet reached, until all are."""
    linked = {target for targets in edges for target in targets}
    seeds = [number for number in range(len(edges)) if number not in linked]
    reached = reachable(edges, seeds)
    for number in range(len(edges)):
        if number not in reached:
            seeds.append(number)
            reached |= reachable(edges, [number])
    return tuple(sorted(seeds))


def reachable(edges: Sequence[Sequence[int]], start: Sequence[int]) -> set[int]:
    """Return the nodes that can be reached from `start`."""
    reached, waiting = set(start), list(start)
    while waiting:
        found = set(edges[waiting.pop()]) - reached
        reached |= found
        waiting.extend(found)
    return reached


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


class NodeWriter(NamedTuple):
    """Writes the content of a node, with its own random numbers."""

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
        """Draw links between resources: a tree from resource 0 reaches all, chance adds some."""
        size = self.node.resources
        links = [[self.rng.randrange(size)] for _ in range(size)]
        for number in range(1, size):
            links[self.rng.randrange(number)].append(number)
        return links

    def outer_links(self, extra: Sequence[str]) -> list[list[str]]:
        """Draw links to other hosts; resource 0 has the `extra` ones."""
        links: list[list[str]] = [[] for _ in range(self.node.resources)]
        links[0].extend(extra)
        for target in self.node.links:
            self.rng.choice(links).append(self.entrances[target])
        return links

    def describe(self, subject: str, links: Sequence[str] = ()) -> tuple[Quad, ...]:
        """Return statements about a thing: kind, label, value, links, and sometimes a blank node."""
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
