"""The two services that gRPC tools expect everywhere: health and reflection."""

import asyncio
from collections.abc import Iterable
from typing import Any

from tamias.features.remote_workers.grpc import messages
from tamias.features.remote_workers.grpc.connection import CallError, Code
from tamias.features.remote_workers.grpc.messages import message
from tamias.features.urlfrontier.grpc.http2 import Call
from tamias.features.urlfrontier.puts import parsed
from tamias.features.urlfrontier.session_threads import FrontierThreads
from tamias.frontier.service import is_active
from tamias.model.errors import TamiasError

SERVICES = (
    messages.FRONTIER,
    messages.WORKERS,
    messages.HEALTH,
    messages.REFLECTION,
    messages.REFLECTION_ALPHA,
)
_SERVING, _NOT_SERVING, _UNKNOWN = 1, 2, 3
_LOOK_SECONDS = 5.0
_PATIENCE_SECONDS = 5.0
_FRESH_SECONDS = 1.0
"""A look at the database this young is shared."""
MOST_WATCHERS = 500

_HEALTH_REQUEST = message("grpc.health.v1.HealthCheckRequest")
_HEALTH = message("grpc.health.v1.HealthCheckResponse")
_REFLECTION_REQUEST = message("grpc.reflection.v1.ServerReflectionRequest")
_REFLECTED = message("grpc.reflection.v1.ServerReflectionResponse")


class HealthService:
    """A check whether the service can answer, which is whether its database does.

    All who ask share one look at the database, made by a thread that does nothing else: so health can be
    asked for at any rate, also while every other thread is busy.
    """

    def __init__(self, threads: FrontierThreads) -> None:
        """`threads` is its own."""
        self._threads = threads
        self._looked_at = -_FRESH_SECONDS
        self._look: asyncio.Task[int] | None = None
        self._watchers = 0

    def close(self) -> None:
        """Ends its thread."""
        self._threads.close()

    async def check(self, call: Call) -> None:
        """Send the state of now."""
        wanted = parsed(_HEALTH_REQUEST, await call.one())
        if wanted.service not in ("", *SERVICES):
            raise CallError(Code.NOT_FOUND, f"there is no service {wanted.service!r}")
        await call.send([_HEALTH(status=await self._state()).SerializeToString()])

    async def watch(self, call: Call) -> None:
        """Send the state of now, and every change of it."""
        wanted = parsed(_HEALTH_REQUEST, await call.one())
        if self._watchers >= MOST_WATCHERS:
            raise CallError(Code.RESOURCE_EXHAUSTED, f"{MOST_WATCHERS} clients watch already; use Check")
        self._watchers += 1
        try:
            await self._watch(call, known=wanted.service in ("", *SERVICES))
        finally:
            self._watchers -= 1

    async def _watch(self, call: Call, *, known: bool) -> None:
        sent = None
        while True:
            state = await self._state() if known else _UNKNOWN
            if state != sent:
                await call.send([_HEALTH(status=state).SerializeToString()])
                sent = state
            await asyncio.sleep(_LOOK_SECONDS)

    async def _state(self) -> int:
        now = asyncio.get_running_loop().time()
        if self._look is None or (self._look.done() and now - self._looked_at > _FRESH_SECONDS):
            self._looked_at = now
            self._look = asyncio.create_task(self._ask())
        return await asyncio.shield(self._look)

    async def _ask(self) -> int:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._threads.run(lambda db: db.session.transact(is_active))
        except (TamiasError, TimeoutError):
            return _NOT_SERVING
        return _SERVING


async def reflect(call: Call) -> None:
    """Send the names of the services and their descriptions."""
    async for batch in call.batches():
        await call.send(_reflected(parsed(_REFLECTION_REQUEST, each)) for each in batch)


def _reflected(request: Any) -> bytes:
    answer = _REFLECTED(valid_host=request.host, original_request=request)
    kind = request.WhichOneof("message_request")
    try:
        if kind == "list_services":
            _list(answer, SERVICES)
        elif kind == "file_by_filename":
            _describe(answer, messages.FILES[request.file_by_filename])
        elif kind == "file_containing_symbol":
            symbol = request.file_containing_symbol.replace("v1alpha", "v1")
            _describe(answer, messages.file_of(symbol))
        else:
            _refuse(answer, Code.UNIMPLEMENTED, "there are no extensions")
    except KeyError:
        _refuse(answer, Code.NOT_FOUND, "there is no such name")
    return answer.SerializeToString()  # type: ignore[no-any-return]


def _list(answer: Any, services: Iterable[str]) -> None:
    for name in services:
        answer.list_services_response.service.add(name=name)


def _describe(answer: Any, described: Any) -> None:
    answer.file_descriptor_response.file_descriptor_proto.append(described.SerializeToString())


def _refuse(answer: Any, code: Code, sentence: str) -> None:
    answer.error_response.error_code, answer.error_response.error_message = int(code), sentence
