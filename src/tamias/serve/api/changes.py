"""What is new: versions of all resources from the newest to the oldest, as JSON or as an Atom feed."""

import re
from typing import Any, Literal
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import rfc3339
from tamias.serve.answers import Page, page_answer
from tamias.serve.asked import base_of, cursor, limit, parameter, since, until
from tamias.serve.endpoints import PAGED, Answer, Endpoint, Parameter
from tamias.serve.feeds import ATOM, Entry, Feed, atom
from tamias.serve.service import Service

_CURSOR = re.compile(r"([0-9]{1,18})-([0-9a-f]{24})-([0-9]{1,9})")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One version and the resource it is of."""

    kind: Literal["new", "changed", "noise"]
    """`noise`: other bytes, the same content."""
    url: str
    title: str | None
    dataset: str
    id: str
    number: int
    captured_at: str
    sha256: str
    byte_size: int
    media_type: str | None
    download: str


async def as_json(request: Request, service: Service) -> Response:
    """A page of changes; as Atom where the client would rather have that."""
    if ATOM in request.headers.get("accept", "") and "json" not in request.headers.get("accept", ""):
        return await as_atom(request, service)
    changes, after = await _changes(request, service)
    return page_answer(request, changes, after)


async def as_atom(request: Request, service: Service) -> Response:
    """The same as a feed."""
    changes, after = await _changes(request, service)
    base, here = base_of(request), "/api/v1/changes.atom"
    asked = {key: value for key, value in request.query_params.items() if key != "secret"}
    further = f"{base}{here}?{urlencode({**asked, 'cursor': after})}" if after else None
    feed = Feed(
        id="urn:tamias:changes",
        title="What changed in the archive",
        here=f"{base}{here}" + (f"?{urlencode(asked)}" if asked else ""),
        further=further,
        entries=tuple(_entry(change) for change in changes),
    )
    return Response(atom(feed), media_type=ATOM)


async def _changes(request: Request, service: Service) -> tuple[list[Change], str | None]:
    most, after, base = limit(request), cursor(request, _CURSOR), base_of(request)
    at, resource, number = after.groups() if after else (until(request, "until") + 1, "", 0)
    asked = {
        "at": int(at),
        "resource": resource,
        "number": int(number),
        "since": since(request, "since"),
        "host": parameter(request, "host"),
        "portal": parameter(request, "portal"),
        "limit": most,
    }
    rows = await service.desks.ask(lambda desk: desk.rows("changes", asked))
    last = rows[-1] if len(rows) == most else None
    return [_change(row, base) for row in rows], f"{last[2]}-{last[0]}-{last[1]}" if last else None


def _change(row: tuple[Any, ...], base: str) -> Change:
    resource, number, captured_at, digest, size, media_type, _, noise, url, title = row
    return Change(
        kind="new" if number == 1 else "noise" if noise else "changed",
        url=url,
        title=title,
        dataset=f"{base}/api/v1/get/dataset/{resource}",
        id=f"{resource}_{number}",
        number=number,
        captured_at=rfc3339(captured_at),
        sha256=digest,
        byte_size=size,
        media_type=media_type,
        download=f"{base}/api/v1/get/file/id/{resource}_{number}",
    )


def _entry(change: Change) -> Entry:
    said = {"new": "first seen", "changed": "changed", "noise": "other bytes, the same content"}
    return Entry(
        id=f"urn:tamias:version:{change.id}",
        title=f"{change.title or change.url}: version {change.number}",
        updated=change.captured_at,
        page=change.dataset,
        download=change.download,
        media_type=change.media_type,
        byte_size=change.byte_size,
        summary=f"{change.url}: {said[change.kind]}, {change.byte_size} bytes, sha256 {change.sha256}",
    )


_PARAMETERS = (
    Parameter("since", "from this time on: RFC 3339 or YYYYMMDDhhmmss"),
    Parameter("until", "up to this time"),
    Parameter("host", "of this host"),
    Parameter("portal", "of resources that this portal names"),
    *PAGED,
)

ENDPOINTS = [
    Endpoint(
        path="/api/v1/changes",
        handle=as_json,
        about="New versions, from the newest to the oldest",
        parameters=_PARAMETERS,
        answers={200: Answer("Changes", Page[Change], (ATOM,))},
    ),
    Endpoint(
        path="/api/v1/changes.atom",
        handle=as_atom,
        about="The same as an Atom feed",
        parameters=_PARAMETERS,
        answers={200: Answer("A feed", media_types=(ATOM,))},
    ),
]
