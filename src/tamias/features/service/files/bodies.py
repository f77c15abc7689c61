"""Gives out archived bytes, whole or in part, piece by piece and without holding a thread meanwhile.

Every byte was checked against a digest before it is given.
"""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from typing import IO

from tamias.archive.blobs import BlobDamaged, BlobMissing, Codec
from tamias.archive.blobs.chunking import listed
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool

PIECE = 256 * 1024
IN_MEMORY = 1024 * 1024
"""A larger body waits in a file for a client that may be slow."""
MOST_CACHED = 256 * 1024
CHUNKS_AT_ONCE = 16


def pieces(
    pool: SessionPool, sha256: str, size: int, start: int = 0, stop: int | None = None
) -> AsyncIterator[bytes]:
    """The bytes of a body from `start` up to `stop`. Raises `BlobMissing`, `BlobDamaged`."""
    stop = size if stop is None else stop
    if size <= IN_MEMORY:
        return _small(pool, sha256, start, stop)
    return _large(pool, sha256, start, stop, size)


async def _small(pool: SessionPool, sha256: str, start: int, stop: int) -> AsyncIterator[bytes]:
    content = pool.bodies.get(sha256)
    if content is None:
        content = await pool.run(lambda db: db.reader.read(sha256))
        if len(content) <= MOST_CACHED:
            pool.bodies.put(sha256, content)
    if start < stop:
        yield content[start:stop]


async def _large(pool: SessionPool, sha256: str, start: int, stop: int, size: int) -> AsyncIterator[bytes]:
    chunks = await pool.run(partial(_chunks_of, sha256=sha256))
    if chunks is None:
        source = _from_file(pool, sha256, start, stop)
    elif stop - start == size:
        source = _all_chunks(pool, sha256, chunks)
    else:
        source = _some_chunks(pool, sha256, chunks, start, stop)
    async for piece in source:
        yield piece


async def _from_file(pool: SessionPool, sha256: str, start: int, stop: int) -> AsyncIterator[bytes]:
    with closing(await pool.run(partial(_spooled, sha256=sha256))) as file:
        file.seek(start)
        left = stop - start
        while left and (piece := await asyncio.to_thread(file.read, min(PIECE, left))):
            left -= len(piece)
            yield piece


async def _all_chunks(pool: SessionPool, sha256: str, chunks: list[str]) -> AsyncIterator[bytes]:
    """The last of them only when the whole has its digest."""
    digest = hashlib.sha256()
    last = b""
    for first in range(0, len(chunks), CHUNKS_AT_ONCE):
        wanted = chunks[first : first + CHUNKS_AT_ONCE]
        piece = b"".join(await pool.run(partial(_read, sha256=sha256, chunks=wanted)))
        digest.update(piece)
        if last:
            yield last
        last = piece
    if digest.hexdigest() != sha256:
        raise BlobDamaged(sha256, "its chunks do not make it up")
    yield last


async def _some_chunks(
    pool: SessionPool, sha256: str, chunks: list[str], start: int, stop: int
) -> AsyncIterator[bytes]:
    sizes = await pool.run(partial(_sizes, sha256=sha256, chunks=chunks))
    at = 0
    for chunk, size in zip(chunks, sizes, strict=True):
        low, high = max(start - at, 0), min(stop - at, size)
        if low < high:
            (content,) = await pool.run(partial(_read, sha256=sha256, chunks=[chunk]))
            yield content[low:high]
        at += size


def _spooled(db: ServiceSession, sha256: str) -> IO[bytes]:
    file = tempfile.TemporaryFile(prefix="tamias-serve-")  # noqa: SIM115 - closed when it has been given out
    file.writelines(db.reader.pieces(sha256))
    return file


def _chunks_of(db: ServiceSession, sha256: str) -> list[str] | None:
    """The chunks that a body is kept in; None where it is kept as one."""
    chain = db.reader.table.chains([sha256]).get(sha256)
    if chain is None:
        raise BlobMissing(f"there is no blob {sha256}")
    if chain[0].codec is not Codec.CHUNKS:
        return None
    assert chain[0].base is not None
    return listed(db.reader.read(chain[0].base))


def _sizes(db: ServiceSession, sha256: str, chunks: list[str]) -> list[int]:
    chains = db.reader.table.chains(chunks)
    missing = next((chunk for chunk in chunks if chunk not in chains), None)
    if missing is not None:
        raise BlobDamaged(sha256, f"its chunk {missing} is missing")
    return [chains[chunk][0].size for chunk in chunks]


def _read(db: ServiceSession, sha256: str, chunks: list[str]) -> list[bytes]:
    """Read bodies, each checked against its digest."""
    chains = db.reader.table.chains(chunks)
    missing = next((chunk for chunk in chunks if chunk not in chains), None)
    if missing is not None:
        raise BlobDamaged(sha256, f"its chunk {missing} is missing")
    return [db.reader.decoded_or_damaged(chains[chunk]) for chunk in chunks]
