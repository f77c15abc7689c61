"""The content of a compressed file, unpacked within limits, and its type."""

from pathlib import Path

from tamias.content.canonical import Unreadable
from tamias.content.canonical.text import Source, marked_chunks, open_source
from tamias.content.containers.codecs import CODECS, DamageError
from tamias.content.containers.streams import HEAD
from tamias.content.containers.tar import is_tar
from tamias.content.formats import CSV, GZIP, PLAIN, TAR
from tamias.content.sniff import found_type, signed_type

MOST_MEMORY = 128 << 20
"""Of a decoder; what xz -9 and zstd --ultra have written needs as much."""


def unpack(source: Source, target: Path, most_bytes: int) -> None:
    """Unpacks a compressed file. Raises `Unreadable`."""
    size = 0
    with open_source(source) as raw, target.open("wb") as file:
        codec = CODECS.get(signed_type(raw.read(HEAD), ()) or GZIP, CODECS[GZIP])
        raw.seek(0)
        try:
            for chunk in codec(raw, MOST_MEMORY):
                size += len(chunk)
                if size > most_bytes:
                    raise Unreadable(f"unpacks to more than {most_bytes} bytes")
                file.write(chunk)
        except DamageError as fault:
            raise Unreadable(str(fault)) from fault


def looked_at(source: Source) -> str | None:
    """Return the media type that a file seems to have; any text as CSV. None for what is not text."""
    head = next(marked_chunks(source), b"")[:HEAD]
    found = TAR if b"\0" in head and is_tar(head) else found_type(head, None, "")
    return CSV if found == PLAIN else None if found == "application/octet-stream" else found
