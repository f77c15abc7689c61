"""Server-sent events: what happens, as it happens; a client that comes back goes on where it was."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.features.service.events.log import EventHub, latest_event
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service

EVENT_STREAM: Final = "text/event-stream"
_BEAT_SECONDS: Final = 15.0
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    "/api/v1/events",
    ResponseSpec("A stream that does not end", media_types=(EVENT_STREAM,)),
    Parameter("Last-Event-ID", "continue after this event", where="header"),
    Parameter("after", "the same, if you cannot set a header"),
)
async def stream(request: Request, service: Service) -> Response:
    """Server-sent events: new versions, changes of state, rates of the crawl, as they happen."""
    given = request.headers.get("last-event-id") or request.query_params.get("after")
    if given is not None and not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise HttpProblem(400, "'Last-Event-ID' is the number of an event")
    if request.method == "HEAD":
        return Response(media_type=EVENT_STREAM, headers=_HEADERS)
    service.events.check_room()
    newest = await service.pool.run(lambda db: latest_event(db.session))
    after = newest if given is None else min(int(given), newest)
    return StreamingResponse(_write_events(service.events, after), media_type=EVENT_STREAM, headers=_HEADERS)


async def _write_events(hub: EventHub, after: int) -> AsyncIterator[bytes]:
    with hub.client():
        await hub.begin()
        yield b"retry: 3000\n\n"
        while True:
            for event in await hub.after(after):
                after = event.id
                head = f"id: {after}\nevent: {event.kind}\ndata: "
                yield head.encode() + msgspec.json.encode(event) + b"\n\n"
            if after < hub.latest:
                # Continue behind events that were deleted with their resources.
                after = after if await hub.after(after) else hub.latest
                continue
            await hub.wait(_BEAT_SECONDS)
            if hub.rates is None:
                yield b": still here\n\n"
            else:
                yield b"event: rates\ndata: %s\n\n" % msgspec.json.encode(hub.rates)
