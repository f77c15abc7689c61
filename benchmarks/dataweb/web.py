"""A whole web as values: what every address answers, and the truth about it. Pure.

Five kinds of node as in ORCA: dereferencing, dump, SPARQL, CKAN, RDFa (with the W3C's test pages, if given).
"""

import json
import random
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import NamedTuple

import msgspec
from pyoxigraph import RdfFormat, parse

from benchmarks.dataweb.answers import (
    Answer,
    EndpointPage,
    SaidPage,
    SearchPage,
    as_json,
    html,
    response,
    written,
)
from benchmarks.dataweb.plan import OrcaNode, OrcaPlan, WebOptions, draw_graph, resource_count
from tamias.features.demo.web import PACKED_TYPES, PACKERS
from tamias.model.errors import UsageError

DUMP_TYPES = {
    "ttl": "text/turtle",
    "n3": "text/n3",
    "rdf": "application/rdf+xml",
    "nt": "application/n-triples",
}
DCAT, DCT = "http://www.w3.org/ns/dcat#", "http://purl.org/dc/terms/"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
SD = "http://www.w3.org/ns/sparql-service-description#"
HOME = "http://rdfa.info/"
"""The domain of the suite, which is replaced by the node's, as ORCA does."""
CASES = "test-suite/test-cases/"
HOSTS = (
    ("rdfa1.0", "html4"), ("rdfa1.0", "xhtml1"), ("rdfa1.1", "html4"), ("rdfa1.1", "html5"),
    ("rdfa1.1", "xhtml1"), ("rdfa1.1", "xhtml5"),
)  # fmt: skip
SEE_ALSO = "http://www.w3.org/2000/01/rdf-schema#seeAlso"
FILE_LIMIT = 1 << 20


class Built(msgspec.Struct, frozen=True):
    """A node as it is served, and the truth about it."""

    pages: dict[str, Answer]
    truth: list[bytes]
    """The N-Triples a complete crawl has; blank nodes stand for any."""
    weights: dict[str, int]
    """Triples by path, for each document that a crawl has to fetch."""
    also: list[bytes] = []
    """What is said too, and is no data of its own: descriptions of services and streams."""
    disallowed: frozenset[str] = frozenset()
    closed: bool = True
    """Whether nothing else can be found here: not so where a crawler maps records to RDF."""


class NodeContext:
    """A node, its links to others as addresses, and its graph in the node's own IRIs."""

    def __init__(
        self, node: OrcaNode, wish: WebOptions, port: int, entrances: list[str], suite: Path | None
    ) -> None:
        self.node, self.wish, self.suite = node, wish, suite
        self.origin = f"http://{node.address}:{port}"
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


def triple(subject: str, predicate: str, value: str) -> bytes:
    """A line of N-Triples about IRIs."""
    return f"<{subject}> <{predicate}> <{value}> .\n".encode()


def together(said: dict[str, list[bytes]]) -> list[bytes]:
    """All triples of a graph."""
    return [line for lines in said.values() for line in lines]


def dereferencing(context: NodeContext) -> Built:
    """The IRI of a resource is the address of the triples that have it as subject."""
    said = context.graph(lambda number: f"{context.origin}/dataset-0/resource-{number}")
    hidden = hidden_resources(context, said)
    pages: dict[str, Answer] = {}
    weights = {}
    for iri, lines in said.items():
        path = iri.removeprefix(context.origin)
        pages[path] = SaidPage(b"".join(lines), {})
        weights[path] = len(lines)
    for path in hidden:
        pages[path] = response(200, b"", "text/turtle")
    robots = robots_file(context, hidden)
    if robots:
        pages["/robots.txt"] = response(200, robots, "text/plain")
    return Built(pages, together(said), weights, disallowed=frozenset(hidden))


def hidden_resources(context: NodeContext, said: dict[str, list[bytes]]) -> list[str]:
    """Resources that robots.txt forbids, each linked from one that it allows."""
    share = context.wish.disallowed
    if not share:
        return []
    count = max(1, int(context.count * share / (1 - share)))
    hidden = [f"/dataset-0/resource-{context.count + turn}" for turn in range(count)]
    for path in hidden:
        subject = context.rng.choice(list(said))
        said[subject].append(triple(subject, context.predicate, context.origin + path))
    return hidden


def robots_file(context: NodeContext, hidden: list[str]) -> bytes:
    """Empty where there is nothing to forbid and nothing to ask for."""
    lines = [f"Crawl-delay: {context.wish.delay:g}"] * bool(context.wish.delay)
    lines += [f"Disallow: {path}" for path in hidden]
    return "\n".join(["User-agent: *", *lines, ""]).encode() if lines else b""


def dump_name(node_syntax: str, packing: str) -> str:
    """The name of a dump tells how it is written and packed."""
    return f"dumpFile.{node_syntax}" + (f".{packing}" if packing else "")


def dump(context: NodeContext) -> Built:
    """Everything in one file; the resources are told apart by fragments."""
    node = context.node
    name = dump_name(node.syntax, node.packing)
    said = context.graph(lambda number: f"{context.origin}/{name}#dataset-0-resource-{number}")
    lines = together(said)
    body = written(b"".join(lines), DUMP_TYPES[node.syntax])
    packed = PACKERS[node.packing](f"dumpFile.{node.syntax}", body)
    page = response(200, packed, PACKED_TYPES.get(node.packing) or DUMP_TYPES[node.syntax])
    return Built({f"/{name}": page}, lines, {f"/{name}": len(lines)})


def sparql(context: NodeContext) -> Built:
    """An endpoint with one named graph. Its own description is what a request without a query gets."""
    said = context.graph(lambda number: f"{context.origin}/data/dataset-0/resource-{number}")
    lines = together(said)
    url = f"{context.origin}/sparql"
    also = [
        triple(f"{url}#service", RDF_TYPE, f"{SD}Service"),
        triple(f"{url}#service", f"{SD}endpoint", url),
    ]
    endpoint = EndpointPage(b"".join(lines), f"{context.origin}/dataset-0", b"".join(also))
    return Built({"/sparql": endpoint}, lines, {"/sparql": len(lines)}, also, closed=False)


def ckan(context: NodeContext) -> Built:
    """A portal with one dataset for each link; it has no RDF of its own."""
    packages: list[dict[str, object]] = []
    truth: list[bytes] = []
    for number, url in enumerate(context.targets):
        plain = "".join(letter for letter in url.lower() if letter.isalnum())
        packages.append({
            "id": f"{context.node.number:08d}-{number:04d}", "name": plain[:100], "title": f"Dataset {url}",
            "author": "ldcbench", "state": "active", "type": "dataset",
            "organization": {"id": "dice", "name": "dice-group", "title": "dice-group"},
            "resources": [{"id": f"{context.node.number}-{number}-r", "name": f"dist{plain}", "url": url}],
        })  # fmt: skip
        truth += [
            f"_:d <{RDF_TYPE}> <{DCAT}Dataset> .\n".encode(), f"_:d <{DCAT}distribution> _:r .\n".encode(),
            f'_:d <{DCT}title> "Dataset {url}" .\n'.encode(),
            f"_:r <{RDF_TYPE}> <{DCAT}Distribution> .\n".encode(),
            f"_:r <{DCAT}accessURL> <{url}> .\n".encode(),
        ]  # fmt: skip
    pages: dict[str, Answer] = {
        "/": html('<meta name="generator" content="ckan 2.8.1"><title>Portal</title>', "<h1>Portal</h1>"),
        "/api/3/action/package_search": SearchPage(packages),
        "/api/3/action/status_show": as_json({"success": True, "result": {"ckan_version": "2.8.1"}}),
    }
    return Built(pages, truth, {"/": 0, "/api/3/action/package_search": len(truth)}, closed=False)


def rdfa(context: NodeContext) -> Built:
    """The W3C's test pages where they are at hand, otherwise pages of ours with the usual graph."""
    if context.suite is not None:
        return suite_node(context, context.suite)
    said = context.graph(lambda number: f"{context.origin}/dataset-0/resource-{number}")
    pages: dict[str, Answer] = {}
    for iri, lines in said.items():
        values = [line.split(b" ")[2][1:-1].decode() for line in lines]
        links = "".join(
            f'<li><a property="{context.predicate}" href="{escape(value)}">{turn}</a></li>\n'
            for turn, value in enumerate(values)
        )
        pages[iri.removeprefix(context.origin)] = html("", f'<ul about="{iri}">\n{links}</ul>')
    weights = {iri.removeprefix(context.origin): len(lines) for iri, lines in said.items()}
    return Built(pages, together(said), weights)


def check_suite(folder: Path) -> Path:
    """The folder with the manifest, which may be one below. Raises `UsageError` if it is not there."""
    for place in (folder, folder / "test-suite"):
        if (place / "manifest.jsonld").is_file():
            return place
    raise UsageError(
        f"--rdfa-suite {folder}: no manifest.jsonld there; name the folder of the W3C's RDFa test suite"
    )


def suite_node(context: NodeContext, suite: Path) -> Built:
    """The start links to every test page and to the other nodes."""
    pages: dict[str, Answer] = {}
    truth: list[bytes] = []
    weights: dict[str, int] = {}
    start = f"{context.origin}/dataset-0/resource-0"
    for path, text, said in suite_pages(suite, f"{context.origin}/"):
        kind = "application/xhtml+xml" if path.endswith(".xhtml") else "text/html"
        pages[path] = response(200, text, kind)
        truth += said
        weights[path] = len(said)
    links = [context.origin + path for path in weights] + context.targets
    truth += [triple(start, SEE_ALSO, url) for url in links]
    body = "".join(f'<a rel="rdfs:seeAlso" href="{url}">{turn}</a>\n' for turn, url in enumerate(links))
    pages["/dataset-0/resource-0"] = html("", f'<div about="{start}">\n{body}</div>')
    weights["/dataset-0/resource-0"] = len(links)
    return Built(pages, truth, weights, closed=False)


def suite_pages(suite: Path, home: str) -> list[tuple[str, bytes, list[bytes]]]:
    """Path, page and triples of every required test that expects some."""
    manifest = json.loads((suite / "manifest.jsonld").read_bytes())["@graph"]
    found = []
    for version, host in HOSTS:
        for test in manifest:
            required = str(test["classification"]).endswith("required")
            says = required and bool(test["expectedResults"]) and "queryParam" not in test
            if version in test["versions"] and host in test["hostLanguages"] and says:
                found += one_page(suite, f"{version}/{host}/{test['num']}", home)
    return found


def one_page(suite: Path, name: str, home: str) -> list[tuple[str, bytes, list[bytes]]]:
    """One test, with the suite's address replaced by the node's; none if its files are not all there."""
    suffix = ".xhtml" if "/xhtml" in name else ".html"
    page, result = (suite / "test-cases" / f"{name}{end}" for end in (suffix, ".ttl"))
    if not (page.is_file() and result.is_file()):
        return []
    files = (each.read_bytes()[:FILE_LIMIT] for each in (page, result))
    text, expected = (each.replace(HOME.encode(), home.encode()) for each in files)
    path = f"{CASES}{name}{suffix}"
    quads = parse(expected, format=RdfFormat.TURTLE, base_iri=f"{home}{path}")
    return [(f"/{path}", text, [f"{quad.triple} .\n".encode() for quad in quads])]


class OrcaKind(NamedTuple):
    """How nodes of a kind are entered, and how they are built."""

    entrance: Callable[[OrcaNode], str]
    build: Callable[[NodeContext], Built]


KINDS = {
    "deref": OrcaKind(lambda _: "/dataset-0/resource-0", dereferencing),
    "ckan": OrcaKind(lambda _: "/", ckan),
    "sparql": OrcaKind(lambda _: "/sparql", sparql),
    "dump": OrcaKind(lambda node: f"/{dump_name(node.syntax, node.packing)}#dataset-0-resource-0", dump),
    "rdfa": OrcaKind(lambda _: "/dataset-0/resource-0", rdfa),
}


class OrcaWeb(msgspec.Struct, frozen=True):
    """All nodes by address, and where a crawl is to begin."""

    plan: OrcaPlan
    port: int
    nodes: dict[str, Built]
    seeds: list[str]

    @property
    def resources(self) -> int:
        """Documents that a complete crawl fetches."""
        return sum(len(built.weights) for built in self.nodes.values())

    @property
    def triples(self) -> int:
        """Statements that it has then."""
        return sum(len(built.truth) for built in self.nodes.values())

    def pages_at(self, address: str) -> dict[str, Answer] | None:
        """The pages of an address; None where there is no node."""
        built = self.nodes.get(address)
        return built.pages if built else None

    def kind_of(self, address: str) -> str:
        """What sort of node is at an address."""
        return next(node.kind for node in self.plan.nodes if node.address == address)


def build_web(plan: OrcaPlan, port: int, suite: Path | None = None) -> OrcaWeb:
    """The same web for the same plan and ports."""
    entrances = [f"http://{node.address}:{port}{KINDS[node.kind].entrance(node)}" for node in plan.nodes]
    nodes = {
        node.address: KINDS[node.kind].build(NodeContext(node, plan.wish, port, entrances, suite))
        for node in plan.nodes
    }
    return OrcaWeb(plan, port, nodes, [entrances[number] for number in plan.seeds])
