"""What one node has to say and how it is called: the ground on which `kinds` and `more_kinds` build. Pure."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from benchmarks.dataweb.web.answers import Answer
from benchmarks.dataweb.web.graph import draw_graph, resource_count
from benchmarks.dataweb.web.plan import OrcaNode, WebOptions


class Ports(msgspec.Struct, frozen=True):
    """Where the web is served; the same on every address."""

    http: int
    ftp: int


class Built(msgspec.Struct, frozen=True):
    """A node as it is served, and the truth about it."""

    pages: dict[str, Answer]
    truth: list[bytes]
    """The N-Triples a complete crawl has; blank nodes stand for any."""
    weights: dict[str, int]
    """Triples by path, for each document that a crawl has to fetch."""
    also: list[bytes] = []
    """What is said too, and is no data of its own: descriptions of services and streams."""
    files: dict[str, bytes] = {}
    """What an FTP node holds, by path."""
    later: list[bytes] | None = None
    """The truth of the second epoch, where it is another."""
    disallowed: frozenset[str] = frozenset()
    closed: bool = True
    """Whether nothing else can be found here: not so where a crawler maps records to RDF."""


class NodeContext:
    """A node, its links to others as addresses, and its graph in the node's own IRIs."""

    def __init__(
        self,
        node: OrcaNode,
        wish: WebOptions,
        ports: Ports,
        entrances: list[str],
        *,
        suite: Path | None = None,
    ) -> None:
        self.node, self.wish, self.ports, self.suite = node, wish, ports, suite
        self.origin = f"http://{node.address}:{ports.http}"
        self.rng = random.Random(f"orca/{wish.seed}/{node.number}")
        self.count = resource_count(wish.triples, wish.resource_degree)
        self.targets = [entrances[number] for number in node.links]

    @property
    def predicate(self) -> str:
        """The one predicate of all nodes of ORCA."""
        return f"{self.origin}/dataset-0/property-0"

    def graph(self, name: Callable[[int], str]) -> dict[str, list[bytes]]:
        """The node's triples by subject, links to other nodes included; `name` makes the IRIs."""
        said: dict[str, list[bytes]] = {name(number): [] for number in range(self.count)}
        for source, target in draw_graph(self.rng, self.wish.triples, self.wish.resource_degree):
            said[name(source)].append(triple(name(source), self.predicate, name(target)))
        for target_url in self.targets:
            subject = name(self.rng.randrange(self.count))
            said[subject].append(triple(subject, self.predicate, target_url))
        return said

    def links_by_resource(self) -> tuple[dict[int, list[int]], dict[int, list[str]]]:
        """The same for kinds that write pages: links within, and to others."""
        inner: dict[int, list[int]] = defaultdict(list)
        outer: dict[int, list[str]] = defaultdict(list)
        for source, target in draw_graph(self.rng, self.wish.triples, self.wish.resource_degree):
            inner[source].append(target)
        for url in self.targets:
            outer[self.rng.randrange(self.count)].append(url)
        return inner, outer


def triple(subject: str, predicate: str, value: str) -> bytes:
    """A line of N-Triples about IRIs."""
    return f"<{subject}> <{predicate}> <{value}> .\n".encode()


def together(said: dict[str, list[bytes]]) -> list[bytes]:
    """All triples of a graph."""
    return [line for lines in said.values() for line in lines]


def document(lines: Iterable[bytes]) -> bytes:
    """N-Triples as a file."""
    return b"".join(lines)
