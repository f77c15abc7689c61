"""Responses from WARC files as Mementos: found by the index, read at their places, checked by digests."""

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.file_store import FileStore, file_store
from tamias.archive.moments import digits
from tamias.archive.stored_files import find_warc
from tamias.features.service.files.delivery import (
    FOR_NOBODY,
    IN_MEMORY,
    content_type,
    headers_of,
    memento_path,
    part_of,
    refuse_unchanged,
    wanted_part,
)
from tamias.features.service.http.exchange import base_of
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import check_owner
from tamias.features.service.service import Service
from tamias.features.warc.index import WarcExtent, records_of, records_with
from tamias.features.warc.messages import MessageHead, read_response
from tamias.model.errors import UrlError
from tamias.model.resource import Version
from tamias.model.url import resolve
from tamias.model.usage import SHOWING, refusal, verdict
from tamias.permit.signals import signals_of


class WarcVersion(Version, frozen=True, kw_only=True):
    """A record of a WARC file in the form of a version."""

    extent: WarcExtent


class WarcBody(msgspec.Struct, frozen=True):
    """A response that was read and checked; whoever has it closes its file."""

    head: MessageHead
    file: IO[bytes]
    size: int


def warc_versions(db: ServiceSession, url: str) -> list[WarcVersion]:
    """Return the records of a URL in WARC files, oldest first."""
    return [_version(extent) for extent in records_of(db.session, [url])]


def read_body(db: ServiceSession, data: Path, extent: WarcExtent) -> WarcBody:
    """The response of a record, with the body of another where it refers to one.

    Raises `BlobMissing`, `BlobDamaged`.
    """
    store = file_store(db.session, data)
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


async def replay(
    request: Request, service: Service, version: WarcVersion, headers: Mapping[str, str]
) -> Response:
    """The response of a WARC record, with the status that it had."""
    sent = {**headers_of(version), **headers, "Content-Type": content_type(version)}
    body = await service.pool.run(partial(read_body, data=service.data, extent=version.extent))
    try:
        version = msgspec.structs.replace(version, byte_size=body.size)
        said = verdict(signals_of(body.head.headers, (), (), url=version.extent.url))
        known = await service.usages.withheld(version) if version.capture else None
        if reason := known or refusal(said, SHOWING):
            check_owner(request, reason)
            sent["Cache-Control"] = FOR_NOBODY
        status = version.extent.status
        if location := body.head.header("location"):
            target = version.extent.url
            with suppress(UrlError):
                target = resolve(location, target)
            sent["Location"] = base_of(request) + memento_path(digits(version.captured_at), target)
        unchanged = refuse_unchanged(request, version, sent) if status == 200 else None
        if unchanged is not None or request.method == "HEAD":
            body.file.close()
            sent["Content-Length"] = str(version.byte_size)
            return unchanged or Response(status_code=status, headers=sent)
        start, stop, status = wanted_part(request, version, sent, status)
    except BaseException:
        body.file.close()
        raise
    return StreamingResponse(part_of(body.file, start, stop), status, headers=sent)


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
