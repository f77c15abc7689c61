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
import zstandard
from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

from tamias.features.demo.pages import Data, File, Page
from tamias.features.demo.plan import DemoNode
from tamias.features.demo.plot import Plot


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


def deref_pages(plot: Plot, extra: Sequence[str]) -> dict[str, Page]:
    """Linked Data: the IRI of a thing is the address of what is said about it."""
    inner, outer = plot.inner_links(), plot.outer_links(extra)
    return {
        f"/resource/{number}": Data(
            plot.describe(
                plot.url(f"/resource/{number}"),
                [plot.url(f"/resource/{other}") for other in inner[number]] + outer[number],
            )
        )
        for number in range(plot.node.resources)
    }


def dump_path(node: DemoNode) -> str:
    """Where a dump is: its name tells how it is written and packed."""
    return f"/dump.{node.syntax}" + (f".{node.packing}" if node.packing else "")


def dump_pages(plot: Plot, extra: Sequence[str]) -> dict[str, Page]:
    """Everything in one file, its things told apart by fragments; some in a graph where there are graphs."""
    path, syntax = dump_path(plot.node), rdf_format(plot.node.syntax)
    url = plot.url(path)
    inner, outer = plot.inner_links(), plot.outer_links(extra)
    quads: list[Quad] = []
    for number in range(plot.node.resources):
        links = [f"{url}#resource-{other}" for other in inner[number]] + outer[number]
        said = plot.describe(f"{url}#resource-{number}", links)
        named = syntax.supports_datasets and number % 3 == 2
        quads.extend(in_graph(said, f"{url}#graph") if named else said)
    name = f"dump.{plot.node.syntax}"
    body = PACKERS[plot.node.packing](name, written(quads, syntax))
    media_type = PACKED_TYPES.get(plot.node.packing, syntax.media_type)
    return {path: File(body, media_type, tuple(quads))}


def html_pages(plot: Plot, extra: Sequence[str]) -> dict[str, Page]:
    """Pages for people that link to each other and elsewhere; the data of each is its alternate."""
    inner, outer = plot.inner_links(), plot.outer_links(extra)
    pages: dict[str, Page] = {}
    for number in range(plot.node.resources):
        quads = plot.describe(plot.url(f"/page/{number}#it"))
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
    pages: Callable[[Plot, Sequence[str]], dict[str, Page]]


KINDS = {
    "deref": NodeKind(lambda _: "/resource/0", deref_pages),
    "dump": NodeKind(dump_path, dump_pages),
    "html": NodeKind(lambda _: "/page/0", html_pages),
}
