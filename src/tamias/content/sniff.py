"""The real type of a body. Pure: first bytes, declared type and file name in, a bare media type out.

Declared RDF text is believed when its parser agrees. Otherwise there is a ladder: signatures, then markup,
JSON, RDF text, tables; there, claims decide only what the bytes leave open.
"""

import codecs
import re
import zipfile
import zlib
from contextlib import suppress
from functools import lru_cache

import msgspec

from tamias.content.charsets import believed_charset, declared_charset, marked_encoding, page_charset
from tamias.content.containers.codecs import HEAD
from tamias.content.containers.tar import is_tar
from tamias.content.formats import (
    BY_ENDING,
    BY_FIRST_BYTE,
    BZIP2,
    CSV,
    FORMATS,
    GEO_JSON,
    HTML,
    JELLY,
    JSON,
    JSON_LD,
    NDJSON,
    NQUADS,
    NTRIPLES,
    OFFICE,
    OLE,
    PLAIN,
    RDF_JSON,
    RDF_XML,
    SHEET,
    TAR,
    TRIG,
    TRIX,
    TSV,
    TURTLE,
    XHTML,
    XML,
    ZIP,
    ZSTD,
    bare_type,
)
from tamias.content.rdf_detection import HALF, SUPERSETS, begins_with_statement, rdf_text_type, share_read

_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")
_OFFICE_PARTS = ((b"xl/", SHEET), (b"word/", OFFICE + "wordprocessingml.document"))
_OPEN_OFFICE = "application/vnd.oasis.opendocument."
_OPEN_PARTS = (b"mimetype", b"META-INF/", b"content.xml", b"meta.xml", b"settings.xml", b"styles.xml")
_LONGEST_TYPE = 100
_MEDIA_TYPE = re.compile(rb"[a-z]+/[\w.+-]{1,90}", re.ASCII)
_OFFICE_TYPES = (SHEET, OFFICE + "wordprocessingml.document", OFFICE + "presentationml.presentation")


def signed_type(head: bytes, claims: tuple[str, ...]) -> str | None:
    """The type that the first bytes prove; claims only choose between kinds of one container."""
    for magic, media_type in BY_FIRST_BYTE.get(head[0] if head else -1, ()):
        if head.startswith(magic):
            return _refined(head, media_type, claims)
    if head[257:262] == b"ustar" or (TAR in claims and is_tar(head)):
        return TAR
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:8] == b"ftyp":
        return "video/mp4"
    if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return ZSTD
    return None


def _refined(head: bytes, media_type: str, claims: tuple[str, ...]) -> str | None:
    if media_type == BZIP2:
        return media_type if head[4:10] in _BZIP2_BLOCKS else None
    if media_type == ZIP:
        return _zip_kind(head, claims)
    if media_type == OLE:
        return next((claim for claim in claims if claim.startswith("application/vnd.ms-")), media_type)
    return media_type


def _zip_kind(head: bytes, claims: tuple[str, ...]) -> str:
    """Office files and e-books are zip archives that are read as one thing."""
    first_name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    if first_name == b"mimetype" and (spoken := _spoken_in_zip(head)):
        return spoken
    if first_name.startswith(_OPEN_PARTS):  # saved again by something that does not know what comes first
        return next((claim for claim in claims if claim.startswith(_OPEN_OFFICE)), ZIP)
    if first_name == b"[Content_Types].xml" or first_name.startswith(
        (b"_rels/", b"docProps/", b"xl/", b"word/")
    ):
        claimed = next((claim for claim in claims if claim in _OFFICE_TYPES), None)
        seen = next((media_type for part, media_type in _OFFICE_PARTS if part in head), None)
        return seen or claimed or ZIP
    return ZIP


def _spoken_in_zip(head: bytes) -> str | None:
    """The type that the first member tells: as it is, as it should be, or deflated."""
    size, start = int.from_bytes(head[18:22], "little"), 38 + int.from_bytes(head[28:30], "little")
    text = head[start : start + size]
    if int.from_bytes(head[8:10], "little") == zipfile.ZIP_DEFLATED:
        with suppress(zlib.error):
            text = zlib.decompressobj(-zlib.MAX_WBITS).decompress(text, _LONGEST_TYPE)
    found = _MEDIA_TYPE.fullmatch(text.strip())
    return found[0].decode() if found else None


PACKED_SUFFIXES = {
    **dict.fromkeys(("gz", "bz2", "xz", "zst", "br"), ""),
    **dict.fromkeys(("tgz", "tbz2", "tbz", "txz", "tzst"), ".tar"),
}

_UNSURE = {"", "application/octet-stream", "binary/octet-stream", PLAIN, "application/force-download"}
_TABLES = (CSV, TSV)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))
_SITEMAPS = {
    b"urlset": "application/x-sitemap+xml",
    b"sitemapindex": "application/x-sitemap+xml",
    b"rss": "application/rss+xml",
    b"feed": "application/atom+xml",
}
"""What lists addresses for crawlers; any of them may declare RDF's namespace for its extensions."""

_ROOTS = {
    **_SITEMAPS,
    b"svg": "image/svg+xml",
    b"sparql": "application/sparql-results+xml",
    b"Ontology": "application/owl+xml",
}
_NO_NODES = frozenset({b"svg", *_SITEMAPS})
_HTML_TAGS = frozenset(
    b"a article aside audio b blockquote body br center details div dl em fieldset figure font footer form"
    b" frameset h1 h2 h3 h4 h5 h6 head header hr html i iframe img input li link main meta nav noscript ol p"
    b" picture pre script section select small span strong style table template title ul video".split()
)
_RDF_DECLARED = re.compile(
    rb"""xmlns(?::[^\s=]{1,40})?\s*=\s*["']http://www\.w3\.org/1999/02/22-rdf-syntax-ns#["']"""
)
_PROLOG = re.compile(
    rb"(?:\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>)*", re.DOTALL | re.IGNORECASE
)
_ROOT = re.compile(rb"<(?:([A-Za-z_][\w.-]*):)?([A-Za-z_][\w.-]*)(?=[\s/>])")
_HTML_DOCTYPE = re.compile(rb"<!DOCTYPE\s+html", re.IGNORECASE)
_JSON_OPENING = re.compile(rb'\{\s*+(?:"|\}|\Z)|\[\s*+(?:[{\["\d-]|true\b|false\b|null\b|\Z|\]\s*+\Z)')
_SECOND_VALUE = re.compile(rb"[^\n]*[}\]][ \t\r]*\n\s*[{\[]")
"""After a line that ends as a value does comes another value, and no comma between them."""
_JSON_LD_KEY = re.compile(rb'"@(?:context|id|graph)"\s*:')
_RDF_JSON = re.compile(
    rb'\{\s*"(?:[A-Za-z][A-Za-z0-9+.-]*:|_:)[^"]*"\s*:\s*\{\s*"[A-Za-z][A-Za-z0-9+.-]*:[^"]+"\s*:'
    rb'\s*\[\s*\{\s*"(?:value|type|lang|datatype)"\s*:'
)
_JELLY_START = re.compile(
    # The length of a frame, if any; a row in it; the options in that, with a name, if any, and a stream type.
    rb"(?:[\x80-\xff]{0,4}[\x01-\x7f])?\n[\x04-\x7f]\n[\x02-\x7d](?:\n[\x01-\x7f][\x20-\xff]*)?\x10[\x01-\x03]",
    re.DOTALL,
)
_GEO_JSON = re.compile(rb'\{\s*"type"\s*:\s*"FeatureCollection"')
_XML_ENCODING = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']""")


def found_type(head: bytes, declared_type: str | None, name: str) -> str:
    """The media type of a body by its first bytes, up to `HEAD`; what was declared and the name are claims.

    A claim of RDF text stays while its parser reads more than half of the statements.
    """
    claims = claimed_types(declared_type, name)
    if signed := signed_type(head, claims):
        return signed
    if _JELLY_START.match(head):
        return JELLY
    is_cut = len(head) >= HEAD
    text = _as_utf8(head).lstrip()
    if not text:
        return next((claim for claim in claims if not _may_be_binary(claim)), PLAIN)
    somewhat = None
    for claim in claims:
        share = share_read(text, claim, is_cut=is_cut) if claim in SUPERSETS else 0
        if share > HALF:
            return _with_graphs(claim, text, is_cut) if share < 1 else claim
        somewhat = somewhat or (claim if share else None)
    found = _sniffed(text, claims, is_cut)
    return found if found in SUPERSETS else somewhat or found


def contradicted_claim(found: str, declared_type: str | None, name: str) -> str | None:
    """The RDF syntax that was declared, where the document was found to be something else."""
    declared = next(iter(claimed_types(declared_type, name)), None)
    return declared if declared in SUPERSETS and declared != found else None


def _with_graphs(claim: str, text: bytes, is_cut: bool) -> str:
    """Turtle in which only braces are at fault is TriG; read as Turtle, it would lose its graphs."""
    return TRIG if claim == TURTLE and share_read(text, TRIG, is_cut=is_cut) == 1 else claim


def _sniffed(text: bytes, claims: tuple[str, ...], is_cut: bool) -> str:
    if _is_binary(text):
        binary = next((claim for claim in claims if _may_be_binary(claim)), "application/octet-stream")
        return rdf_text_type(text, claims, is_cut=is_cut) or binary
    return (
        _markup_type(text, claims, is_cut)
        or _json_type(text, claims)
        or rdf_text_type(text, claims, is_cut=is_cut)
        or _table_type(text, claims)
        or _plain_type(claims)
    )


def found_charset(head: bytes, declared_type: str | None, media_type: str) -> str | None:
    """The character encoding, if anything but silence speaks for one that Python knows.

    A byte order mark comes first. XML's own declaration is believed before the server, whose charset is
    often a default for the whole site; the HTML standard has it the other way round; other RDF is UTF-8 by
    definition.
    """
    if mark := marked_encoding(head)[0]:
        return mark.removesuffix("-le").removesuffix("-be")
    if head[:2] in (b"<\0", b"\0<"):
        return "utf-16-le" if head[0] else "utf-16-be"
    server = declared_charset(declared_type)
    if media_type in (HTML, XHTML):
        return server or page_charset(head)
    if media_type.endswith(("+xml", "/xml", "/trix")):
        found = _XML_ENCODING.search(head[:256])
        return (believed_charset(found[1].decode("ascii")) if found else None) or server
    if media_type.startswith("text/") and media_type not in SUPERSETS:
        return server
    return None


def claimed_types(declared_type: str | None, name: str) -> tuple[str, ...]:
    """Return the types by the declared type and by the name's ending, the former first if known."""
    return _claims(bare_type(declared_type), BY_ENDING.get(name.rpartition(".")[2].lower(), ""))


@lru_cache(maxsize=512)
def _claims(declared: str, suffix: str) -> tuple[str, ...]:
    order = (declared, suffix) if declared in FORMATS or not suffix else (suffix, declared)
    return tuple(claim for claim in order if claim not in _UNSURE)


def _as_utf8(head: bytes) -> bytes:
    """The head in UTF-8, without a byte order mark, if it is text."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<") or head[:4] == codecs.BOM_UTF32_BE:
        charset = found_charset(head, None, "") or "utf-16"
        return head.decode(charset, "replace").lstrip("\ufeff").encode()
    return head.removeprefix(codecs.BOM_UTF8)


def _is_binary(text: bytes) -> bool:
    controls = len(text) - len(text.translate(None, _CONTROLS))
    return controls * 64 > len(text) or b"\0" in text


def _markup_type(text: bytes, claims: tuple[str, ...], is_cut: bool) -> str | None:
    if not text.startswith(b"<") or begins_with_statement(text, is_cut=is_cut):
        return None
    prolog_end = _PROLOG.match(text).end()  # type: ignore[union-attr]
    prolog, root = text[:prolog_end], _ROOT.match(text, prolog_end)
    if _HTML_DOCTYPE.search(prolog) or (root and root[2].lower() == b"html"):
        return _html_kind(text, claims)
    if root is None:
        return _cut_markup(text, claims)
    if root[2] == b"RDF" or (root[2] not in _NO_NODES and _is_typed_node(root, text[prolog_end:])):
        return RDF_XML
    if root[2] == b"TriX":
        return TRIX
    if root[2] in _ROOTS and not (root[2] == b"svg" and HTML in claims):
        return _ROOTS[root[2]]
    return _other_root(text, root, claims)


def _other_root(text: bytes, root: re.Match[bytes], claims: tuple[str, ...]) -> str:
    claimed = _xml_claim(claims)
    is_tag = root[1] is None and root[2].lower() in _HTML_TAGS and not text.startswith(b"<?xml")
    if is_tag and (claimed is None or HTML in claims[:1]):
        return _html_kind(text, claims)
    return claimed or (HTML if HTML in claims else XML)


def _is_typed_node(root: re.Match[bytes], text: bytes) -> bool:
    """RDF/XML may begin with a node of any type: a root with a namespace, and RDF's declared."""
    tag = text.partition(b">")[0]
    return bool(root[1] or b"xmlns=" in tag) and _RDF_DECLARED.search(tag) is not None


def _html_kind(text: bytes, claims: tuple[str, ...]) -> str:
    declared = text.startswith(b"<?xml") and b"http://www.w3.org/1999/xhtml" in text
    return XHTML if declared or XHTML in claims else HTML


def _cut_markup(text: bytes, claims: tuple[str, ...]) -> str | None:
    """Markup whose first element is beyond the bytes seen, or that is no XML at all."""
    if text.startswith(b"<?xml"):
        return _xml_claim(claims) or XML
    if text.startswith(b"<!"):
        return _xml_claim(claims) or HTML
    return None


def _xml_claim(claims: tuple[str, ...]) -> str | None:
    special = (claim for claim in claims if claim.endswith(("+xml", "/trix")) and claim != XHTML)
    return next(special, XML if XML in claims else None)


def _json_type(text: bytes, claims: tuple[str, ...]) -> str | None:
    if not _JSON_OPENING.match(text):
        return JSON if JSON in claims and text.rstrip() == b"null" else None
    special = [claim for claim in claims if claim.endswith("+json")]
    if _JSON_LD_KEY.search(text):  # a string of RDF/JSON cannot look like one, for its quotes are escaped
        return JSON_LD
    if _RDF_JSON.match(text):
        return RDF_JSON
    if special:
        return special[0]
    if NDJSON in claims or _SECOND_VALUE.match(text):
        return NDJSON if is_json(text.partition(b"\n")[0]) else JSON
    return GEO_JSON if _GEO_JSON.match(text) else JSON


def is_json(text: bytes) -> bool:
    """Return whether a text is one value of JSON."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True


def _table_type(text: bytes, claims: tuple[str, ...]) -> str | None:
    if claimed := next((claim for claim in claims if claim in _TABLES), None):
        return claimed
    lines = [line for line in text.splitlines()[:20] if line.strip()]
    if claims or len(lines) < 3:
        return None
    for separator, least in ((b"\t", 1), (b";", 2), (b",", 2)):
        columns = {line.count(separator) for line in lines[:-1]}
        if len(columns) == 1 and columns.pop() >= least:
            return TSV if separator == b"\t" else CSV
    return None


def _plain_type(claims: tuple[str, ...]) -> str:
    """Text of no known shape: a claim that the shape does not contradict, or plain text."""
    return next((claim for claim in claims if not _may_be_binary(claim) and not _has_shape(claim)), PLAIN)


def _has_shape(media_type: str) -> bool:
    shaped = media_type.endswith(("xml", "json", "/trix")) or media_type == XHTML
    return shaped or media_type in (NTRIPLES, NQUADS)


def _may_be_binary(media_type: str) -> bool:
    textual = media_type.startswith("text/") or media_type in SUPERSETS
    return not textual and not media_type.endswith(("xml", "json", "javascript", "/trix", "sparql-query"))
