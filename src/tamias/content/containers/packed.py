"""What is inside a gzip file: unpacked within bounds, and its type by a look at it."""

import gzip
import re
import zlib
from pathlib import Path

import msgspec

from tamias.content.canonical import Unreadable
from tamias.content.canonical.text import CHUNK, Source, marked_chunks, open_source
from tamias.content.formats import CSV, GZIP, HTML, JSON, NDJSON, NQUADS, RDF_XML, TURTLE, ZIP

_ZIP = b"PK\x03\x04"
_STATEMENT = re.compile(rb"(?:<[^<>\s]*>|_:\S+)\s+<[^<>\s]*>\s+\S.*\.\s*(?:#.*)?")
_LOOKS = (
    (re.compile(rb"\s*(?:#[^\n]*\n\s*)*(?:@prefix|@base|prefix\s|base\s+<)", re.IGNORECASE), TURTLE),
    (re.compile(rb"[^\0]{0,4096}<(?:\w+:)?RDF[\s>]"), RDF_XML),
    (re.compile(rb"\s*<!doctype html|\s*<html", re.IGNORECASE), HTML),
    (re.compile(rb"\s*<"), "text/xml"),
)


def unpack(source: Source, target: Path, most_bytes: int) -> None:
    """Unpacks a gzip file. Raises `Unreadable`."""
    size = 0
    with open_source(source) as raw, gzip.GzipFile(fileobj=raw) as packed, target.open("wb") as file:
        while chunk := _chunk(packed):
            size += len(chunk)
            if size > most_bytes:
                raise Unreadable(f"unpacks to more than {most_bytes} bytes")
            file.write(chunk)


def _chunk(packed: gzip.GzipFile) -> bytes:
    try:
        return packed.read(CHUNK)
    except (OSError, EOFError, zlib.error) as fault:
        raise Unreadable(f"not gzip: {fault}") from fault


def looked_at(source: Source) -> str | None:
    """The media type that a file seems to have; delimited text as CSV. None for what is not text."""
    head = next(marked_chunks(source), b"")
    if head.startswith(_ZIP):
        return ZIP
    if head.startswith(b"\x1f\x8b"):
        return GZIP
    if b"\0" in head:
        return None
    return _of_text(head)


def _of_text(head: bytes) -> str:
    lines = [line for line in head[: 1 << 16].splitlines() if line.strip()]
    if head.lstrip()[:1] in {b"{", b"["}:
        return NDJSON if len(lines) > 1 and _is_json(lines[0]) else JSON
    told = [line for line in lines[:20] if not line.startswith(b"#")]
    if told and all(_STATEMENT.fullmatch(line.strip()) for line in told[:-1] or told):
        return NQUADS
    return next((name for look, name in _LOOKS if look.match(head)), CSV)


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True
