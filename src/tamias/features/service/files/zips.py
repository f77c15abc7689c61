"""Write versions as a zip while it is read; the last member lists the others."""

import asyncio
import io
import shutil
import tempfile
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.moments import shown
from tamias.features.service.files.bodies import IN_MEMORY, pieces
from tamias.features.service.files.delivery import extension
from tamias.features.service.queries.thread_pool import SessionPool
from tamias.model.resource import Resource, Version

MANIFEST = "manifest.jsonl"
LEVEL = 1
Withheld = Callable[[Version], Awaitable[str | None]]
"""Why a version is withheld from whoever asked; None if it is not."""
_EARLIEST = (1980, 1, 1, 0, 0, 0)


class ManifestLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the manifest."""

    file: str
    url: str
    title: str | None
    id: str
    number: int
    captured_at: str
    sha256: str
    byte_size: int
    media_type: str | None
    problem: str | None = None
    """Why the file is absent, or not whole."""


async def zipped(
    pool: SessionPool, wanted: AsyncIterator[tuple[Resource, Version]], withheld: Withheld | None = None
) -> AsyncIterator[bytes]:
    """The zip, in pieces. A version that cannot be given back, or is withheld, is told of in the manifest."""
    out = _Outlet()
    with (
        tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="tamias-zip-") as members,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive,
    ):
        async for resource, version in wanted:
            problem = None if withheld is None else await withheld(version)
            try:
                if problem is None:
                    async for piece in _written(pool, archive, out, version):
                        yield piece
            except (BlobDamaged, BlobMissing) as error:
                problem = str(error)
            members.write(msgspec.json.encode(_member(resource, version, problem)) + b"\n")
        members.seek(0)
        with archive.open(MANIFEST, "w", force_zip64=True) as file:
            shutil.copyfileobj(members, file)
    yield out.taken()


async def _written(
    pool: SessionPool, archive: zipfile.ZipFile, out: "_Outlet", version: Version
) -> AsyncIterator[bytes]:
    source = pieces(pool, version.sha256, version.byte_size)
    first = await anext(source, b"")
    info = zipfile.ZipInfo(_file(version), _time(version))
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as file:
        await asyncio.to_thread(file.write, first)
        yield out.taken()
        async for piece in source:
            await asyncio.to_thread(file.write, piece)
            yield out.taken()


def _file(version: Version) -> str:
    return version.id + extension(version.media_type)


def _time(version: Version) -> tuple[int, int, int, int, int, int]:
    time = datetime.fromtimestamp(version.captured_at // 1000, UTC)
    return max(_EARLIEST, (time.year, time.month, time.day, time.hour, time.minute, time.second))


def _member(resource: Resource, version: Version, problem: str | None) -> ManifestLine:
    return shown(ManifestLine, version, resource, file=_file(version), problem=problem)


class _Outlet(io.RawIOBase):
    """A file that cannot seek: what is written waits to be taken."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        view = memoryview(content)
        self._written += view
        return len(view)

    def taken(self) -> bytes:
        """Return the bytes written since the last call."""
        taken = bytes(self._written)
        self._written.clear()
        return taken
