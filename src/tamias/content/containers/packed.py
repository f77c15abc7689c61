"""What is inside a compressed file: unpacked within bounds, and its type by a look at it."""

import re
from pathlib import Path

from tamias.content.canonical import Unreadable
from tamias.content.canonical.text import Source, marked_chunks, open_source
from tamias.content.containers.codecs import CODECS, DamageError
from tamias.content.containers.tar import is_tar
from tamias.content.formats import (
    BZIP2,
    CSV,
    GZIP,
    HTML,
    JSON,
    NDJSON,
    NQUADS,
    RDF_XML,
    TAR,
    TURTLE,
    XZ,
    ZIP,
    ZSTD,
)
from tamias.content.sniff import is_json

MOST_MEMORY = 128 << 20
"""Of a decoder; what xz -9 and zstd --ultra have written needs as much."""
_ZIP = b"PK\x03\x04"
_HEAD = 6
_PACKED = ((b"\x1f\x8b", GZIP), (b"BZh", BZIP2), (b"\xfd7zXZ\x00", XZ), (b"\x28\xb5\x2f\xfd", ZSTD))
_STATEMENT = re.compile(rb"(?:<[^<>\s]*>|_:\S+)\s+<[^<>\s]*>\s+\S.*\.\s*(?:#.*)?")
_LOOKS = (
    (re.compile(rb"\s*(?:#[^\n]*\n\s*)*(?:@prefix|@base|prefix\s|base\s+<)", re.IGNORECASE), TURTLE),
    (re.compile(rb"[^\0]{0,4096}<(?:\w+:)?RDF[\s>]"), RDF_XML),
    (re.compile(rb"\s*<!doctype html|\s*<html", re.IGNORECASE), HTML),
    (re.compile(rb"\s*<"), "text/xml"),
)


def unpack(source: Source, target: Path, most_bytes: int) -> None:
    """Unpacks a compressed file. Raises `Unreadable`."""
    size = 0
    with open_source(source) as raw, target.open("wb") as file:
        kind = _packed_type(raw.read(_HEAD)) or GZIP
        raw.seek(0)
        try:
            for chunk in CODECS[kind](raw, MOST_MEMORY):
                size += len(chunk)
                if size > most_bytes:
                    raise Unreadable(f"unpacks to more than {most_bytes} bytes")
                file.write(chunk)
        except DamageError as fault:
            raise Unreadable(str(fault)) from fault


def _packed_type(head: bytes) -> str | None:
    return next((kind for magic, kind in _PACKED if head.startswith(magic)), None)


def looked_at(source: Source) -> str | None:
    """The media type that a file seems to have; delimited text as CSV. None for what is not text."""
    head = next(marked_chunks(source), b"")
    if head.startswith(_ZIP):
        return ZIP
    if packed := _packed_type(head):
        return packed
    if b"\0" in head:
        return TAR if is_tar(head) else None
    return _of_text(head)


def _of_text(head: bytes) -> str:
    lines = [line for line in head[: 1 << 16].splitlines() if line.strip()]
    if head.lstrip()[:1] in {b"{", b"["}:
        return NDJSON if len(lines) > 1 and is_json(lines[0]) else JSON
    told = [line for line in lines[:20] if not line.startswith(b"#")]
    if told and all(_STATEMENT.fullmatch(line.strip()) for line in told[:-1] or told):
        return NQUADS
    return next((name for look, name in _LOOKS if look.match(head)), CSV)
