"""Deliver archived bytes over HTTP: streamed, in ranges, with their digest as tag, and checked before."""

import asyncio
import hashlib
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from functools import partial
from mimetypes import guess_extension
from posixpath import basename
from typing import IO, TypeVar
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.archive.blobs import Blob, BlobDamaged, BlobMissing, Codec
from tamias.archive.blobs.chunking import listed
from tamias.archive.moments import digits
from tamias.content.formats import suffix_of
from tamias.features.service.http.exchange import has_already
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.features.service.queries.usage import check_owner
from tamias.features.service.service import Service
from tamias.model.resource import Resource, Version
from tamias.plugins import parts

T = TypeVar("T")
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
        source = part_of(await pool.run(partial(_spooled, sha256=sha256)), start, stop)
    elif stop - start == size:
        source = _all_chunks(pool, sha256, chunks)
    else:
        source = _some_chunks(pool, sha256, chunks, start, stop)
    async for piece in source:
        yield piece


async def part_of(file: IO[bytes], start: int, stop: int) -> AsyncIterator[bytes]:
    """Yield a part of a file, which is closed at the end."""
    with closing(file):
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
    chains = await pool.run(partial(_chains, sha256=sha256, chunks=chunks))
    at = 0
    for chunk, (whole, *_) in zip(chunks, chains, strict=True):
        low, high = max(start - at, 0), min(stop - at, whole.size)
        if low < high:
            (content,) = await pool.run(partial(_read, sha256=sha256, chunks=[chunk]))
            yield content[low:high]
        at += whole.size


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


def _chains(db: ServiceSession, sha256: str, chunks: list[str]) -> list[list[Blob]]:
    chains = db.reader.table.chains(chunks)
    missing = next((chunk for chunk in chunks if chunk not in chains), None)
    if missing is not None:
        raise BlobDamaged(sha256, f"its chunk {missing} is missing")
    return [chains[chunk] for chunk in chunks]


def _read(db: ServiceSession, sha256: str, chunks: list[str]) -> list[bytes]:
    """Read bodies, each checked against its digest."""
    return [db.reader.decoded_or_damaged(chain) for chain in _chains(db, sha256, chunks)]


def timestamps(versions: Sequence[Version]) -> list[str]:
    """Return the times in addresses of versions: to the second, or finer where one second has two."""
    seconds = [digits(version.captured_at) for version in versions]
    shared = {second for second, n in Counter(seconds).items() if n > 1}
    return [
        f"{second}{version.captured_at % 1000:03d}" if second in shared else second
        for second, version in zip(seconds, versions, strict=True)
    ]


def memento_path(stamp: str, url: str) -> str:
    """Return the path of a Memento."""
    return f"/memento/{stamp}/{url}"


def memento_paths(url: str, versions: Sequence[Version]) -> list[str | None]:
    """Return the path of each version as a Memento; none where versions are not replayed."""
    if "memento" not in parts("endpoints"):
        return [None] * len(versions)
    return [memento_path(stamp, url) for stamp in timestamps(versions)]


SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
FOR_EVER = "public, max-age=31536000, immutable"
FOR_NOBODY = "private, no-store"
"""What only the owner gets is not kept on the way."""
UNKNOWN = "application/octet-stream"
_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(; ?charset=[\w:.-]+)?", re.ASCII)
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,8}")


async def deliver(
    request: Request, service: Service, version: Version, headers: Mapping[str, str] | None = None
) -> Response:
    """The bytes of a version, or what the client wants to have of them. Raises `HttpProblem`."""
    sent = {**headers_of(version), **(headers or {})}
    if reason := await service.usages.withheld(version):
        check_owner(request, reason)
        sent["Cache-Control"] = FOR_NOBODY
    unchanged = refuse_unchanged(request, version, sent)
    if unchanged is not None:
        return unchanged
    start, stop, status = wanted_part(request, version, sent)
    # As a header: Starlette adds a character set to a `media_type` that is text.
    sent["Content-Type"] = content_type(version)
    if request.method == "HEAD":
        return Response(status_code=status, headers=sent)
    source = pieces(service.pool, version.sha256, version.byte_size, start, stop)
    if version.byte_size <= IN_MEMORY:
        whole = b"".join([piece async for piece in source])
        return Response(whole, status, headers=sent)
    return StreamingResponse(await begun(source), status, headers=sent)


async def begun(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces; the first is there already, so that an error still has a status of its own."""
    return again(await anext(source, b""), source)


async def again(first: T, rest: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield what was taken to see whether there is anything, then the rest."""
    yield first
    async for each in rest:
        yield each


def content_type(version: Version) -> str:
    """Return the detected media type, with the charset that the server declared if it is a known one."""
    found, declared = version.media_type, (version.declared_type or "").strip()
    if _TYPE.fullmatch(declared) and (found is None or declared.partition(";")[0].strip().lower() == found):
        return declared
    return found if found and _TYPE.fullmatch(found) else UNKNOWN


def as_attachment(resource: Resource, version: Version) -> dict[str, str]:
    """Return headers that save a version under the name in its URL."""
    return {"Content-Disposition": f'attachment; filename="{file_name(resource, version)}"'}


def file_name(resource: Resource, version: Version) -> str:
    """A name for people, with an extension; nothing of it can steer a file system."""
    path = unquote(urlsplit(resource.url).path, errors="replace")
    name = _NAME.sub("_", basename(path.rstrip("/"))).lstrip("._-")[-80:] or version.resource
    return name if _EXTENSION.search(name) else name + extension(version.media_type)


def extension(media_type: str | None) -> str:
    """The usual ending of a file of some type."""
    return suffix_of(media_type) or guess_extension(media_type or "") or ".bin"


def http_date(moment: int) -> str:
    """Milliseconds as HTTP writes them.

    >>> http_date(1700000000123)
    'Tue, 14 Nov 2023 22:13:20 GMT'
    """
    return format_datetime(datetime.fromtimestamp(moment // 1000, UTC), usegmt=True)


def read_http_date(text: str) -> int | None:
    """The last millisecond of the second that HTTP writes; None where it is none."""
    try:
        parsed = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    known = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
    try:
        return int(known.timestamp()) * 1000 + 999
    except (OverflowError, ValueError):
        return None


def headers_of(version: Version) -> dict[str, str]:
    """Return the headers of a version."""
    return {
        "ETag": f'"{version.sha256}"',
        "Last-Modified": http_date(version.captured_at),
        "Accept-Ranges": "bytes",
        "Cache-Control": "no-cache",
        "Content-Security-Policy": SANDBOX,
    }


def refuse_unchanged(request: Request, version: Version, headers: dict[str, str]) -> Response | None:
    """Return the answer to a client that has these bytes; None if it is to have them."""
    wanted = request.headers.get("if-match")
    tag = headers["ETag"]
    if (
        wanted is not None
        and wanted.strip() != "*"
        and tag not in {each.strip() for each in wanted.split(",")}
    ):
        raise HttpProblem(412, f"this version has the tag {tag}")
    if "if-none-match" in request.headers:
        seen = has_already(request, tag)
    else:
        since = read_http_date(request.headers.get("if-modified-since", ""))
        seen = since is not None and version.captured_at <= since
    return Response(status_code=304, headers=headers) if seen else None


def wanted_part(
    request: Request, version: Version, sent: dict[str, str], status: int = 200
) -> tuple[int, int, int]:
    """Return the part that is wanted and its status; its length and place are added to the headers."""
    wanted = _read_range(request, version) if status == 200 else None
    start, stop = wanted or (0, version.byte_size)
    sent["Content-Length"] = str(stop - start)
    if wanted is not None:
        sent["Content-Range"] = f"bytes {start}-{stop - 1}/{version.byte_size}"
    return start, stop, status if wanted is None else 206


def _read_range(request: Request, version: Version) -> tuple[int, int] | None:
    """The part that is wanted; None for the whole, also where several parts are wanted."""
    found = _RANGE.fullmatch(request.headers.get("range", "").replace(" ", ""))
    if found is None or found.group(1) == found.group(2) == "":
        return None
    same = f'"{version.sha256}"', http_date(version.captured_at)
    if request.headers.get("if-range", same[0]).strip() not in same:
        return None
    first, last = found.groups()
    size = version.byte_size
    start = int(first) if first else max(0, size - int(last))
    stop = min(size, int(last) + 1) if first and last else size
    if first and last and int(last) < int(first):
        return None
    if start >= size:
        unsatisfied = {"Content-Range": f"bytes */{size}"}
        raise HttpProblem(416, f"this version has {size} bytes", unsatisfied)
    return start, stop
