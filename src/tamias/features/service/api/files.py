"""The archived bytes: of one version, or of many as a zip that is written while it is read."""

import asyncio
import io
import re
import shutil
import tempfile
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.moments import milliseconds, shown
from tamias.archive.reader.library import NotArchived
from tamias.archive.tombstones import check_gone, check_moment
from tamias.archive.versions.resources import page_of_resources, read_versions
from tamias.features.service.files.delivery import (
    FOR_EVER,
    IN_MEMORY,
    again,
    as_attachment,
    begun,
    deliver,
    extension,
    pieces,
)
from tamias.features.service.http.endpoints import (
    FOR_TRAINING,
    ID,
    URL,
    EndpointTable,
    Parameter,
    ResponseSpec,
    path_parameter,
)
from tamias.features.service.http.exchange import (
    base_of,
    media_type,
    own_parameters,
    parameter,
    path_behind,
    url_behind,
    version_number,
)
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.history import ResourceHistory
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.features.service.queries.usage import bulk_words
from tamias.features.service.service import Service
from tamias.model.resource import Resource, Version
from tamias.model.usage import SHOWING

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
            line = shown(ManifestLine, version, resource, file=_file(version), problem=problem)
            members.write(msgspec.json.encode(line) + b"\n")
        members.seek(0)
        with archive.open(MANIFEST, "w", force_zip64=True) as file:
            shutil.copyfileobj(members, file)
    yield out.taken()


async def _written(
    pool: SessionPool, archive: zipfile.ZipFile, out: "_Outlet", version: Version
) -> AsyncIterator[bytes]:
    source = pieces(pool, version.sha256, version.byte_size)
    first = await anext(source, b"")
    time = datetime.fromtimestamp(version.captured_at // 1000, UTC).timetuple()[:6]
    info = zipfile.ZipInfo(_file(version), max(_EARLIEST, time))
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as file:
        await asyncio.to_thread(file.write, first)
        yield out.taken()
        async for piece in source:
            await asyncio.to_thread(file.write, piece)
            yield out.taken()


def _file(version: Version) -> str:
    return version.id + extension(version.media_type)


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


_BY_URL = "/api/v1/get/file/"
_BY_ID = "/api/v1/get/file/id/"
_BY_TYPE = "/api/v1/get/files/type/"
_VERSION_ID = re.compile(r"([0-9a-f]{24})(?:_([1-9][0-9]{0,8}))?")
_AT_ONCE = 100

Found = tuple[Resource, Version]


ENDPOINTS = EndpointTable()
_BYTES = ResponseSpec(
    "The bytes, exactly as they were captured; the ETag is their SHA-256", media_types=("*/*",)
)
_PART = ResponseSpec("The requested part", media_types=("*/*",))
_ZIP = ResponseSpec("A zip with all files and manifest.jsonl", media_types=("application/zip",))
_UNCHANGED = ResponseSpec("The client has it already")


@ENDPOINTS.get(
    _BY_URL + "{URL}",
    {200: _BYTES, 206: _PART, 304: _UNCHANGED},
    path_parameter("URL", "the URL of the dataset", URL),
    Parameter("at", "RFC 3339 or YYYYMMDDhhmmss"),
    Parameter("version", "a version's number"),
)
async def by_url(request: Request, service: Service) -> Response:
    """The current version of a URL; with ?at=TIME or ?version=N and a percent-encoded URL, another."""
    url = url_behind(request, _BY_URL)
    parameters = own_parameters(request, _BY_URL)
    resource, version = await _chosen(
        service, await service.histories.find(url), parameters.get("at"), parameters.get("version")
    )
    return await deliver(request, service, version, as_attachment(resource, version))


@ENDPOINTS.get(
    _BY_ID + "{ID}",
    {200: _BYTES, 206: _PART, 304: _UNCHANGED},
    path_parameter("ID", "a version's id, or a dataset's for its current version", ID),
)
async def by_id(request: Request, service: Service) -> Response:
    """Return one version by its id."""
    named = _VERSION_ID.fullmatch(path_behind(request, _BY_ID))
    if named is None:
        raise HttpProblem(404, "a version's id is 24 hexadecimal digits, an underscore and a number")
    resource, version = await _chosen(service, await service.histories.find(named[1]), None, named[2])
    page = f"{base_of(request)}/dataset/{resource.id}/{version.number}"
    headers = {**as_attachment(resource, version), "Link": f'<{page}>; rel="collection"'}
    return await deliver(
        request, service, version, headers | ({"Cache-Control": FOR_EVER} if named[2] else {})
    )


@ENDPOINTS.get(
    _BY_TYPE + "{TYPE}",
    _ZIP,
    path_parameter("TYPE", "a media type, or a short name such as csv"),
    Parameter("versions", "only the latest of each dataset", {"enum": ["all", "latest"]}),
    FOR_TRAINING,
)
async def by_type(request: Request, service: Service) -> Response:
    """Return a zip with the versions of a media type."""
    wanted = media_type(path_behind(request, _BY_TYPE))
    latest = parameter(request, "versions") == "latest"
    found = _all_of(service.pool, wanted, latest=latest)
    first = await anext(found, None)
    if first is None:
        raise HttpProblem(404, f"the archive has no version of {wanted}")
    return await zip_answer(request, service, again(first, found), wanted.replace("/", "-"))


async def zip_answer(request: Request, service: Service, wanted: AsyncIterator[Found], name: str) -> Response:
    """Versions as a zip with a manifest; of those that are withheld, only the manifest tells."""
    safe = re.sub(r"[^A-Za-z0-9.+-]+", "_", name)
    headers = {"Content-Disposition": f'attachment; filename="{safe}.zip"', "Cache-Control": "no-store"}
    if request.method == "HEAD":
        return Response(headers=headers, media_type="application/zip")
    words = bulk_words(request, SHOWING)
    withheld = partial(service.usages.withheld, words=words) if words else None
    content = await begun(zipped(service.pool, wanted, withheld))
    return StreamingResponse(content, headers=headers, media_type="application/zip")


async def _chosen(service: Service, found: ResourceHistory, at: str | None, number: str | None) -> Found:
    resource, versions = found.resource, found.versions
    if number is not None:
        fits = [version for version in versions if str(version.number) == number]
    elif at is not None:
        until = milliseconds(at)
        fits = [version for version in versions if version.captured_at <= until]
        since = fits[-1].captured_at if fits else 0
        await service.pool.run(lambda db: check_moment(db.session, resource.id, since, until))
    else:
        fits = versions
    if not fits:
        await service.pool.run(lambda db: check_gone(db.session, resource.id, version_number(number)))
        which = f"version {number[:20]}" if number else f"version at {at[:40]}" if at else "version yet"
        raise NotArchived(f"{resource.url} has no {which}")
    return resource, fits[-1]


async def _all_of(pool: SessionPool, wanted: str, *, latest: bool) -> AsyncIterator[Found]:
    after = ""

    def read(db: ServiceSession) -> list[tuple[Resource, list[Version]]]:
        resources = page_of_resources(db.session, after, _AT_ONCE, media_type=wanted)
        versions = read_versions(db.session, [resource.id for resource in resources])
        return [(resource, versions[resource.id]) for resource in resources]

    while found := await pool.run(read):
        for resource, versions in found:
            fits = [each for each in versions if each.media_type == wanted]
            for version in fits[-1:] if latest else fits:
                yield resource, version
        after = found[-1][0].id
