"""Responses from WARC files as Mementos: found by the index, read at their places, checked by digests."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import IO

import msgspec

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.file_store import FileStore, file_store
from tamias.archive.stored_files import find_warc
from tamias.archive.warc_bodies import read_response
from tamias.archive.warc_index import records_of, records_with
from tamias.content.warc.messages import MessageHead
from tamias.features.service.files.bodies import IN_MEMORY, PIECE
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.model.resource import Version
from tamias.model.warc import WarcExtent


class WarcVersion(Version, frozen=True, kw_only=True):
    """A record of a WARC file in the form of a version."""

    extent: WarcExtent


class WarcBody(msgspec.Struct, frozen=True):
    """A response that was read and checked; whoever has it closes its file."""

    head: MessageHead
    file: IO[bytes]
    size: int

    async def pieces(self, start: int, stop: int) -> AsyncIterator[bytes]:
        """A part of its body."""
        with closing(self.file):
            self.file.seek(start)
            left = stop - start
            while left and (piece := await asyncio.to_thread(self.file.read, min(PIECE, left))):
                left -= len(piece)
                yield piece


def warc_versions(db: ServiceSession, url: str) -> list[WarcVersion]:
    """Return the records of a URL in WARC files, oldest first."""
    return [_version(extent) for extent in records_of(db.session, [url])]


def read_body(db: ServiceSession, data: Path, extent: WarcExtent) -> WarcBody:
    """The response of a record, with the body of another where it refers to one.

    Raises `BlobMissing`, `BlobDamaged`.
    """
    with closing(file_store(db.session, data)) as store:
        return _replayed(db, store, extent)


def _replayed(db: ServiceSession, store: FileStore, extent: WarcExtent) -> WarcBody:
    if not extent.revisit:
        return _read(db, store, extent, with_body=True)
    refers = _read(db, store, extent, with_body=False)
    refers.file.close()
    problem: Exception = BlobMissing(f"no record holds the body {extent.sha256}")
    for original in records_with(db.session, extent.sha256 or ""):
        try:
            return msgspec.structs.replace(_read(db, store, original, with_body=True), head=refers.head)
        except (BlobMissing, BlobDamaged) as error:
            problem = error
    raise problem


def _version(extent: WarcExtent) -> WarcVersion:
    declared = (extent.declared_type or "").partition(";")[0].strip().lower()
    return WarcVersion(
        resource="",
        number=0,
        captured_at=extent.captured_at,
        sha256=extent.sha256 or "",
        byte_size=0,  # known when it is read
        media_type=declared or None,
        declared_type=extent.declared_type,
        capture=extent.capture or "",
        extent=extent,
    )


def _read(db: ServiceSession, store: FileStore, extent: WarcExtent, *, with_body: bool) -> WarcBody:
    body: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="tamias-serve-")  # noqa: SIM115 (its reader closes it)
    try:
        with store.open(find_warc(db.session, extent.file)) as file:
            head = read_response(file, extent, body.write, with_body=with_body)
    except FileNotFoundError:
        body.close()
        raise BlobMissing(f"the WARC file {extent.file} is not there") from None
    except BaseException:
        body.close()
        raise
    return WarcBody(head, body, body.tell())
