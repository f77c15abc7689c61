"""The documents of a web: pages by the kind of their node, oddities, and the ground truth of both. Pure.

And two documents that change from day to day, which an archive is for; nothing links to them.
"""

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import quote

import brotli
import msgspec
import zstandard
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, serialize

from tamias.content.blank_labels import rename_blank_nodes
from tamias.features.demo.plan import DemoNode, WebPlan

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
TERMS = ("Thing", "label", "value", "kind", "link", "part")
_GOODS = "apples bread butter cheese coffee eggs milk pears rice salt sugar tea"


class DemoPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page: its data in whichever syntax the client likes best, or fixed bytes, or only a status."""

    quads: tuple[Quad, ...] = ()
    """What a reader finds; the default graph stands for the document."""
    body: bytes | None = None
    """Set for a file; its media type need not be the truth."""
    media_type: str = ""
    status: int = 200
    location: str | None = None
    is_busy: bool = False
    """Whether the first visitor is asked to come again in a second."""
    delay: float = 0.0
    """Seconds before it is given."""


class DemoSite(msgspec.Struct, frozen=True, kw_only=True):
    """A host with all its paths."""

    authority: str
    pages: dict[str, DemoPage]
    disallowed: frozenset[str]
    """The paths that exist and that its robots.txt forbids."""

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://{self.authority}{path}"


class DemoWeb(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts by address, and the URLs from which all can be reached."""

    sites: dict[str, DemoSite]
    seeds: tuple[str, ...]


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

    def links(self, extra: Sequence[str]) -> tuple[list[list[int]], list[list[str]]]:
        """Draw links of each resource: within the node, where a tree from 0 reaches all, and to other hosts.

        Resource 0 has the `extra` ones.
        """
        size = self.node.resources
        inner = [[self.rng.randrange(size)] for _ in range(size)]
        for number in range(1, size):
            inner[self.rng.randrange(number)].append(number)
        outer: list[list[str]] = [[*extra], *([] for _ in range(size - 1))]
        for target in self.node.links:
            self.rng.choice(outer).append(self.entrances[target])
        return inner, outer

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

    def described(self, path: str, *, delay: float = 0.0, is_busy: bool = False) -> DemoPage:
        """A page that describes what has its address."""
        return DemoPage(quads=self.describe(self.url(path)), delay=delay, is_busy=is_busy)


def written(quads: Iterable[Quad], syntax: RdfFormat) -> bytes:
    """RDF as text."""
    return serialize(quads, format=syntax) or b""


def zipped(name: str, data: bytes) -> bytes:
    """A zip archive of one file, without the time of day."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tarred(name: str, data: bytes) -> bytes:
    """A tar archive of one file, without the time of day."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


PACKERS: dict[str, Callable[[str, bytes], bytes]] = {
    "": lambda _, data: data,
    "gz": lambda _, data: gzip.compress(data, mtime=0),
    "bz2": lambda _, data: bz2.compress(data),
    "zip": zipped,
    "xz": lambda _, data: lzma.compress(data),
    "zst": lambda _, data: zstandard.compress(data),
    "br": lambda _, data: bytes(brotli.compress(data, quality=5)),
    "tar": tarred,
    "tar.gz": lambda name, data: gzip.compress(tarred(name, data), mtime=0),
}
PACKED_TYPES = {
    **dict.fromkeys(("gz", "tar.gz"), "application/gzip"),
    **{name: f"application/x-{long}" for name, long in (("bz2", "bzip2"), ("br", "brotli"))},
    **{name: f"application/x-{name}" for name in ("xz", "tar")},
    "zip": "application/zip",
    "zst": "application/zstd",
}


def deref_pages(writer: NodeWriter, extra: Sequence[str]) -> dict[str, DemoPage]:
    """Linked Data: the IRI of a thing is the address of what is said about it."""
    inner, outer = writer.links(extra)
    iris = [writer.url(f"/resource/{number}") for number in range(writer.node.resources)]
    return {
        f"/resource/{number}": DemoPage(
            quads=writer.describe(iri, [*(iris[other] for other in inner[number]), *outer[number]])
        )
        for number, iri in enumerate(iris)
    }


def dump_path(node: DemoNode) -> str:
    """Return the path of a dump, which names its syntax and packing."""
    return f"/dump.{node.syntax}" + (f".{node.packing}" if node.packing else "")


def dump_pages(writer: NodeWriter, extra: Sequence[str]) -> dict[str, DemoPage]:
    """Return a dump of all resources in one file, some in named graphs if the syntax has them."""
    path, syntax = dump_path(writer.node), RdfFormat.from_extension(writer.node.syntax)
    assert syntax is not None
    url = writer.url(path)
    inner, outer = writer.links(extra)
    quads: list[Quad] = []
    for number in range(writer.node.resources):
        links = [f"{url}#resource-{other}" for other in inner[number]] + outer[number]
        said = writer.describe(f"{url}#resource-{number}", links)
        named = syntax.supports_datasets and number % 3 == 2
        quads += in_document(said, f"{url}#graph") if named else said
    packing = writer.node.packing
    body = PACKERS[packing](f"dump.{writer.node.syntax}", written(quads, syntax))
    return {
        path: DemoPage(body=body, media_type=PACKED_TYPES.get(packing, syntax.media_type), quads=tuple(quads))
    }


def html_pages(writer: NodeWriter, extra: Sequence[str]) -> dict[str, DemoPage]:
    """Pages for people that link to each other and elsewhere; the data of each is its alternate.

    References are relative, absolute, to the page itself, and to nothing that can be fetched.
    """
    inner, outer = writer.links(extra)
    pages: dict[str, DemoPage] = {}
    for number in range(writer.node.resources):
        quads = writer.describe(writer.url(f"/page/{number}#it"))
        references = [
            *(f"./{other}" for other in inner[number]),
            *outer[number],
            "#top",
            "mailto:a@localhost",
        ]
        items = "".join(f'<li><a href="{each}">{each}</a></li>\n' for each in map(escape, references))
        body = (
            f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">\n'
            f"<title>Page {number} · Østre Anlæg</title>\n"
            f'<link rel="alternate" type="text/turtle" href="../data/{number}.ttl"></head>\n'
            f'<body id="top">\n<ul>\n{items}</ul>\n</body>\n</html>\n'
        )
        pages[f"/page/{number}"] = DemoPage(body=body.encode(), media_type="text/html; charset=utf-8")
        data = written(quads, RdfFormat.TURTLE)
        pages[f"/data/{number}.ttl"] = DemoPage(body=data, media_type="text/turtle", quads=quads)
    return pages


class NodeKind(NamedTuple):
    """`entrance` is the path that others link to; `pages` is told what the first page must link to."""

    entrance: Callable[[DemoNode], str]
    pages: Callable[[NodeWriter, Sequence[str]], dict[str, DemoPage]]


KINDS = {
    "deref": NodeKind(lambda _: "/resource/0", deref_pages),
    "dump": NodeKind(dump_path, dump_pages),
    "html": NodeKind(lambda _: "/page/0", html_pages),
}


class Oddity(NamedTuple):
    """Pages that a site has besides its data, and the paths through which they are found."""

    pages: dict[str, DemoPage]
    links: tuple[str, ...] = ()
    robots: tuple[str, ...] = ()
    """Lines for its robots.txt."""
    disallowed: tuple[str, ...] = ()
    """The pages that those lines forbid."""


def vocabulary(writer: NodeWriter) -> Oddity:
    """The terms that all data uses, told apart by fragments. Every description links here."""
    label = writer.term("label")
    return Oddity(
        {"/vocab": DemoPage(quads=tuple(Quad(writer.term(name), label, Literal(name)) for name in TERMS))}
    )


def see_other(writer: NodeWriter) -> Oddity:
    """Slash IRIs: a thing is not a document, so /id/N sends its visitors on to /doc/N."""
    pages: dict[str, DemoPage] = {}
    for number in range(3):
        pages[f"/id/{number}"] = DemoPage(status=303, location=f"/doc/{number}")
        pages[f"/doc/{number}"] = writer.described(f"/id/{number}")
    return Oddity(pages, tuple(f"/id/{number}" for number in range(3)))


def hash_iris(writer: NodeWriter) -> Oddity:
    """Hash IRIs: two things, one document, one request."""
    subjects = ("/hash#one", "/hash#other")
    return Oddity(
        {"/hash": DemoPage(quads=sum(map(writer.describe, map(writer.url, subjects)), ()))}, subjects
    )


def moved(writer: NodeWriter) -> Oddity:
    """A page that has gone to another host, and one that moved twice at home."""
    pages = {
        "/moved/away": DemoPage(status=301, location=writer.entrances[writer.node.number - 1]),
        "/moved/twice": DemoPage(status=302, location="once"),
        "/moved/once": DemoPage(status=307, location=writer.url("/moved/here")),
        "/moved/here": writer.described("/moved/twice"),
    }
    return Oddity(pages, ("/moved/away", "/moved/twice"))


def mislabelled(writer: NodeWriter) -> Oddity:
    """Turtle that is called plain text."""
    quads = writer.describe(writer.url("/mislabelled"))
    page = DemoPage(body=written(quads, RdfFormat.TURTLE), media_type="text/plain", quads=quads)
    return Oddity({"/mislabelled": page}, ("/mislabelled",))


def international(writer: NodeWriter) -> Oddity:
    """An IRI whose address has to be written differently on the wire."""
    path = "/ort/Østre_Anlæg_(東)"
    return Oddity({quote(path, safe="/()"): writer.described(path)}, (path,))


def private(writer: NodeWriter) -> Oddity:
    """Data that robots.txt forbids, linked and redirected to all the same, with one exception inside."""
    paths = ("/private/0", "/private/1", "/private/open")
    pages = {path: writer.described(path) for path in paths}
    pages["/to-private"] = DemoPage(status=303, location="/private/1")
    rules = ("Disallow: /private/", "Allow: /private/open")
    return Oddity(pages, ("/private/0", "/to-private", "/private/open"), rules, paths[:2])


_GONE = {"/missing": DemoPage(status=404), "/gone": DemoPage(status=410)}
ODDITIES: dict[str, Callable[[NodeWriter], Oddity]] = {
    "vocabulary": vocabulary,
    "see-other": see_other,
    "hash": hash_iris,
    "moved": moved,
    "gone": lambda _: Oddity(
        {"/missing": DemoPage(status=404), "/gone": DemoPage(status=410)}, ("/missing", "/gone")
    ),
    "busy": lambda writer: Oddity({"/busy": writer.described("/busy", is_busy=True)}, ("/busy",)),
    "slow": lambda writer: Oddity({"/slow": writer.described("/slow", delay=0.5)}, ("/slow",)),
    "mislabelled": mislabelled,
    "international": international,
    "private": private,
    "crawl-delay": lambda _: Oddity({}, robots=("Crawl-delay: 1",)),
}


def build_web(plan: WebPlan, port: int) -> DemoWeb:
    """Build the documents of the web as served at `port`."""
    entrances = [f"http://{node.address}:{port}{KINDS[node.kind].entrance(node)}" for node in plan.nodes]
    terms = f"http://{plan.nodes[0].address}:{port}/vocab"
    sites: dict[str, DemoSite] = {}
    for node in plan.nodes:
        writer = NodeWriter(node, port, entrances, terms, random.Random(f"{plan.seed}/{node.number}"))
        oddities = [ODDITIES[name](writer) for name in node.oddities]
        links = [writer.url(path) for oddity in oddities for path in oddity.links]
        pages = KINDS[node.kind].pages(writer, links)
        for oddity in oddities:
            pages |= oddity.pages
        if rules := [line for oddity in oddities for line in oddity.robots]:
            robots = "\n".join(["User-agent: *", *rules, ""]).encode()
            pages["/robots.txt"] = DemoPage(body=robots, media_type="text/plain")
        disallowed = frozenset(path for oddity in oddities for path in oddity.disallowed)
        sites[node.address] = DemoSite(authority=f"{node.address}:{port}", pages=pages, disallowed=disallowed)
    return DemoWeb(sites=sites, seeds=tuple(entrances[number] for number in plan.seeds))


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """URLs that a complete and polite crawl finds, and those that it must not request."""

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
    found = {
        site.url(path): in_document(page.quads, site.url(path))
        for site in web.sites.values()
        for path, page in site.pages.items()
        if page.quads
    }
    disallowed = frozenset(site.url(path) for site in web.sites.values() for path in site.disallowed)
    return Expected(
        documents={url: quads for url, quads in found.items() if url not in disallowed},
        disallowed=disallowed,
        refused_quads=frozenset().union(*(found[url] for url in disallowed if url in found)),
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
    any_node = BlankNode("any")

    def nameless(quad: Quad) -> Quad:
        return rename_blank_nodes(quad, lambda _: any_node)

    have = set(map(nameless, found))
    return {quad for quad in expected if nameless(quad) not in have}


def put_watched(web: DemoWeb, day: int) -> tuple[str, str]:
    """Puts a table and a graph on the first host as they are on some day, from 0; returns their addresses.

    Each day one product goes, one comes, every third becomes dearer; and one more station opens.
    """
    site = next(iter(web.sites.values()))
    goods = (*_GOODS.split()[day:], *(f"new kind {number}" for number in range(1, day + 1)))
    prices = {name: 100 + 7 * len(name) + (5 * day if (ord(name[0]) + day) % 3 == 0 else 0) for name in goods}
    table = ["product,price", *(f"{name},{cents / 100:.2f}" for name, cents in prices.items()), ""]
    graph = ["@prefix ex: <http://stations.example/> .", ""]
    graph += [f'ex:station{number} a ex:Station ; ex:name "Station {number}" .' for number in range(5 + day)]
    files = {
        "/open-data/prices.csv": (table, "text/csv"),
        "/open-data/stations.ttl": ([*graph, ""], "text/turtle"),
    }
    for path, (lines, media_type) in files.items():
        site.pages[path] = DemoPage(body="\n".join(lines).encode(), media_type=media_type)
    first, second = map(site.url, files)
    return first, second
