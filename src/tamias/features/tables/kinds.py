"""Types of a body: as declared, as named, as found, and whether these agree."""

import mimetypes

from tamias.content.charsets import utf16_without_mark
from tamias.content.formats import (
    BY_NAME,
    CSV,
    GEO_JSON,
    GZIP,
    HTML,
    JSON,
    NDJSON,
    ODS,
    OLE,
    PARQUET,
    PLAIN,
    SHEET,
    TSV,
    XHTML,
    XLS,
    XML,
    ZIP,
    bare_type,
)
from tamias.content.sniff import found_type
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

_NAMES = mimetypes.MimeTypes()
_OFFICE = ("application/vnd.ms-", "application/msword")


def types(head: bytes | None, media_type: str | None, declared_type: str | None, name: str) -> Types:
    """Return the three types of a file; `media_type` was found before, and is a claim if a head is given."""
    declared, named = bare_type(declared_type) or None, _named(name)
    found = bare_type(media_type) if head is None else _found(head, media_type or declared, name)
    if found == OLE and named is not None and named.startswith(_OFFICE):
        found = named  # a letter is not read as a workbook
    claims = [claim for claim in (declared, named) if claim is not None and claim not in _SILENT]
    return Types(
        declared=declared, named=named, found=found, agree=all(_covers(claim, found) for claim in claims)
    )


def _found(head: bytes, claimed: str | None, name: str) -> str:
    wide = utf16_without_mark(head)
    return found_type(head.decode(wide, "replace").encode() if wide else head, claimed, name)


def _named(name: str) -> str | None:
    """Return what a file of that ending holds; one that says that it is packed says nothing of it."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    media_type = BY_NAME.get(ending)
    return _NAMES.types_map[True].get(f".{ending}") if media_type in (None, GZIP) else media_type


def _covers(claim: str, found: str) -> bool:
    """Return whether the found type is the claimed one or a special kind of it."""
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
