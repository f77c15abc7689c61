"""What a body is: as told, as named, as found, and whether these agree."""

import mimetypes
from pathlib import Path

from tamias.analyse.profile.files import zips
from tamias.analyse.profile.limits import LimitReached
from tamias.model.profile import Types

SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
XLS = "application/vnd.ms-excel"
OLE = "application/x-ole-storage"
PARQUET = "application/vnd.apache.parquet"
CSV, TSV = "text/csv", "text/tab-separated-values"
HTML, XHTML, PLAIN = "text/html", "application/xhtml+xml", "text/plain"

TABLES = frozenset({CSV, TSV})
WORKBOOKS = frozenset({SHEET, ODS, XLS, OLE})
TABULAR = TABLES | WORKBOOKS | {PARQUET}
"""What consists of tables."""

JSON_TYPES = frozenset({"application/json", "application/geo+json", "application/x-ndjson"})

_BY_SUFFIX = {
    ".csv": CSV, ".tsv": TSV, ".tab": TSV, ".txt": PLAIN, ".json": "application/json",
    ".geojson": "application/geo+json", ".jsonl": "application/x-ndjson", ".ndjson": "application/x-ndjson",
    ".jsonld": "application/ld+json", ".nt": "application/n-triples", ".nq": "application/n-quads",
    ".ttl": "text/turtle", ".trig": "application/trig", ".n3": "text/n3", ".rdf": "application/rdf+xml",
    ".owl": "application/rdf+xml", ".hdt": "application/vnd.hdt", ".xlsx": SHEET, ".xlsm": SHEET, ".xls": XLS,
    ".ods": ODS, ".parquet": PARQUET, ".7z": "application/x-7z-compressed", ".xml": "application/xml",
    ".kml": "application/vnd.google-earth.kml+xml", ".gml": "application/gml+xml",
    ".rj": "application/rdf+json",
}  # fmt: skip
_ALIASES = {
    "text/xml": "application/xml",
    "text/json": "application/json",
    "application/csv": CSV,
    "application/x-csv": CSV,
    "text/comma-separated-values": CSV,
    "application/vnd.geo+json": "application/geo+json",
    "application/jsonl": "application/x-ndjson",
    "application/x-jsonlines": "application/x-ndjson",
    "application/jsonlines": "application/x-ndjson",
    "application/x-zip-compressed": "application/zip",
    "application/x-parquet": PARQUET,
    "application/parquet": PARQUET,
}
_SILENT = frozenset(
    {
        "application/octet-stream",
        "binary/octet-stream",
        "application/force-download",
        "application/x-download",
    }
)
"""What claims nothing."""

_SIGNATURES = (
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"PAR1", PARQUET),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"%PDF-", "application/pdf"),
    (b"\x1f\x8b", "application/gzip"),
)
_OFFICE = ("application/vnd.ms-", "application/msword")
_NAMES = mimetypes.MimeTypes()
_TEXTUAL = frozenset({*TABLES, PLAIN})
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))


def types(path: Path, head: bytes, media_type: str | None, told_type: str | None, name: str) -> Types:
    """The three types of a file. `media_type` is what was found elsewhere, and is looked at again."""
    told, named = _bare(told_type), _named(name)
    found = _found(path, head, _bare(media_type), told or named)
    claims = [claim for claim in (told, named) if claim is not None and claim not in _SILENT]
    return Types(told=told, named=named, found=found, agree=all(_covers(claim, found) for claim in claims))


def _bare(media_type: str | None) -> str | None:
    bare = (media_type or "").partition(";")[0].strip().lower()
    return _ALIASES.get(bare, bare) or None


def _named(name: str) -> str | None:
    suffix = "." + name.rpartition(".")[2].lower() if "." in name else ""
    return _BY_SUFFIX.get(suffix) or _NAMES.types_map[True].get(suffix)


def _found(path: Path, head: bytes, found: str | None, claim: str | None) -> str:
    """By the first bytes where they are beyond doubt; else as found before, else what it looks like."""
    signed = next((kind for magic, kind in _SIGNATURES if head.startswith(magic)), None)
    if signed == "application/zip":
        return _zip_kind(path) or (found if found and found not in WORKBOOKS else signed)
    if signed is not None:
        return _ole_kind(found, claim) if signed == OLE else signed
    if found in _TEXTUAL and _is_binary(head):
        return "application/octet-stream"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if _is_html(text) and (
        found is None or found in TABLES or found in (PLAIN, "application/xml") or found in JSON_TYPES
    ):
        return HTML
    if found is not None and found not in WORKBOOKS:
        return _json_kind(found, claim)
    return _look(head, text, claim)


def _is_binary(head: bytes) -> bool:
    """What has control characters, and is not UTF-16 or UTF-32."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or head[:4] == b"\0\0\xfe\xff":
        return False
    controls = len(head) - len(head.translate(None, _CONTROLS))
    nuls = head.count(0)
    wide = nuls * 4 > len(head) and max(head[::2].count(0), head[1::2].count(0)) > 0.9 * nuls
    return controls * 64 > len(head) and not (wide and nuls * 10 < 6 * len(head))


def _is_html(text: bytes) -> bool:
    return text.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<script", b"<h1", b"<title"))


def _zip_kind(path: Path) -> str | None:
    """Workbooks are zip archives with certain members."""
    try:
        with zips.opened(path) as archive:
            workbook = any(name.startswith("xl/workbook.") for name in archive.namelist())
            return SHEET if workbook else zips.spoken_type(archive)
    except (LimitReached, *zips.FAULTS):
        return None


def _ole_kind(found: str | None, claim: str | None) -> str:
    """Old office files look alike from outside; a letter is not read as a workbook."""
    kinds = (kind for kind in (found, claim) if kind is not None and kind not in WORKBOOKS)
    return next((kind for kind in kinds if kind.startswith(_OFFICE)), OLE)


def _json_kind(found: str, claim: str | None) -> str:
    return (
        "application/x-ndjson" if found == "application/json" and claim == "application/x-ndjson" else found
    )


def _look(head: bytes, text: bytes, claim: str | None) -> str:
    """Only for a body of which nobody has said what it is."""
    if not head:
        return claim if claim and claim.startswith("text/") else PLAIN
    if _is_binary(head):
        return "application/octet-stream"
    if text.startswith(b"<"):
        return claim if claim and claim.endswith("xml") else "application/xml"
    if text.startswith((b"{", b"[")):
        return claim if claim and claim.endswith("json") else "application/json"
    return claim if claim and claim.startswith("text/") and claim != HTML else PLAIN


def _covers(claim: str, found: str) -> bool:
    """Whether what is found is of the claimed type: exactly, or as a special kind of it."""
    if claim == found or claim in (found.rpartition("+")[0], ""):
        return True
    general = {
        "application/json": found.endswith("json"),
        "application/xml": found.endswith("xml") and found != XHTML,
        "application/x-ndjson": found == "application/json",
        PLAIN: (found.startswith("text/") and found != HTML) or found in JSON_TYPES,
        "application/zip": found in WORKBOOKS,
        XLS: found == OLE,
        SHEET: found == OLE,
        CSV: found in TABLES,
    }
    return general.get(claim, False)
