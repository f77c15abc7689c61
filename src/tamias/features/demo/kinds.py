"""The kinds of node: how each is entered, and its pages. Pure. A new kind is one more line in `KINDS`."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

import brotli
import msgspec
import zstandard
from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

from tamias.features.demo.plan import DemoNode, NodeWriter


class Data(msgspec.Struct, frozen=True):
    """RDF in whichever syntax the client likes best."""

    quads: tuple[Quad, ...]


class File(msgspec.Struct, frozen=True):
    """Fixed bytes under a media type that need not be the truth."""

    body: bytes
    media_type: str
    quads: tuple[Quad, ...] = ()
    """What a reader who opens it finds; the default graph stands for the document."""


class Redirect(msgspec.Struct, frozen=True):
    """A redirect."""

    location: str
    status: int = 303


class MissingPage(msgspec.Struct, frozen=True):
    """A missing page that others still link to."""

    status: int = 404


class Busy(msgspec.Struct, frozen=True):
    """Asks the first visitor to come again, and then gives the page."""

    page: Data | File
    retry_after: int = 1


class Slow(msgspec.Struct, frozen=True):
    """Gives the page after a while."""

    page: Data | File
    seconds: float = 0.5


Page = Data | File | Redirect | MissingPage | Busy | Slow


class DemoSite(msgspec.Struct, frozen=True, kw_only=True):
    """A host with all its paths."""

    authority: str
    kind: str
    pages: dict[str, Page]
    disallowed: frozenset[str] = frozenset()
    """The paths that exist and that its robots.txt forbids."""

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://{self.authority}{path}"


class DemoWeb(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts by address, and the URLs from which all can be reached."""

    sites: dict[str, DemoSite]
    seeds: tuple[str, ...]


def quads_of(page: Page) -> tuple[Quad, ...]:
    """Return the statements of a page."""
    match page:
        case Data(quads=quads) | File(quads=quads):
            return quads
        case Busy(page=inner) | Slow(page=inner):
            return inner.quads
        case _:
            return ()


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
    "gz": "application/gzip",
    "bz2": "application/x-bzip2",
    "zip": "application/zip",
    "xz": "application/x-xz",
    "zst": "application/zstd",
    "br": "application/x-brotli",
    "tar": "application/x-tar",
    "tar.gz": "application/gzip",
}


def deref_pages(writer: NodeWriter, extra: Sequence[str]) -> dict[str, Page]:
    """Linked Data: the IRI of a thing is the address of what is said about it."""
    inner, outer = writer.inner_links(), writer.outer_links(extra)
    return {
        f"/resource/{number}": Data(
            writer.describe(
                writer.url(f"/resource/{number}"),
                [writer.url(f"/resource/{other}") for other in inner[number]] + outer[number],
            )
        )
        for number in range(writer.node.resources)
    }


def dump_path(node: DemoNode) -> str:
    """Return the path of a dump, which names its syntax and packing."""
    return f"/dump.{node.syntax}" + (f".{node.packing}" if node.packing else "")


def dump_pages(writer: NodeWriter, extra: Sequence[str]) -> dict[str, Page]:
    """Return a dump of all resources in one file, some in named graphs if the syntax has them."""
    path, syntax = dump_path(writer.node), rdf_format(writer.node.syntax)
    url = writer.url(path)
    inner, outer = writer.inner_links(), writer.outer_links(extra)
    quads: list[Quad] = []
    for number in range(writer.node.resources):
        links = [f"{url}#resource-{other}" for other in inner[number]] + outer[number]
        said = writer.describe(f"{url}#resource-{number}", links)
        named = syntax.supports_datasets and number % 3 == 2
        quads.extend(in_graph(said, f"{url}#graph") if named else said)
    name = f"dump.{writer.node.syntax}"
    body = PACKERS[writer.node.packing](name, written(quads, syntax))
    media_type = PACKED_TYPES.get(writer.node.packing, syntax.media_type)
    return {path: File(body, media_type, tuple(quads))}


def html_pages(writer: NodeWriter, extra: Sequence[str]) -> dict[str, Page]:
    """Pages for people that link to each other and elsewhere; the data of each is its alternate."""
    inner, outer = writer.inner_links(), writer.outer_links(extra)
    pages: dict[str, Page] = {}
    for number in range(writer.node.resources):
        quads = writer.describe(writer.url(f"/page/{number}#it"))
        pages[f"/page/{number}"] = File(
            html_page(number, inner[number], outer[number]), "text/html; charset=utf-8"
        )
        pages[f"/data/{number}.ttl"] = File(written(quads, RdfFormat.TURTLE), "text/turtle", quads)
    return pages


def html_page(number: int, inner: Iterable[int], outer: Iterable[str]) -> bytes:
    """A page whose references are relative, absolute, to itself, and to nothing that can be fetched."""
    references = [f"./{other}" for other in inner] + list(outer) + ["#top", "mailto:steward@localhost"]
    items = "".join(
        f'<li><a href="{escape(reference)}">{escape(reference)}</a></li>\n' for reference in references
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">\n'
        f"<title>Page {number} · Østre Anlæg</title>\n"
        f'<link rel="alternate" type="text/turtle" href="../data/{number}.ttl"></head>\n'
        f'<body id="top">\n<ul>\n{items}</ul>\n</body>\n</html>\n'
    ).encode()


def in_graph(quads: Iterable[Quad], name: str) -> list[Quad]:
    """The same statements in a named graph."""
    return [Quad(quad.subject, quad.predicate, quad.object, NamedNode(name)) for quad in quads]


def written(quads: Iterable[Quad], syntax: RdfFormat) -> bytes:
    """RDF as text."""
    return serialize(quads, format=syntax) or b""


def rdf_format(extension: str) -> RdfFormat:
    """The syntax with this file extension."""
    syntax = RdfFormat.from_extension(extension)
    if syntax is None:
        raise ValueError(f"no RDF syntax has the file extension {extension!r}")
    return syntax


class NodeKind(NamedTuple):
    """`entrance` is the path that others link to; `pages` is told what the first page must link to."""

    entrance: Callable[[DemoNode], str]
    pages: Callable[[NodeWriter, Sequence[str]], dict[str, Page]]


KINDS = {
    "deref": NodeKind(lambda _: "/resource/0", deref_pages),
    "dump": NodeKind(dump_path, dump_pages),
    "html": NodeKind(lambda _: "/page/0", html_pages),
}
