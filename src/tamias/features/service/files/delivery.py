"""Deliver a version over HTTP: streamed, in ranges, with its digest as tag, never trusted by a browser."""

import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from mimetypes import guess_extension
from posixpath import basename
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.content.formats import suffix_of
from tamias.features.service.files.bodies import IN_MEMORY, pieces
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.http.responses import has_already
from tamias.features.service.queries.usage import check_owner
from tamias.features.service.service import Service
from tamias.model.resource import Resource, Version

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
    start, stop = read_range(request, version) or (0, version.byte_size)
    status = 200 if stop - start == version.byte_size and read_range(request, version) is None else 206
    # As a header: Starlette adds a character set to a `media_type` that is text.
    sent |= {"Content-Length": str(stop - start), "Content-Type": content_type(version)}
    if status == 206:
        sent["Content-Range"] = f"bytes {start}-{stop - 1}/{version.byte_size}"
    if request.method == "HEAD":
        return Response(status_code=status, headers=sent)
    source = pieces(service.pool, version.sha256, version.byte_size, start, stop)
    if version.byte_size <= IN_MEMORY:
        whole = b"".join([piece async for piece in source])
        return Response(whole, status, headers=sent)
    return StreamingResponse(await begun(source), status, headers=sent)


async def begun(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces; the first is there already, so that an error still has a status of its own."""
    first = await anext(source, b"")

    async def rest() -> AsyncIterator[bytes]:
        yield first
        async for piece in source:
            yield piece

    return rest()


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


def read_range(request: Request, version: Version) -> tuple[int, int] | None:
    """The part that is wanted; None for the whole, also where several parts are wanted."""
    found = _RANGE.fullmatch(request.headers.get("range", "").replace(" ", ""))
    if found is None or found.group(1) == found.group(2) == "" or not _still_the_same(request, version):
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


def _still_the_same(request: Request, version: Version) -> bool:
    condition = request.headers.get("if-range")
    if condition is None:
        return True
    return condition.strip() in (f'"{version.sha256}"', http_date(version.captured_at))
