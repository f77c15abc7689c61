"""The one table of formats. What a serialisation is called, how it is recognised, read, compared and
written.

A new one is a row here and an analyser. Everything else (sniffing, the crawl, the archive, `Accept`, names
of files) asks this table; features add rows.
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

import msgspec
from pyoxigraph import RdfFormat

from tamias.content.charsets import text_charset
from tamias.model.capture import Request
from tamias.plugins import formats

_BEHIND = 0.9
"""How much less the other types are wanted, where one is expected."""


class Form(StrEnum):
    """The kind of content of a file, which decides how it is compared with another."""

    ROWS = "rows"
    STATEMENTS = "statements"
    JSON = "json"
    JSON_LINES = "json-lines"
    SHEETS = "sheets"
    """Tables, each with a name."""
    MEMBERS = "members"
    PACKED = "packed"
    """Compressed: what is in it is compared."""
    TEXT = "text"
    BYTES = "bytes"


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table of formats."""

    media_type: str
    aliases: tuple[str, ...] = ()
    """Other media types that mean the same."""
    names: tuple[str, ...] = ()
    """Short names as people and portals write them, besides the endings."""
    endings: tuple[str, ...] = ()
    """File endings that count as a claim when a body is sniffed; the first is the one that we write."""
    signatures: tuple[bytes, ...] = ()
    """First bytes that prove it."""
    form: Form | None = None
    """How two versions are compared; None: by the general rules of `form_of`."""
    syntax: RdfFormat | None = None
    """Pyoxigraph's name for it, where it can parse it."""
    analyser: str | None = None
    """`module:class` of what reads it in a crawl."""
    writer: str | None = None
    """The name of the export that writes it."""
    sandboxed: bool = False
    """Whether it is always read in a sandbox: its numbers say how much memory to take."""
    q: float | None = None
    """How much a crawl wants it, as `Accept` says; None: it is not asked for by name."""


_RDF: Final = "tamias.analyse.rdf.analyser:RdfAnalyser"
_HTML: Final = "tamias.analyse.html.analyser:HtmlAnalyser"
_SITEMAP: Final = "tamias.analyse.sitemaps.urlset:SitemapAnalyser"
_LINKSET: Final = "tamias.analyse.links.discovery:LinksetAnalyser"

TURTLE: Final = "text/turtle"
NTRIPLES: Final = "application/n-triples"
NQUADS: Final = "application/n-quads"
TRIG: Final = "application/trig"
N3: Final = "text/n3"
RDF_XML: Final = "application/rdf+xml"
JSON_LD: Final = "application/ld+json"
TRIX: Final = "application/trix"
RDF_JSON: Final = "application/rdf+json"
JELLY: Final = "application/x-jelly-rdf"
HTML: Final = "text/html"
XHTML: Final = "application/xhtml+xml"
XML: Final = "application/xml"
JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
GEO_JSON: Final = "application/geo+json"
CSV: Final = "text/csv"
TSV: Final = "text/tab-separated-values"
PLAIN: Final = "text/plain"
PARQUET: Final = "application/vnd.apache.parquet"
OFFICE: Final = "application/vnd.openxmlformats-officedocument."
SHEET: Final = OFFICE + "spreadsheetml.sheet"
XLS: Final = "application/vnd.ms-excel"
ODS: Final = "application/vnd.oasis.opendocument.spreadsheet"
OLE: Final = "application/x-ole-storage"
PDF: Final = "application/pdf"
ZIP: Final = "application/zip"
TAR: Final = "application/x-tar"
SEVEN_ZIP: Final = "application/x-7z-compressed"
GZIP: Final = "application/gzip"
BZIP2: Final = "application/x-bzip2"
XZ: Final = "application/x-xz"
ZSTD: Final = "application/zstd"
BROTLI: Final = "application/x-brotli"

BUILT_IN: Final = (
    # RDF, what a crawl is for
    Format(media_type=TURTLE, aliases=("application/turtle", "application/x-turtle"), names=("turtle",),
           endings=("ttl",), form=Form.STATEMENTS, syntax=RdfFormat.TURTLE, analyser=_RDF, writer="turtle",
           q=1),
    Format(media_type=NTRIPLES, aliases=("text/ntriples",), names=("n-triples", "ntriples"), endings=("nt",),
           form=Form.STATEMENTS, syntax=RdfFormat.N_TRIPLES, analyser=_RDF, q=1),
    Format(media_type=NQUADS, aliases=("text/nquads", "text/x-nquads"), names=("n-quads", "nquads"),
           endings=("nq",), form=Form.STATEMENTS, syntax=RdfFormat.N_QUADS, analyser=_RDF, writer="nquads",
           q=1),
    Format(media_type=TRIG, aliases=("application/x-trig",), endings=("trig",), form=Form.STATEMENTS,
           syntax=RdfFormat.TRIG, analyser=_RDF, writer="trig", q=1),
    Format(media_type=JSON_LD, aliases=("application/json-ld",), names=("json-ld",), endings=("jsonld",),
           form=Form.STATEMENTS, syntax=RdfFormat.JSON_LD, analyser=_RDF, writer="jsonld", q=0.9),
    Format(media_type=RDF_XML, aliases=("application/rdf", "text/rdf", "text/rdf+xml"),
           names=("rdf/xml", "rdfxml", "rdf-xml"), endings=("rdf", "owl", "rdfs"), form=Form.STATEMENTS,
           syntax=RdfFormat.RDF_XML, analyser=_RDF, q=0.8),
    Format(media_type=N3, aliases=("application/n3", "text/rdf+n3"), endings=("n3",), form=Form.STATEMENTS,
           syntax=RdfFormat.N3, analyser=_RDF, q=0.7),
    # Pages, and what lists addresses
    Format(media_type=HTML, endings=("html", "htm"), analyser=_HTML, q=0.5),
    Format(media_type=XHTML, endings=("xhtml",), analyser=_HTML),
    Format(media_type=XML, aliases=("text/xml",), endings=("xml",), form=Form.TEXT, analyser=_HTML),
    Format(media_type="image/svg+xml", names=("svg",), analyser=_HTML),
    Format(media_type="application/x-sitemap+xml", analyser=_SITEMAP),
    Format(media_type="text/x-sitemap", analyser=_SITEMAP),
    Format(media_type="application/rss+xml", names=("rss",), analyser=_SITEMAP),
    Format(media_type="application/atom+xml", names=("atom",), analyser=_SITEMAP),
    Format(media_type="application/linkset", analyser=_LINKSET),
    Format(media_type="application/linkset+json", analyser=_LINKSET),
    # Tables and trees
    Format(media_type=CSV, aliases=("application/csv", "application/x-csv", "text/comma-separated-values"),
           endings=("csv",), form=Form.ROWS),
    Format(media_type=TSV, names=("tab",), endings=("tsv",), form=Form.ROWS),
    Format(media_type=JSON, aliases=("text/json",), endings=("json",), form=Form.JSON),
    Format(media_type=NDJSON, aliases=("application/ndjson", "application/jsonl", "application/jsonlines",
                                       "application/json-lines", "application/x-jsonlines"),
           names=("ndjson", "jsonl"), form=Form.JSON_LINES),
    Format(media_type=GEO_JSON, aliases=("application/vnd.geo+json",), endings=("geojson",), form=Form.JSON),
    Format(media_type="application/json-seq", form=Form.BYTES),
    Format(media_type="application/vnd.google-earth.kml+xml", names=("kml",)),
    Format(media_type="application/gml+xml", names=("gml",)),
    Format(media_type=SHEET, names=("xlsm",), endings=("xlsx",), form=Form.SHEETS),
    Format(media_type=XLS, endings=("xls",), form=Form.SHEETS),
    Format(media_type=ODS, names=("ods",), form=Form.SHEETS),
    Format(media_type=PARQUET, aliases=("application/x-parquet", "application/parquet"), names=("parquet",),
           signatures=(b"PAR1",), sandboxed=True),
    Format(media_type="application/vnd.apache.arrow.file", signatures=(b"ARROW1",)),
    Format(media_type="application/vnd.sqlite3", signatures=(b"SQLite format 3\x00",)),
    Format(media_type="application/avro", signatures=(b"Obj\x01",)),
    # Text
    Format(media_type=PLAIN, endings=("txt",)),
    Format(media_type="text/css", endings=("css",), analyser="tamias.analyse.html.requisites:StyleAnalyser"),
    Format(media_type="text/javascript", aliases=("application/javascript",), endings=("js",)),
    Format(media_type="application/sparql-query", endings=("rq",), form=Form.TEXT),
    Format(media_type="application/sql", form=Form.TEXT),
    # Containers
    Format(media_type=ZIP, aliases=("application/x-zip-compressed",), names=("zip",),
           signatures=(b"PK\x03\x04", b"PK\x05\x06"), form=Form.MEMBERS),
    Format(media_type="application/vnd.google-earth.kmz", names=("kmz",), form=Form.MEMBERS),
    Format(media_type="application/java-archive", form=Form.MEMBERS),
    Format(media_type=TAR, aliases=("application/tar",), endings=("tar",), form=Form.MEMBERS),
    Format(media_type=SEVEN_ZIP, aliases=("application/x-7z",), endings=("7z",),
           signatures=(b"7z\xbc\xaf\x27\x1c",)),
    Format(media_type=GZIP, aliases=("application/x-gzip",), names=("gz", "gzip"),
           signatures=(b"\x1f\x8b\x08",), form=Form.PACKED),
    Format(media_type=BZIP2, aliases=("application/bzip2",), names=("bz2",), signatures=(b"BZh",),
           form=Form.PACKED),
    Format(media_type=XZ, names=("xz",), signatures=(b"\xfd7zXZ\x00",), form=Form.PACKED),
    Format(media_type=ZSTD, aliases=("application/x-zstd",), names=("zst",),
           signatures=(b"\x28\xb5\x2f\xfd",), form=Form.PACKED),
    Format(media_type=BROTLI, aliases=("application/br", "application/brotli", "application/x-br"),
           endings=("br",)),
    Format(media_type="application/vnd.rar", names=("rar",), signatures=(b"Rar!\x1a\x07",)),
    # What is only recognised
    Format(media_type=OLE, signatures=(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",)),
    Format(media_type=PDF, names=("pdf",), signatures=(b"%PDF-",)),
    Format(media_type="application/rtf", names=("rtf",), signatures=(b"{\\rtf",)),
    Format(media_type="image/png", names=("png",), signatures=(b"\x89PNG\r\n\x1a\n",)),
    Format(media_type="image/jpeg", names=("jpg", "jpeg"), signatures=(b"\xff\xd8\xff",)),
    Format(media_type="image/gif", names=("gif",), signatures=(b"GIF87a", b"GIF89a")),
    Format(media_type="image/tiff", names=("tif", "tiff"), signatures=(b"II*\x00", b"MM\x00*")),
    Format(media_type="image/vnd.microsoft.icon", names=("ico",), signatures=(b"\x00\x00\x01\x00",)),
    Format(media_type="audio/ogg", signatures=(b"OggS",)),
    Format(media_type="audio/mpeg", signatures=(b"ID3",)),
    Format(media_type="application/x-executable", signatures=(b"\x7fELF",)),
    Format(media_type="font/woff", signatures=(b"wOFF",)),
    Format(media_type="font/woff2", signatures=(b"wOF2",)),
)  # fmt: skip

_MADE_OF_ZIP: Final = (OFFICE, "application/vnd.oasis.opendocument.")

FORMATS: Final[dict[str, Format]] = {}
"""Every format by its media type."""
ALIASES: Final[dict[str, str]] = {}
BY_ENDING: Final[dict[str, str]] = {}
"""The endings that count as a claim."""
BY_NAME: Final[dict[str, str]] = {}
"""Endings and short names together."""
BY_FIRST_BYTE: Final[dict[int, list[tuple[bytes, str]]]] = {}
"""Signatures with their types, so that most heads need one look."""


def add(rows: Iterable[Format]) -> None:
    """Puts rows into the table; one for a media type that is there already replaces it."""
    for row in rows:
        FORMATS[row.media_type] = row
        ALIASES.update(dict.fromkeys(row.aliases, row.media_type))
        BY_ENDING.update(dict.fromkeys(row.endings, row.media_type))
        BY_NAME.update(dict.fromkeys((*row.endings, *row.names), row.media_type))
        for magic in row.signatures:
            known = BY_FIRST_BYTE.setdefault(magic[0], [])
            if (magic, row.media_type) not in known:
                known.append((magic, row.media_type))
    bare_type.cache_clear()


@lru_cache(maxsize=512)
def bare_type(media_type: str | None) -> str:
    """A media type without parameters, by its usual name; empty for none.

    >>> bare_type("Application/X-Turtle; charset=utf-8")
    'text/turtle'
    """
    bare = (media_type or "").partition(";")[0].strip().lower()
    return ALIASES.get(bare, bare)


def format_of(media_type: str | None) -> Format | None:
    """The row of a media type, by any of its names, with or without parameters."""
    return FORMATS.get(bare_type(media_type))


def media_type_of(name: str | None) -> str | None:
    """The media type that a text names, by itself or by a short name; None where it is neither.

    >>> media_type_of("CSV"), media_type_of("text/csv; charset=utf-8"), media_type_of("data")
    ('text/csv', 'text/csv', None)
    """
    if not name:
        return None
    bare = name.partition(";")[0].strip().lower()
    known = BY_NAME.get(bare.removeprefix("."))
    if known is not None:
        return known
    return bare if "/" in bare and " " not in bare and len(bare) < 128 else None


def form_of(media_type: str | None) -> Form:
    """The form of a media type, with or without parameters; bytes when nothing is known of it.

    >>> form_of("text/csv; charset=utf-8").value, form_of("application/geo+json").value
    ('rows', 'json')
    """
    name = bare_type(media_type)
    row = FORMATS.get(name)
    if row is not None and row.form is not None:
        return row.form
    if name.startswith(_MADE_OF_ZIP) or name.endswith("+zip"):
        return Form.MEMBERS
    if name.endswith("+json"):
        return Form.JSON
    return Form.TEXT if name.startswith("text/") or name.endswith("+xml") else Form.BYTES


def type_with_charset(media_type: str | None, declared_type: str | None) -> str | None:
    """The type of a table or other text with the charset that its server declared for it.

    >>> type_with_charset("text/csv", "text/csv; charset=windows-1250")
    'text/csv; charset=cp1250'
    """
    charset = text_charset(declared_type) if form_of(media_type) in (Form.ROWS, Form.TEXT) else None
    return f"{media_type}; charset={charset}" if charset else media_type


def syntax_of(media_type: str | None) -> RdfFormat | None:
    """Pyoxigraph's syntax of a media type, if it has one."""
    row = format_of(media_type)
    return row.syntax if row else None


def is_rdf(media_type: str | None) -> bool:
    """Return whether it is a serialisation of RDF."""
    row = format_of(media_type)
    return row is not None and row.form is Form.STATEMENTS


def suffix_of(media_type: str | None) -> str | None:
    """The ending that a file of a type gets, with its dot; None where none is usual."""
    row = format_of(media_type)
    ending = next(iter((*row.endings, *row.names)), None) if row else None
    return f".{ending}" if ending else None


def read_by(module: str) -> frozenset[str]:
    """The media types that the analyser in a module reads."""
    return frozenset(name for name, row in FORMATS.items() if (row.analyser or "").startswith(f"{module}:"))


def load_analyser(media_type: str | None) -> Any | None:
    """The class that reads a media type; None for what no analyser reads."""
    row = format_of(media_type)
    if row is None or row.analyser is None:
        return None
    module, _, name = row.analyser.partition(":")
    return getattr(import_module(module), name)


def accept_header() -> str:
    """Return the Accept header of a crawl, the best first."""
    wanted = sorted((row for row in FORMATS.values() if row.q), key=lambda row: -(row.q or 0))
    ranges = [row.media_type if row.q == 1 else f"{row.media_type};q={row.q:g}" for row in wanted]
    return ", ".join([*ranges, "*/*;q=0.1"])


def accept_for(request: Request, usual: str) -> str:
    """The Accept header of a request, where a crawl usually sends `usual`."""
    if request.accept is not None:
        return request.accept
    return usual if request.expected is None else expecting(request.expected, usual)


@lru_cache(maxsize=256)
def expecting(media_type: str, accept: str) -> str:
    """An Accept header that asks for one type first, then for all others as before.

    >>> expecting("text/csv", "text/turtle, text/html;q=0.5, */*;q=0.1")
    'text/csv, text/turtle;q=0.9, text/html;q=0.45, */*;q=0.09'
    """
    others = []
    for each in accept.split(","):
        name, _, weight = each.partition(";q=")
        if name.strip() != media_type:
            others.append(f"{name.strip()};q={float(weight or 1) * _BEHIND:.3g}")
    return ", ".join([media_type, *others])


add(BUILT_IN)
add(
    Format(media_type=name, **{**row, "form": Form(row["form"]) if "form" in row else None})
    for name, row in formats().items()
)
