"""Versions through the blob store as the archive does it: bytes, sync, rows; and back again."""

import time
from collections.abc import Sequence
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path

import msgspec

from tamias.archive.blobs import BlobReader, BlobWriter, LocalPacks, insert_blobs
from tamias.archive.blobs.reader import CACHE_BYTES
from tamias.database.connect import Session
from tamias.model.capture import Body


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a dataset."""

    stored: int
    seconds: float
    """Of processor time."""
    oldest_seconds: float
    """To give the oldest version back, by the clock, with nothing at hand."""
    newest_seconds: float
    codecs: list[str]


def spooled(path: Path) -> Body:
    """A file as if it had been fetched into the spool."""
    with path.open("rb") as file:
        return Body(size=path.stat().st_size, sha256=file_digest(file, "sha256").hexdigest(), path=str(path))


def ingest(session: Session, folder: Path, files: Sequence[Path], *, cold: bool = False) -> Ingested:
    """Keeps the versions one by one, each in its own commit; reads the first and the last one.

    `cold`: the version before is never at hand, as in a process that has not kept it itself.
    """
    session.transact(lambda cursor: cursor.execute(b"TRUNCATE blob, pack"))
    packs = LocalPacks(folder)
    bodies = [spooled(path) for path in files]
    writer = BlobWriter(packs, session, cache_bytes=0 if cold else CACHE_BYTES)
    stored, before = 0, None
    codecs: list[str] = []
    started = time.process_time()
    for body in bodies:
        prepared = writer.prepare(body, before)
        writer.sync()
        session.transact(partial(insert_blobs, prepared=[prepared]))
        writer.settled()
        stored += prepared.written
        codecs += [str(blob.codec) for blob in prepared.blobs]
        before = body.sha256
    seconds = time.process_time() - started
    writer.close()
    return Ingested(
        stored=stored,
        seconds=seconds,
        oldest_seconds=_restored(packs, session, bodies[0]),
        newest_seconds=_restored(packs, session, bodies[-1]),
        codecs=codecs,
    )


def _restored(packs: LocalPacks, session: Session, body: Body) -> float:
    started = time.perf_counter()
    content = BlobReader(packs, session).read(body.sha256)
    seconds = time.perf_counter() - started
    assert sha256(content).hexdigest() == body.sha256
    return seconds
