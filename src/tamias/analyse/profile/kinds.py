"""What a body is: as told, as named, as found, and whether these agree."""

import mimetypes
from pathlib import Path

from tamias.analyse.profile.files import members
from tamias.content.formats import (
    BY_NAME,
    CSV,
    FORMATS,
    GEO_JSON,
    GZIP,
    HTML,
    JSON,
    NDJSON,
    ODS,
    OLE,
    PARQUET,
    PDF,
    PLAIN,
    SEVEN_ZIP,
    SHEET,
    TSV,
    XHTML,
    XLS,
    XML,
    ZIP,
    bare_type,
)
from tamias.model.profile import Types

TABLES = frozenset({CSV, TSV})
WORKBOOKS = frozenset({SHEET, ODS, XLS, OLE})
TABULAR = TABLES | WORKBOOKS | {PARQUET}
"""What consists of tables."""

JSON_TYPES = frozenset({JSON, GEO_JSON, NDJSON})

_SILENT = frozenset(
    {
        "application/octet-stream",
        "binary/octet-stream",
        "application/force-download",
        "application/x-download",
    }
)
"""What claims nothing."""

_SIGNATURES = tuple(
    (magic, kind) for kind in (ZIP, PARQUET, OLE, SEVEN_ZIP, PDF, GZIP) for magic in FORMATS[kind].signatures
)
_OFFICE = ("application/vnd.ms-", "application/msword")
_NAMES = mimetypes.MimeTypes()
_TEXTUAL = frozenset({*TABLES, PLAIN})
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))


def types(path: Path | None, head: bytes, media_type: str | None, told_type: str | None, name: str) -> Types:
    """The three types of a file. `media_type` is what was found elsewhere, and is looked at again.

    Without a path, a workbook is any zip archive.
    """
    told, named = _bare(told_type), _named(name)
    found = _found(path, head, _bare(media_type), told or named)
    claims = [claim for claim in (told, named) if claim is not None and claim not in _SILENT]
    return Types(told=told, named=named, found=found, agree=all(_covers(claim, found) for claim in claims))


def _bare(media_type: str | None) -> str | None:
    return bare_type(media_type) or None


def _named(name: str) -> str | None:
    suffix = "." + name.rpartition(".")[2].lower() if "." in name else ""
    return _by_name(suffix[1:]) or _NAMES.types_map[True].get(suffix)


def _by_name(ending: str) -> str | None:
    """What a file of that ending holds: nothing is said of it by an ending that only says it is packed."""
    media_type = BY_NAME.get(ending)
    return None if media_type == GZIP else media_type


def _found(path: Path | None, head: bytes, found: str | None, claim: str | None) -> str:
    """By the first bytes where they are beyond doubt; else as found before, else what it looks like."""
    signed = next((kind for magic, kind in _SIGNATURES if head.startswith(magic)), None)
    if signed == ZIP and path is not None:
        return _zip_kind(path) or (found if found and found not in WORKBOOKS else signed)
    if signed is not None:
        return _ole_kind(found, claim) if signed == OLE else signed
    if found in _TEXTUAL and _is_binary(head):
        return "application/octet-stream"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if _is_html(text) and (found is None or found in TABLES or found in (PLAIN, XML) or found in JSON_TYPES):
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
        with members.opened(path) as archive:
            workbook = any(name.startswith("xl/workbook.") for name in archive.namelist())
            return SHEET if workbook else members.spoken_type(archive)
    except Exception:  # noqa: BLE001 - the reader of archives raises whatever the bytes make it
        return None


def _ole_kind(found: str | None, claim: str | None) -> str:
    """Old office files look alike from outside; a letter is not read as a workbook."""
    kinds = (kind for kind in (found, claim) if kind is not None and kind not in WORKBOOKS)
    return next((kind for kind in kinds if kind.startswith(_OFFICE)), OLE)


def _json_kind(found: str, claim: str | None) -> str:
    return NDJSON if found == JSON and claim == NDJSON else found


def _look(head: bytes, text: bytes, claim: str | None) -> str:
    """Only for a body of which nobody has said what it is."""
    if not head:
        return claim if claim and claim.startswith("text/") else PLAIN
    if _is_binary(head):
        return "application/octet-stream"
    if text.startswith(b"<"):
        return claim if claim and claim.endswith("xml") else XML
    if text.startswith((b"{", b"[")):
        return claim if claim and claim.endswith("json") else JSON
    return claim if claim and claim.startswith("text/") and claim != HTML else PLAIN


def _covers(claim: str, found: str) -> bool:
    """Whether what is found is of the claimed type: exactly, or as a special kind of it."""
    if claim == found or claim in (found.rpartition("+")[0], ""):
        return True
    general = {
        JSON: found.endswith("json"),
        XML: found.endswith("xml") and found != XHTML,
        NDJSON: found == JSON,
        PLAIN: (found.startswith("text/") and found != HTML) or found in JSON_TYPES,
        ZIP: found in WORKBOOKS,
        XLS: found == OLE,
        SHEET: found == OLE,
        CSV: found in TABLES,
    }
    return general.get(claim, False)
