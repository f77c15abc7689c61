"""Kinds of node ORCA lacks: redirects, hash IRIs, JSON-LD, Microdata, LDES, Semantic Sitemaps, FTP. Pure."""

import gzip
import json
from html import escape

from benchmarks.dataweb.web.answers import Answer, SaidPage, html, response, written
from benchmarks.dataweb.web.context import Built, NodeContext, document, together, triple

THING = "http://schema.org/Thing"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
TREE, LDES = "https://w3id.org/tree#", "https://w3id.org/ldes#"
SITEMAP = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:sc="http://sw.deri.org/2007/07/sitemapextension/scschema.xsd">'
)
HASH_SIZE = 10
STREAM_SIZE = 50


def redirecting(context: NodeContext) -> Built:
    """A resource is not a document: 303 leads to what is said about it."""
    said = context.graph(lambda number: f"{context.origin}/dataset-0/resource-{number}")
    pages: dict[str, Answer] = {}
    weights = {}
    for number, (iri, lines) in enumerate(said.items()):
        place = f"/dataset-0/data-{number}"
        pages[iri.removeprefix(context.origin)] = response(303, b"", "", ("Location", place))
        pages[place] = SaidPage(document(lines), None, {})
        weights[place] = len(lines)
    return Built(pages, together(said), weights)


def with_hashes(context: NodeContext) -> Built:
    """Some resources in each document, told apart by the fragment."""

    def place(number: int) -> str:
        return f"/dataset-0/document-{number // HASH_SIZE}"

    said = context.graph(lambda number: f"{context.origin}{place(number)}#resource-{number}")
    by_place: dict[str, list[bytes]] = {}
    for number, lines in enumerate(said.values()):
        by_place.setdefault(place(number), []).extend(lines)
    pages: dict[str, Answer] = {path: SaidPage(document(lines), None, {}) for path, lines in by_place.items()}
    return Built(pages, together(said), {path: len(lines) for path, lines in by_place.items()})


def with_jsonld(context: NodeContext) -> Built:
    """HTML pages with a script of JSON-LD."""
    said = context.graph(lambda number: f"{context.origin}/dataset-0/resource-{number}")
    pages: dict[str, Answer] = {}
    for iri, lines in said.items():
        values = [{"@id": line.split(b" ")[2][1:-1].decode()} for line in lines]
        script = json.dumps({"@id": iri, context.predicate: values})
        pages[iri.removeprefix(context.origin)] = html(
            f'<script type="application/ld+json">{script}</script>', "<p>See the script.</p>"
        )
    weights = {iri.removeprefix(context.origin): len(lines) for iri, lines in said.items()}
    return Built(pages, together(said), weights)


def with_microdata(context: NodeContext) -> Built:
    """HTML pages with one item each, which therefore has a type too."""
    said = context.graph(lambda number: f"{context.origin}/dataset-0/resource-{number}")
    pages: dict[str, Answer] = {}
    truth: list[bytes] = []
    weights = {}
    for iri, lines in said.items():
        values = [line.split(b" ")[2][1:-1].decode() for line in lines]
        links = "".join(
            f'<a itemprop="{context.predicate}" href="{escape(value)}">x</a>\n' for value in values
        )
        path = iri.removeprefix(context.origin)
        pages[path] = html("", f'<div itemscope itemid="{iri}" itemtype="{THING}">\n{links}</div>')
        truth += [*lines, triple(iri, RDF_TYPE, THING)]
        weights[path] = len(lines) + 1
    return Built(pages, truth, weights)


def event_stream(context: NodeContext) -> Built:
    """A linked data event stream: the resources are members, on pages that relate to the next."""
    said = context.graph(lambda number: f"{context.origin}/dataset-0/member-{number}")
    members = list(said.items())
    stream = f"{context.origin}/stream#all"
    pages: dict[str, Answer] = {}
    weights, also = {}, []
    for first in range(0, len(members), STREAM_SIZE):
        path = page_of(first)
        shown = members[first : first + STREAM_SIZE]
        control = [triple(stream, f"{TREE}member", iri) for iri, _ in shown]
        control += stream_control(context.origin, stream, path, first + STREAM_SIZE, len(members))
        lines = [line for _, each in shown for line in each]
        pages[path] = SaidPage(document([*control, *lines]), None, {})
        weights[path] = len(lines)
        also += control
    return Built(pages, together(said), weights, also)


def page_of(first: int) -> str:
    """Where the page is that begins with this member."""
    return f"/stream?page={first // STREAM_SIZE}" if first else "/stream"


def stream_control(origin: str, stream: str, path: str, following: int, count: int) -> list[bytes]:
    """What a page tells about the stream, and the way to the next page."""
    lines = []
    if path == "/stream":
        lines = [triple(stream, RDF_TYPE, f"{LDES}EventStream"), triple(stream, f"{TREE}view", origin + path)]
    if following < count:
        relation = f"{origin}{path}#next"
        lines += [
            triple(origin + path, f"{TREE}relation", relation),
            triple(relation, RDF_TYPE, f"{TREE}Relation"),
            triple(relation, f"{TREE}node", origin + page_of(following)),
        ]
    return lines


def semantic_sitemap(context: NodeContext) -> Built:
    """A site that offers its resources one by one, and in one dump that its sitemap names."""
    said = context.graph(lambda number: f"{context.origin}/dataset-0/resource-{number}")
    lines = together(said)
    prefix = f"<sc:linkedDataPrefix>{context.origin}/dataset-0/</sc:linkedDataPrefix>"
    location = f"<sc:dataDumpLocation>{context.origin}/all.nt.gz</sc:dataDumpLocation>"
    sitemap = f"{SITEMAP}<sc:dataset>{prefix}{location}</sc:dataset></urlset>\n"
    pages: dict[str, Answer] = {
        iri.removeprefix(context.origin): SaidPage(document(each), None, {}) for iri, each in said.items()
    }
    pages["/robots.txt"] = response(200, f"Sitemap: {context.origin}/sitemap.xml\n".encode(), "text/plain")
    pages["/sitemap.xml"] = response(200, sitemap.encode(), "application/xml")
    pages["/"] = html('<link rel="sitemap" type="application/xml" href="/sitemap.xml">', "<h1>Resources</h1>")
    pages["/all.nt.gz"] = response(200, gzip.compress(document(lines), mtime=0), "application/gzip")
    return Built(pages, lines, {"/all.nt.gz": len(lines)})


def ftp_tree(context: NodeContext) -> Built:
    """Files in folders, in several syntaxes, behind an FTP server."""
    said = context.graph(lambda number: f"{context.origin}/data/dataset-0/resource-{number}")
    lines = together(said)
    third = len(lines) // 3 + 1
    parts = [document(lines[start : start + third]) for start in range(0, len(lines), third)]
    names = ("/top.nt", "/a/middle.rdf", "/a/b/deep file.ttl.gz")
    forms = ("application/n-triples", "application/rdf+xml", "text/turtle")
    files = {name: written(part, form) for name, part, form in zip(names, parts, forms, strict=False)}
    packed = {
        name: gzip.compress(data, mtime=0) if name.endswith(".gz") else data for name, data in files.items()
    }
    weights = {name: part.count(b"\n") for name, part in zip(names, parts, strict=False)}
    return Built({}, lines, weights, files=packed)
