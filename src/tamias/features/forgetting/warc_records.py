"""Takes records out of WARC files: metadata records of the same length stand in their place.

Every record keeps its place, so that indexes and readers find all others where they were.
"""

import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from tamias.features.warc.cdxj import CdxjFields, entries, line, surt
from tamias.features.warc.warc_files import (
    OPEN,
    URN,
    WarcPart,
    WarcRecord,
    is_imported,
    read_fields,
    records,
    sha256_of,
    target_of,
    warc_parts,
    write_index,
)
from tamias.features.warc.warc_records import record_head
from tamias.model.errors import TamiasError, UrlError
from tamias.model.url import fetch_url, without_password
from tamias.sinks.segments.segment_files import finish_overwriting, replace_bytes

Unwanted = Callable[[str, str, str], bool]
"""By address, SHA-256 of the payload in hexadecimal, and WARC date."""

Also = Callable[[str, dict[int, bytes]], None]

_GZIP_HEAD = b"\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff"
_EXTRA = 2
_MOST_EXTRA = 65_535
_GZIP_END = 8
_TRIES = 5
_ABOUT_CAPTURE = "warc-concurrent-to"


def erase_records(folder: Path, is_unwanted: Unwanted, also: Also | None = None) -> int:
    """Erase all records of a folder whose bodies are unwanted, with their requests. May be done twice.

    Return how many there were.

    `also` is told first what is replaced in a file of this name.
    """
    done = 0
    for _ in range(_TRIES):
        try:
            for part in warc_parts(folder):
                done += _erase_in(part, is_unwanted, also)
            return done
        except FileNotFoundError:  # its writer has just given it its final name
            finish_overwriting(folder)
    raise TamiasError(f"the files in {folder} are renamed all the time; try again")


def _erase_in(part: WarcPart, is_unwanted: Unwanted, also: Also | None) -> int:
    found = list(unwanted_records(part, is_unwanted, by_index=True))
    being_written = part.path.name.endswith(OPEN)
    if found:
        blank = {each.offset: blank_record(each) for each in found}
        if also is not None:
            also(part.name, blank)
        replace_bytes(part.path, blank, being_written=being_written)
    _clean_index(part, is_unwanted, being_written=being_written)
    return len(found)


def unwanted_records(
    part: WarcPart, is_unwanted: Unwanted, *, by_index: bool = False
) -> Iterator[WarcRecord]:
    """The records of a file that are to be erased: unwanted ones, those that name them or that they name.

    Digests are those of the index: imported records may have others, or of the body as it was coded. With
    `by_index` only what it does not speak of is read, if it has nothing that is unwanted; all of an import.
    """
    known = {int(entry.offset): (stamp, entry) for stamp, entry in entries(part.index)}
    by_index = by_index and not is_imported(part.name)
    start = _end_of_wanted(known.values(), is_unwanted) if by_index else 0
    unwanted: set[int] = set()
    names: set[str] = set()
    for record in records(part.path, start):
        fields = _fields(record)
        url, digest = URN.sub("", target_of(fields)), fields.get("warc-payload-digest", "")
        with suppress(UrlError):
            url = without_password(fetch_url(url))
        if record.offset in known:
            digest = known[record.offset][1].digest
        if is_unwanted(url, sha256_of(digest), fields.get("warc-date", "")):
            unwanted.add(record.offset)
            names |= {fields.get("warc-record-id", ""), fields.get(_ABOUT_CAPTURE, "")} - {""}
    for record in records(part.path, start) if unwanted else ():
        fields = _fields(record)
        named = {fields.get(name, "") for name in ("warc-record-id", _ABOUT_CAPTURE, "warc-refers-to")} - {""}
        is_capture = fields.get("warc-type") in ("warcinfo", "response", "revisit")
        is_blank = len(named) == 1 and "warc-target-uri" not in fields
        if record.offset in unwanted or (named & names and not is_capture and not is_blank):
            yield record


def _end_of_wanted(known: Collection[tuple[str, CdxjFields]], is_unwanted: Unwanted) -> int:
    """Return where what an index speaks of ends, or 0 if something of it is unwanted."""
    found = (is_unwanted(each.url, sha256_of(each.digest), stamp) for stamp, each in known)
    return 0 if any(found) else max((entry.end for _, entry in known), default=0)


def _fields(record: WarcRecord) -> dict[str, str]:
    return read_fields(record.head.partition(b"\r\n\r\n")[0])


def blank_record(record: WarcRecord) -> bytes:
    """Return a record of the same name and length that says nothing: a gzip member with an extra field.

    Where that is too short to fill it up, blanks in the record do.
    """
    fields, length = _fields(record), record.length
    named = [
        ("WARC-Type", "metadata"),
        ("WARC-Record-ID", fields.get("warc-record-id", "")),
        ("WARC-Date", fields.get("warc-date", "")),
    ]
    content = record_head([*named, ("Content-Length", "0")]) + b"\r\n\r\n"
    packed = _deflated(content, 9)
    rest = length - len(_GZIP_HEAD) - _EXTRA - len(packed) - _GZIP_END
    if rest > _MOST_EXTRA:
        block = rest - _MOST_EXTRA // 2
        block -= block // 1000  # what is not packed takes a little more
        head = record_head([*named, ("Content-Type", "text/plain"), ("Content-Length", str(block))])
        content = head + b" " * block + b"\r\n\r\n"
        packed = _deflated(content, 0)
        rest = length - len(_GZIP_HEAD) - _EXTRA - len(packed) - _GZIP_END
    if not 0 <= rest <= _MOST_EXTRA:
        raise TamiasError(f"a record of {length} bytes cannot be written anew in its place")
    extra = rest.to_bytes(2, "little") + (
        b"fg" + (rest - 4).to_bytes(2, "little") + bytes(rest - 4) if rest >= 4 else bytes(rest)
    )
    end = zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little")
    return _GZIP_HEAD + extra + packed + end


def _deflated(content: bytes, level: int) -> bytes:
    packing = zlib.compressobj(level, zlib.DEFLATED, -15)
    return packing.compress(content) + packing.flush()


def _clean_index(part: WarcPart, is_unwanted: Unwanted, *, being_written: bool) -> None:
    """Write the index without erased records; while the file grows their lines stay, and name nothing."""
    known = list(entries(part.index))
    gone = [is_unwanted(entry.url, sha256_of(entry.digest), stamp) for stamp, entry in known]
    if not any(gone):
        return
    if not being_written:
        pairs = zip(known, gone, strict=True)
        write_index(part.index, [line(entry, stamp) for (stamp, entry), is_gone in pairs if not is_gone])
        return
    at, changes = 0, {}
    with part.index.open("rb") as file:
        for (stamp, entry), is_gone in zip(known, gone, strict=True):
            text = file.readline()
            if is_gone:
                changes[at] = _blank_line(entry, stamp, len(text))
            at += len(text)
    replace_bytes(part.index, changes, being_written=True)


def _blank_line(entry: CdxjFields, stamp: str, length: int) -> bytes:
    blank = msgspec.structs.replace(entry, url="", mime="", status="", digest="")
    text = f"{surt('')} {stamp} ".encode() + msgspec.json.encode(blank)
    return text + b" " * (length - 1 - len(text)) + b"\n"
