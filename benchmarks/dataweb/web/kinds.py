"""The five kinds of node that ORCA has: dereferencing, dump, SPARQL, CKAN, RDFa. Pure."""

from html import escape

from benchmarks.dataweb.web.answers import (
    Answer,
    EndpointPage,
    SaidPage,
    SearchPage,
    as_json,
    html,
    response,
    written,
)
from benchmarks.dataweb.web.context import Built, NodeContext, document, together, triple
from benchmarks.dataweb.web.w3c import suite_node
from tamias.demo.kinds import PACKED_TYPES, PACKERS

DUMP_TYPES = {
    "ttl": "text/turtle",
    "n3": "text/n3",
    "rdf": "application/rdf+xml",
    "nt": "application/n-triples",
}
DCAT, DCT = "http://www.w3.org/ns/dcat#", "http://purl.org/dc/terms/"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
SD = "http://www.w3.org/ns/sparql-service-description#"


def dereferencing(context: NodeContext) -> Built:
    """The IRI of a resource is the address of the triples that have it as subject."""
    said = context.graph(lambda number: f"{context.origin}/dataset-0/resource-{number}")
    hidden = hidden_resources(context, said)
    pages: dict[str, Answer] = {}
    weights, later = {}, []
    for iri, lines in said.items():
        path = iri.removeprefix(context.origin)
        changed = changed_lines(context, iri, lines)
        pages[path] = SaidPage(document(lines), document(changed) if changed != lines else None, {})
        weights[path] = len(lines)
        later += changed
    for path in hidden:
        pages[path] = response(200, b"", "text/turtle")
    robots = robots_file(context, hidden)
    if robots:
        pages["/robots.txt"] = response(200, robots, "text/plain")
    return Built(pages, together(said), weights, later=later, disallowed=frozenset(hidden))


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


def changed_lines(context: NodeContext, iri: str, lines: list[bytes]) -> list[bytes]:
    """What the resource says in the second epoch."""
    if context.wish.changing and context.rng.random() < context.wish.changing:
        return [*lines, triple(iri, context.predicate, f"{context.origin}/dataset-0/resource-0")]
    return lines


def dump_name(node_syntax: str, packing: str) -> str:
    """The name of a dump tells how it is written and packed."""
    return f"dumpFile.{node_syntax}" + (f".{packing}" if packing else "")


def dump(context: NodeContext) -> Built:
    """Everything in one file; the resources are told apart by fragments."""
    node = context.node
    name = dump_name(node.syntax, node.packing)
    said = context.graph(lambda number: f"{context.origin}/{name}#dataset-0-resource-{number}")
    lines = together(said)
    body = written(document(lines), DUMP_TYPES[node.syntax])
    packed, media_type = (
        PACKERS[node.packing](f"dumpFile.{node.syntax}", body),
        PACKED_TYPES.get(node.packing),
    )
    page = response(200, packed, media_type or DUMP_TYPES[node.syntax])
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
    endpoint = EndpointPage(document(lines), f"{context.origin}/dataset-0", document(also))
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
