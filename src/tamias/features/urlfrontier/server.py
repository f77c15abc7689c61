"""The service as a whole: routes, token and scopes, TLS, start and stop; with health and reflection."""

import asyncio
import contextlib
import gc
import hmac
import logging
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from tamias.access.audit import record
from tamias.crawl.plan.forgotten_urls import ForgottenUrls
from tamias.database.connect import Database
from tamias.features.remote_workers.grpc import connection
from tamias.features.remote_workers.grpc.connection import CallError, Code, message, refusal
from tamias.features.remote_workers.registry import WorkerRegistry
from tamias.features.remote_workers.wire import CALLS as WORKER_CALLS
from tamias.features.tokens.tokens import OWNER, SCOPES, AccessScope, Caller, caller_with, is_token
from tamias.features.urlfrontier.control import Answerer, ControlCalls, Gets
from tamias.features.urlfrontier.grpc.http2 import Call, Connections, Http2Connection
from tamias.features.urlfrontier.puts import Puts, parsed
from tamias.features.urlfrontier.reading import Addresses
from tamias.features.urlfrontier.session_threads import FrontierThreads
from tamias.features.urlfrontier.workers import Workers
from tamias.frontier import service
from tamias.frontier.lease_filter import LeaseFilter
from tamias.frontier.service import is_active
from tamias.model.errors import ConfigError, TamiasError
from tamias.settings import Settings

SERVICES = (
    connection.FRONTIER,
    connection.WORKERS,
    connection.HEALTH,
    connection.REFLECTION,
    connection.REFLECTION_ALPHA,
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
        sent, is_known = None, wanted.service in ("", *SERVICES)
        try:
            while True:
                state = await self._state() if is_known else _UNKNOWN
                if state != sent:
                    await call.send([_HEALTH(status=state).SerializeToString()])
                    sent = state
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            self._watchers -= 1

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
            for name in SERVICES:
                answer.list_services_response.service.add(name=name)
        elif kind == "file_by_filename":
            _describe(answer, connection.FILES[request.file_by_filename])
        elif kind == "file_containing_symbol":
            symbol = request.file_containing_symbol.replace("v1alpha", "v1")
            _describe(answer, connection.file_of(symbol))
        else:
            _refuse(answer, Code.UNIMPLEMENTED, "there are no extensions")
    except KeyError:
        _refuse(answer, Code.NOT_FOUND, "there is no such name")
    return answer.SerializeToString()  # type: ignore[no-any-return]


def _describe(answer: Any, described: Any) -> None:
    answer.file_descriptor_response.file_descriptor_proto.append(described.SerializeToString())


def _refuse(answer: Any, code: Code, sentence: str) -> None:
    answer.error_response.error_code, answer.error_response.error_message = int(code), sentence


EVERYBODY: Final = "everybody"
NOBODY = Caller("nobody", frozenset())
ANYBODY = Caller("anybody", frozenset(SCOPES))
"""Who calls a service that has no token."""

_BY_SCOPE: dict[AccessScope, tuple[str, ...]] = {
    "read": (
        *("ListNodes", "ListCrawls", "ListQueues", "GetStats", "GetActive", "GetURLStatus", "CountURLs"),
        "ListURLs",
    ),
    "add": ("PutURLs", "PutDiscovered"),
    "crawl": ("GetURLs", "BlockQueueUntil", "SetActive", "SetDelay", "SetCrawlLimit"),
    "admin": ("DeleteCrawl", "DeleteQueue", "PurgeURLs", "SetLogLevel"),
}
CALL_SCOPES: dict[str, AccessScope | Literal["everybody"]] = {
    **{f"/{connection.FRONTIER}/{name}": scope for scope, names in _BY_SCOPE.items() for name in names},
    **{f"/{connection.WORKERS}/{name}": "crawl" for name in (*WORKER_CALLS, "Deliver")},
    **{f"/{connection.HEALTH}/{name}": EVERYBODY for name in ("Check", "Watch")},
    **{
        f"/{name}/ServerReflectionInfo": "read"
        for name in (connection.REFLECTION, connection.REFLECTION_ALPHA)
    },
}
"""A call that is not named here is refused."""

NOTED_CALLS = frozenset(
    f"/{connection.FRONTIER}/{name}"
    for name in (*_BY_SCOPE["admin"], "BlockQueueUntil", "SetActive", "SetDelay", "SetCrawlLimit")
)
"""Those in the audit log. What crawlers and workers put and get, many times a second, is not."""


_log = logging.getLogger(__name__)
_ANNOUNCE_SECONDS = 20.0
_STOP_SECONDS = 3.0
_SWEEP_SECONDS = 2.0
_HANDSHAKE_SECONDS = 10.0
_COLLECTED_AFTER = 20_000
"""Objects; with Python's own 700 the collector takes a fifth of what a put takes in Python."""
_SWITCHED_AFTER = 0.0003
"""Seconds that a thread with an answer of the database waits for one that computes; with Python's own 5 ms,
a transaction of five statements waits for longer than the database works."""

_NAMES = ("key", "crawlID", "value", "package")
"""Fields of calls that name what they concern: a queue, a crawl, a logger."""

Route = Callable[[Call], Awaitable[None]]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the service: its address, its secrets and its size."""

    host: str = "127.0.0.1"
    port: int = 7071
    token: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    threads: int = 4
    connections: int = 1000
    connections_of_one_address: int = 500
    session_names: frozenset[str] = frozenset()
    data: Path = Path("tamias-data")
    """Where the segments of what workers deliver are kept."""
    own: Settings = Settings()
    """The settings of this machine; what a crawl may do stands in its row."""
    lease_filter: LeaseFilter = LeaseFilter()
    """Its section of the frontier, and its interest."""
    shared_politeness: bool = False
    """Whether crawls that clients make share the delays, blocks and windows of hosts with all others."""
    unsynced: frozenset[str] = frozenset()
    """Crawls whose changes by clients are answered before they are on disk."""


class FrontierServer:
    """An instance of the service; any number may run on one database."""

    def __init__(self, database: Database, options: Options) -> None:
        self._options = options
        self._addresses = Addresses(options.session_names)
        self._threads = FrontierThreads(database, self._addresses.same, options.threads, options.lease_filter)
        self._registry = WorkerRegistry(
            database,
            options.data,
            options.own,
            lambda work: self._threads.run(lambda db: work(db.session)),
            options.lease_filter,
        )
        self._health = HealthService(FrontierThreads(database, self._addresses.same, 1))
        self._routes = self._routed()
        self._connections = Connections(options.connections, options.connections_of_one_address)
        self.address = ""
        """Where it listens: host and port."""

    async def run(self, ready: Callable[[str], None], stop: asyncio.Event) -> None:
        """Serves until `stop` is set; calls `ready` with its address once it listens."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Http2Connection(self._dispatch, self._connections),
            sock=self._listening(),
            **_tls(self._options),
        )
        async with server:
            announcement = loop.create_task(self._announce(stop))
            sweep = loop.create_task(self._sweep())
            ready(self.address)
            await stop.wait()
            server.close()
            await self._stop()
            await self._registry.close()
            await announcement
            sweep.cancel()
        with contextlib.suppress(TamiasError):
            await self._threads.run(lambda db: service.leave(db.session, self.address))
        self._threads.close()
        self._health.close()

    def _listening(self) -> socket.socket:
        host, port = self._options.host, self._options.port
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            listening = socket.create_server((host, port), family=family, backlog=1024)
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        shown = f"[{host}]" if ":" in host else host
        self.address = f"{shown}:{listening.getsockname()[1]}"
        return listening

    async def _dispatch(self, call: Call) -> None:
        route = self._routes.get(call.path)
        scope = CALL_SCOPES.get(call.path)
        caller = NOBODY if scope == EVERYBODY else await self._caller(call)
        if route is None:
            raise CallError(Code.UNIMPLEMENTED, f"there is no call {call.path[:200]}")
        if scope is None or (scope != EVERYBODY and (caller.bounds or not caller.may(scope))):
            denial = CallError(
                Code.PERMISSION_DENIED,
                f"the token '{caller.name}' needs the scope '{scope}', and no bounds, for {call.path}",
            )
            if scope != "read":
                await self._note(caller, call, _outcome(denial))
            raise denial
        if call.path not in NOTED_CALLS:
            await route(call)
            return
        try:
            await route(call)
        except (Exception, asyncio.CancelledError) as error:  # a client that left may have changed something
            await self._note(caller, call, _outcome(error))
            raise
        await self._note(caller, call, "ok")

    async def _note(self, caller: Caller, call: Call, outcome: str) -> None:
        """Writes a call into the audit log. It is over: where that fails, its caller is told how it ended."""
        data, what = self._options.data, f"gRPC {call.path.rpartition('/')[2]}"
        try:
            await self._threads.run(
                lambda db: record(db.session, data, caller.name, what, call.targets, outcome)
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the call was answered
            _log.error("cannot write the audit log: %s by '%s': %s", what, caller.name, error)

    async def _caller(self, call: Call) -> Caller:
        """Return the caller by the service's token or a named one; anybody if the service has none."""
        wanted = self._options.token
        if wanted is None:
            return ANYBODY
        given = call.metadata.get("authorization", "")
        if hmac.compare_digest(given.encode(), f"Bearer {wanted}".encode()):
            return OWNER
        named = given.removeprefix("Bearer ")
        if is_token(named):
            caller = await self._threads.run(lambda db: caller_with(db.session, named))
            if caller is not None:
                return caller
        raise CallError(Code.UNAUTHENTICATED, "this service requires a token: authorization: Bearer TOKEN")

    def _routed(self) -> dict[str, Route]:
        workers = Workers(self._registry, self._threads)
        forgotten = ForgottenUrls(self._options.session_names)
        gets = Gets(self._threads, workers.lend, forgotten, self._options.unsynced)
        puts = Puts(
            self._threads,
            self._addresses,
            forgotten,
            shared_politeness=self._options.shared_politeness,
            unsynced=self._options.unsynced,
        )
        streams: dict[str, Route] = {
            f"/{connection.FRONTIER}/PutURLs": puts.put_urls,
            f"/{connection.FRONTIER}/PutDiscovered": puts.put_discovered,
            f"/{connection.FRONTIER}/GetURLs": gets.get_urls,
            f"/{connection.FRONTIER}/ListURLs": gets.list_urls,
            f"/{connection.HEALTH}/Check": self._health.check,
            f"/{connection.HEALTH}/Watch": self._health.watch,
            f"/{connection.REFLECTION}/ServerReflectionInfo": reflect,
            f"/{connection.REFLECTION_ALPHA}/ServerReflectionInfo": reflect,
        }
        types = connection.method_types(connection.FRONTIER)
        answers = ControlCalls(self._addresses).answerers().items()
        single = {
            f"/{connection.FRONTIER}/{name}": self._single(types[name][0], answerer)
            for name, answerer in answers
        }
        return {**single, **streams, **workers.routes()}

    def _single(self, kind: Any, answerer: Answerer) -> Route:
        async def route(call: Call) -> None:
            params = parsed(kind, await call.one())
            call.targets = [name for field in _NAMES if (name := getattr(params, field, ""))]
            answer = await self._threads.run(lambda db: answerer(db, params))
            await call.send([answer.SerializeToString()])

        return route

    async def _announce(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self._threads.run(lambda db: service.announce(db.session, self.address))
            except TamiasError as error:
                _log.warning("cannot record that this instance is alive: %s", error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _ANNOUNCE_SECONDS)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self._connections.sweep()

    async def _stop(self) -> None:
        """Refuse new calls, and give those under way some seconds."""
        tasks = [task for each in self._connections for task in each.tasks()]
        for each in self._connections:
            each.go_away()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)
        for each in list(self._connections):
            each.close()


def _outcome(error: BaseException) -> str:
    if isinstance(error, TamiasError):
        error = refusal(error)
    return f"{error.code.name} {error}" if isinstance(error, CallError) else type(error).__name__


def serve(database: Database, options: Options, ready: Callable[[str], None]) -> None:
    """Runs one instance until a signal ends it."""
    import uvloop

    _allow_open_files(options.connections)
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER)
    sys.setswitchinterval(_SWITCHED_AFTER)
    uvloop.run(_until_signal(database, options, ready))


def _allow_open_files(connections: int) -> None:
    """Raises the limit of open files where it is below what the connections take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _until_signal(database: Database, options: Options, ready: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    serving = asyncio.create_task(FrontierServer(database, options).run(ready, stop))
    await asyncio.wait([serving, asyncio.create_task(stop.wait())], return_when="FIRST_COMPLETED")
    database.outage.give_up(_STOP_SECONDS)
    await serving


def _tls(options: Options) -> dict[str, Any]:
    if options.certificate is None:
        return {}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(options.certificate, options.key)
    except (OSError, ssl.SSLError) as error:
        advice = "" if options.key else "; name its key too, with --tls-key"
        raise ConfigError(f"cannot use the certificate {options.certificate}: {error}{advice}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    return {"ssl": context, "ssl_handshake_timeout": _HANDSHAKE_SECONDS}
