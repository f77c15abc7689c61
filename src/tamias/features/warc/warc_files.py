"""WARC files that have been written: what a crash tore is cut off, what is missing in an index is added."""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from tamias.database.disk import sync_path
from tamias.features.warc.cdxj import REVISIT, CdxjFields, entries, line, mime_field, timestamp
from tamias.features.warc.messages import BadMessage, MessageBody, stored_head
from tamias.features.warc.records import DamagedRecord, warc_blocks
from tamias.model.errors import TamiasError, UrlError
from tamias.model.url import fetch_url, without_password

_HEAD_BYTES = 256 * 1024
"""Of a record that are looked at; the heads of both WARC and HTTP are smaller."""

MOST_DECODED = 1 << 30
"""Bytes of an imported body that are decoded to index it again."""
PREFIX = "tamias"
OPEN = ".open"
"""What the name of a file ends in while it is written."""
_PIECE = 256 * 1024
_BELONGS_TO = ("warc-concurrent-to", "warc-refers-to")
"""Fields by which a record names another that it belongs to."""
URN = re.compile(r"^urn:[a-zA-Z0-9-]+:(?=[a-zA-Z]+://)")
"""What stands before the URL in the address of a screenshot and the like."""
_STATUS = re.compile(rb"HTTP/[0-9.]+ ([0-9]{3})")


class WarcPart(msgspec.Struct, frozen=True):
    """A WARC file, as far as it is sound."""

    path: Path
    name: str
    """The name that it has when it is complete."""
    length: int
    complete: bool = True
    """Whether nothing will be added."""

    @property
    def index(self) -> Path:
        """Return its index."""
        return index_path(self.path, self.name)


def index_path(path: Path, name: str) -> Path:
    """Return where the index of a file stands."""
    return path.with_name(name + ".cdxj")


class WarcRecord(msgspec.Struct, frozen=True):
    """A record in a file, with its head."""

    offset: int
    length: int
    head: bytes


def warc_parts(folder: Path) -> list[WarcPart]:
    """Return the files of a folder by name, those being written as far as they go."""
    paths = sorted([*folder.glob("*.warc.gz"), *folder.glob("*.warc.gz" + OPEN)])
    return [WarcPart(path, path.name.removesuffix(OPEN), _sound_length(path)) for path in paths]


def export_warc(folder: Path, out: BinaryIO, more: Iterable[WarcPart] = ()) -> int:
    """Writes all records of a folder one after the other, as one WARC file; returns how many files they were.

    One of `more` need not be there any longer when the next is asked for. Raises `TamiasError` when there are
    none.
    """
    count = 0
    for part in chain(warc_parts(folder), more):
        out.writelines(pieces(part))
        count += 1
    if not count:
        raise nothing_to_export(folder)
    return count


def nothing_to_export(folder: Path) -> TamiasError:
    """Return what to say when there is no file."""
    return TamiasError(f"there are no WARC files in {folder}; crawl with --sink warc to create them")


def pieces(part: WarcPart) -> Iterator[bytes]:
    """The sound bytes of a file."""
    with part.path.open("rb") as file:
        left = part.length
        while left and (piece := file.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece


def sifted_parts(folder: Path, scratch: Path, withheld: Callable[[str, str], bool]) -> Iterator[WarcPart]:
    """The files of a folder without the records whose body, by address and SHA-256, is withheld.

    A file that has any is copied without them to the scratch folder, and gone when the next is asked for; its
    index stays. The others are given as they are.
    """
    for part in warc_parts(folder):
        if not any(withheld(entry.url, sha256_of(entry.digest)) for _, entry in entries(part.index)):
            yield part
            continue
        copy = WarcPart(scratch / part.name, part.name, 0)
        yield msgspec.structs.replace(copy, length=_sift(part, copy, withheld))
        copy.path.unlink()


def _sift(part: WarcPart, copy: WarcPart, withheld: Callable[[str, str], bool]) -> int:
    known = {int(entry.offset): (stamp, entry) for stamp, entry in entries(part.index)}
    left_out: set[str] = set()
    lines: list[bytes] = []
    end = 0
    with part.path.open("rb") as source, copy.path.open("wb") as out:
        for record in records(part.path):
            if record.offset + record.length > part.length:
                break
            fields = read_fields(record.head.partition(b"\r\n\r\n")[0])
            found = known.get(record.offset) or indexed(record, part.name)
            body = (found[1].url, sha256_of(found[1].digest)) if found else (target_of(fields), "")
            if withheld(URN.sub("", body[0]), body[1]) or left_out & {
                fields.get(name, "") for name in _BELONGS_TO
            }:
                left_out.add(fields.get("warc-record-id", ""))
                continue
            if found:
                lines.append(line(msgspec.structs.replace(found[1], offset=str(end)), found[0]))
            source.seek(record.offset)
            out.write(source.read(record.length))
            end += record.length
    write_index(copy.index, lines)
    return end


def sha256_of(digest: str) -> str:
    """A digest as the database has it: hexadecimal, without its algorithm."""
    return digest.partition(":")[2].lower()


def prefix_of(worker: int) -> str:
    """Return the beginning of the names of a worker's files."""
    return f"{PREFIX}-{worker}"


def is_imported(name: str) -> bool:
    """Return whether a file holds records of other crawlers, as they wrote them."""
    return "-import-" in name


def target_of(fields: Mapping[str, str]) -> str:
    """Return the address that a record is about, without the brackets that some programs write."""
    return fields.get("warc-target-uri", "").strip().removeprefix("<").removesuffix(">")


def cut_imported(folder: Path, committed: Mapping[str, int]) -> None:
    """Take out of the files of imports what was not committed; for whoever imports alone."""
    for part in warc_parts(folder):
        end = committed.get(part.name, 0)
        if not is_imported(part.name) or part.path.stat().st_size <= end:
            continue
        if end:
            with part.path.open("r+b") as file:
                file.truncate(end)
                os.fsync(file.fileno())
            write_index(
                part.index, [line(each, stamp) for stamp, each in entries(part.index) if each.end <= end]
            )
        else:
            part.index.unlink(missing_ok=True)
            part.path.unlink()


def mend_warcs(folder: Path, prefix: str) -> int:
    """Completes what a dead writer of that prefix left open; returns how many files. May be done twice."""
    left = sorted(folder.glob(f"{prefix}-*.warc.gz{OPEN}")) if folder.is_dir() else []
    for path in left:
        _mend(path, path.name.removesuffix(OPEN))
    if left:
        sync_path(folder)
    return len(left)


def records(path: Path, start: int = 0) -> Iterator[WarcRecord]:
    """The whole records of a file from a record's start on; ends at the first that is torn."""
    with path.open("rb") as file:
        while (record := _record_at(file, start)) is not None:
            yield record
            start += record.length


def index_warc(path: Path, name: str) -> None:
    """Makes the index of a file that has another name when it is complete."""
    write_index(index_path(path, name), _lines(path, records(path), name))


def _lines(path: Path, found: Iterable[WarcRecord], name: str) -> Iterator[bytes]:
    """The lines of records in the index of a file."""
    for record in found:
        if (entry := indexed(record, name)) is None:
            continue
        if is_imported(name):  # its digest may be of another kind, or of the body as it was coded
            digest = _body_digest(path, record.offset) if entry[1].mime != REVISIT else ""
            entry = entry[0], msgspec.structs.replace(entry[1], digest=digest)
        yield line(entry[1], entry[0])


def _body_digest(path: Path, offset: int) -> str:
    """The SHA-256 of the body of a response, without codings, as far as it can be read."""
    digest, left = hashlib.sha256(), MOST_DECODED
    with path.open("rb") as file, suppress(BadMessage, DamagedRecord):
        for block in islice(warc_blocks(file, lambda _offset, _problem: None, offset), 1):
            for piece in MessageBody(block, stored_head(block)).pieces():
                digest.update(piece)
                left -= len(piece)
                if left < 0:
                    return ""
    return f"sha256:{digest.hexdigest()}"


def _mend(path: Path, name: str) -> None:
    index = index_path(path, name)
    known = list(entries(index))
    end = max((entry.end for _, entry in known), default=0)
    lines = [line(entry, stamp) for stamp, entry in known]
    for record in records(path, end):
        lines += _lines(path, [record], name)
        end = record.offset + record.length
    with path.open("r+b") as file:
        file.truncate(end)
        os.fsync(file.fileno())
    write_index(index, lines)
    path.rename(path.with_name(name))


def write_index(index: Path, lines: Iterable[bytes]) -> None:
    """Puts an index in the place of the one that there is."""
    partial = index.with_name(index.name + ".part")
    with partial.open("wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(index)


def _sound_length(path: Path) -> int:
    """Return how much of a file is sound, without reading what its index covers."""
    if not path.name.endswith(OPEN):
        return path.stat().st_size
    index = index_path(path, path.name.removesuffix(OPEN))
    end = max((entry.end for _, entry in entries(index)), default=0)
    for record in records(path, end):
        end = record.offset + record.length
    return end


def indexed(record: WarcRecord, name: str) -> tuple[str, CdxjFields] | None:
    """The timestamp and the index entry of a record; None for one that is no answer."""
    warc, _, block = record.head.partition(b"\r\n\r\n")
    fields = read_fields(warc)
    kind, url = fields.get("warc-type"), target_of(fields)
    if kind not in ("response", "revisit") and not (kind == "resource" and is_imported(name)):
        return None
    if is_imported(name):
        with suppress(UrlError):
            url = without_password(fetch_url(url))
    status = _STATUS.match(block)
    media_type = read_fields(block.partition(b"\r\n\r\n")[0]).get("content-type", "")
    entry = CdxjFields(
        url=url,
        mime=mime_field(media_type, is_revisit=kind == "revisit"),
        status=status[1].decode() if status else "",
        digest=fields.get("warc-payload-digest", ""),
        length=str(record.length),
        offset=str(record.offset),
        filename=name,
    )
    return timestamp(fields.get("warc-date", "")), entry


def _record_at(file: BinaryIO, start: int) -> WarcRecord | None:
    """The record that begins there; None when it is not whole."""
    file.seek(start)
    unpacking = zlib.decompressobj(31)
    head = bytearray()
    length = 0
    while not unpacking.eof:
        piece = unpacking.unconsumed_tail
        if not piece:
            piece = file.read(_PIECE)
            length += len(piece)
            if not piece:
                return None
        try:
            plain = unpacking.decompress(piece, _PIECE)
        except zlib.error:
            return None
        head += plain[: _HEAD_BYTES - len(head)]
    return WarcRecord(start, length - len(unpacking.unused_data), bytes(head))


def read_fields(head: bytes) -> dict[str, str]:
    """The first value of each header, after the first line."""
    fields: dict[str, str] = {}
    for text in head.splitlines()[1:]:
        name, _, value = text.decode("utf-8", "replace").partition(":")
        fields.setdefault(name.strip().lower(), value.strip())
    return fields
