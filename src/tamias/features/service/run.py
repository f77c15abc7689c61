"""Runs the service: the web beside the scheduler and the workers, until somebody says stop."""

import asyncio
import logging
import resource
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path

import msgspec
import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from starlette.types import ASGIApp

from tamias.archive.blobs.store import choose_store
from tamias.archive.tombstones import has_captures_left, under_way
from tamias.crawl.plan.policy import Until, handed_over
from tamias.crawl.revisit.timetable import keep_house
from tamias.crawl.store.progress import CrawlSnapshot
from tamias.crawl.worker.supervisor import Supervisor
from tamias.database.connect import Database
from tamias.database.months import divide_months
from tamias.database.roles import Role
from tamias.features.service.app import application
from tamias.features.service.events.webhooks import Sender
from tamias.features.service.http.callers import VARIABLE, Secret, register_secret
from tamias.features.service.queries.thread_pool import SessionPool
from tamias.features.service.service import Service, verb_environment
from tamias.features.service.sparql.routes import SparqlSide
from tamias.model.errors import TamiasError, UsageError
from tamias.model.faults import refuse_faults
from tamias.model.item import WATCH
from tamias.permit.addresses import is_loopback
from tamias.plugins import find, load_all, verbs
from tamias.settings import ServeSettings, Settings

_log = logging.getLogger(__name__)
HEAD_SECONDS = 10
"""A connection that has sent no whole request head by then is dropped."""
LARGEST_HEAD = 64 * 1024
MOST_CONNECTIONS = 16_384
RESERVED_FILES = 256
"""Open files that are not connections."""
BACK_ROOM_THREADS = 2
"""For what is done beside the requests, as the owner: housekeeping, and signing for webhooks."""
PATIENCE_SECONDS = 5.0
"""How long a request waits for a database that is away."""
SCHEDULE_SECONDS = 600.0
PROFILE_SECONDS = 1.0
"""New versions wait for their profiles so long, and while others are profiled."""
CATALOGUE_PATIENCE_SECONDS = 3.0
"""So long new versions wait at most to be written to the catalogue together with their profiles."""
REPACK_SLOWNESS = 20
"""Seconds that may pass for each that a repack may work; it ends by itself after half as many."""
FORGET_SECONDS = 5.0
"""How often it is looked whether something is to be forgotten."""
FORGET_LONGEST = 6 * 3600.0
HANDED_SECONDS = 1.0
"""How often it is looked whether a crawl was handed over."""
TROUBLE_SECONDS = 60.0
"""Until a crawl that met trouble is tried again."""
GRACE_SECONDS = 3.0
"""For answers that are under way when the service stops."""


_SUMS = ("visited", "put_off", "quads", "bytes", "in_flight", "known", "open", "workers")
Snapshots = dict[int, CrawlSnapshot]
"""The latest of each crawl that the service works on, or has worked on since its start."""
ServiceTask = Callable[[SessionPool, Path, Settings], Coroutine[None, None, None]]
"""Makes what runs beside the service until it is cancelled; an error of settings is raised at once."""


class ServicePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a service."""

    data: Path
    db: str | None
    settings: Settings
    """Of this machine, and for watched resources."""
    host: str
    port: int
    crawl: bool


def check_place(host: str, port: int, secret: Secret) -> None:
    """Raises `UsageError` where it would be rash, or impossible, to listen."""
    if not is_loopback(host):
        refuse_faults(f"serve at {host}")
    if not is_loopback(host) and not secret.chosen:
        raise UsageError(
            f"{host} can be reached by others: choose a secret first ({VARIABLE} or --secret-file FILE)"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            raise UsageError(
                f"cannot listen at {host}:{port}: {error.strerror or error}; choose another port with --port"
            ) from error


def run(plan: ServicePlan, secret: Secret, ready: Callable[[], None]) -> None:
    """Serves until a signal comes; `ready` is called when requests are answered."""
    with ExitStack() as stack:
        settings = msgspec.structs.replace(plan.settings, serve=_addressed(plan))
        patience = CATALOGUE_PATIENCE_SECONDS if plan.crawl else 0.0
        owner = stack.enter_context(closing(_database(plan)))
        registered = stack.enter_context(closing(owner.session()))
        register_secret(registered, secret)
        # Before anything is read: the first body may be stored by another process, later.
        choose_store(registered, settings.archive.store)
        background = stack.enter_context(closing(SessionPool(owner, plan.data, settings, BACK_ROOM_THREADS)))
        sparql = stack.enter_context(closing(SparqlSide(plan.data, owner, settings, patience)))
        database = stack.enter_context(closing(_database(plan, Role.SERVICE)))
        pool = stack.enter_context(closing(SessionPool(database, plan.data, settings)))
        watching = stack.enter_context(closing(_supervisor(plan, WATCH))) if plan.crawl else None
        service = Service(plan.data, settings, pool, secret, sparql=sparql.endpoint, db=plan.db)
        web = application(service)
        uvloop.run(_run(plan, web, service, background, watching, ready))


def _database(plan: ServicePlan, role: Role | None = None) -> Database:
    buckets = plan.settings.frontier.buckets
    return Database(plan.data, plan.db, buckets=buckets, patience=PATIENCE_SECONDS, role=role)


def _addressed(plan: ServicePlan) -> ServeSettings:
    """Return the settings with the address of files: where the service listens, unless it is set."""
    serve = plan.settings.serve
    if serve.address != ServeSettings().address:
        return serve
    host = f"[{plan.host}]" if ":" in plan.host else plan.host
    return msgspec.structs.replace(serve, address=f"http://{host}:{plan.port}")


def _supervisor(plan: ServicePlan, crawl: int) -> Supervisor:
    until = Until.STOPPED if crawl == WATCH else Until.SERVED
    supervisor = Supervisor(plan.data, plan.db, plan.settings, until=until, crawl=crawl)
    supervisor.put_seeds(())
    return supervisor


async def _run(
    plan: ServicePlan,
    app: ASGIApp,
    service: Service,
    background: SessionPool,
    watching: Supervisor | None,
    ready: Callable[[], None],
) -> None:
    tasks: list[ServiceTask] = [*load_all("tasks").values()]
    beside = [asyncio.create_task(task(background, plan.data, plan.settings)) for task in tasks]
    server = web_server(plan.host, plan.port, app)
    server.on_startup(ready)
    web = asyncio.create_task(server.serve())
    other = asyncio.create_task(
        _crawled(plan, service, background, watching) if watching is not None else _stopped()
    )
    sender = Sender(background, allow_private=plan.settings.permit.allow_private)
    own = (sender.run(), _divide_months(background), _forget_often(plan, background))
    beside += [asyncio.create_task(each) for each in own]
    await asyncio.wait([web, other], return_when="FIRST_COMPLETED")
    await _end(*beside)
    other.cancel()
    with suppress(asyncio.CancelledError):
        await other
    if web.done():
        web.result()
        raise TamiasError("the web server ended by itself")
    server.stop()  # type: ignore[no-untyped-call]
    await asyncio.wait([web], timeout=GRACE_SECONDS)
    web.cancel()


async def _end(*tasks: asyncio.Task[None]) -> None:
    """Ends what runs beside the service; an error of one is logged and keeps nothing else from ending."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of the service ended with %s", type(error).__name__, exc_info=error)


async def _stopped() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


async def _crawled(
    plan: ServicePlan, service: Service, background: SessionPool, watching: Supervisor
) -> None:
    """Visits what is watched, works on crawls that were handed over, keeps the schedule, until a signal."""
    snapshots: Snapshots = {}
    service.crawl = lambda: _summed(snapshots.values())
    handed = _work_on_handed(plan, background, snapshots)
    works = (_schedule(background), _repack_often(plan, background), handed)
    tasks = [asyncio.create_task(each) for each in works]
    try:
        await watching.run_until_signal(partial(snapshots.__setitem__, WATCH))
    finally:
        await _end(*tasks)


def _summed(crawls: Collection[CrawlSnapshot]) -> CrawlSnapshot | None:
    """Return the figures of several crawls as those of one."""
    if not crawls:
        return None
    counts = {name: sum(getattr(each, name) for each in crawls) for name in _SUMS}
    outcomes = sum((Counter(each.outcomes) for each in crawls), Counter[str]())
    return msgspec.structs.replace(next(iter(crawls)), **counts, outcomes=dict(outcomes))


async def _work_on_handed(plan: ServicePlan, background: SessionPool, snapshots: Snapshots) -> None:
    """Works on crawls that were handed over to the service, from when that is done until nothing is left."""
    running: dict[int, asyncio.Task[None]] = {}
    try:
        while True:
            with suppress(TamiasError, OSError):
                handed = await background.run(lambda db: handed_over(db.session, db.frontier.buckets))
                for crawl in handed - running.keys():
                    running[crawl] = asyncio.create_task(_work_on(plan, crawl, snapshots))
            await asyncio.sleep(HANDED_SECONDS)
            running = {crawl: task for crawl, task in running.items() if not task.done()}
    finally:
        await _end(*running.values())


async def _work_on(plan: ServicePlan, crawl: int, snapshots: Snapshots) -> None:
    """Works on one crawl by the options of its row. Trouble of its own does not end the service."""
    show = partial(snapshots.__setitem__, crawl)
    try:
        with closing(await asyncio.to_thread(_supervisor, plan, crawl)) as supervisor:
            working = asyncio.create_task(supervisor.run(show))
            try:
                await asyncio.shield(working)
            except asyncio.CancelledError:
                supervisor.stop()
                await working
            show(working.result())
    except (TamiasError, OSError) as error:
        snapshots.pop(crawl, None)
        _log.error("the crawl %d cannot go on: %s", crawl, error)
        await asyncio.sleep(TROUBLE_SECONDS)


async def _schedule(background: SessionPool) -> None:
    """Shares out the visits, looks into new versions and measures, again and again."""
    while True:
        # A full disk is waited for, as workers do.
        with suppress(TamiasError, OSError):
            await background.run(lambda db: keep_house(db.session, db.reader, db.settings))
        for _ in range(round(SCHEDULE_SECONDS / PROFILE_SECONDS)):
            await asyncio.sleep(PROFILE_SECONDS)
            if (profile := find("profilers", "waiting")) is not None:
                with suppress(TamiasError, OSError):
                    while await background.run(lambda db: profile(db.session, db.reader)):
                        pass


async def _divide_months(background: SessionPool) -> None:
    """Create partitions of months, which workers elsewhere may not do."""
    while True:
        with suppress(TamiasError):
            await background.run(lambda db: divide_months(db.session))
        await asyncio.sleep(SCHEDULE_SECONDS)


async def _forget_often(plan: ServicePlan, background: SessionPool) -> None:
    """Finish what is to be forgotten."""
    pause, latest, tried_at = FORGET_SECONDS, 0, float("-inf")
    while "forget" in verbs():
        await asyncio.sleep(FORGET_SECONDS)
        with suppress(TamiasError, OSError):
            left = await background.run(lambda db: under_way(db.session))
            newest = max((each.forgotten for each in left), default=0)
            ruled = await background.run(lambda db: has_captures_left(db.session))
            if not (left or ruled) or (newest <= latest and time.monotonic() - tried_at < pause):
                continue
            # What waits for others is not tried all the time.
            pause = FORGET_SECONDS if newest > latest else min(SCHEDULE_SECONDS, 4 * pause)
            latest, tried_at = newest, time.monotonic()
            await _run_verb(plan, "forget", "--finish", "--json", seconds=FORGET_LONGEST)


async def _repack_often(plan: ServicePlan, background: SessionPool) -> None:
    """Repack old versions beside the schedule, but not in the store of another archive."""
    while plan.settings.archive.repack and "repack" in verbs():
        await asyncio.sleep(SCHEDULE_SECONDS)
        with suppress(TamiasError, OSError):
            if not await background.run(lambda db: db.reader.packs.is_borrowed):
                await _repack(plan)


async def _repack(plan: ServicePlan) -> None:
    """Repack in a separate process, so that requests and visits do not wait."""
    archive = plan.settings.archive
    words = ["--after", str(archive.repack_after), "--max-time", str(archive.repack_seconds)]
    words += ["--captures-months", str(archive.captures_months)]
    await _run_verb(plan, "repack", "--json", *words, seconds=REPACK_SLOWNESS * archive.repack_seconds)


async def _run_verb(plan: ServicePlan, *words: str, seconds: float) -> None:
    """A command on the same data, in a process of its own that ends after so many seconds."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tamias", *words,
        env=verb_environment(plan.data, plan.db),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        process.kill()
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()


def web_server(host: str, port: int, app: ASGIApp) -> Server:
    """The server that every application here is run by."""
    connections = min(MOST_CONNECTIONS, _open_files() - RESERVED_FILES)
    return Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=1000 * HEAD_SECONDS, max_buffer_size=LARGEST_HEAD),
        websockets=False,
        backlog=1024,
        backpressure=max(64, connections),
        log_enabled=False,
        log_access=False,
    )


def _open_files() -> int:
    """Raise the limit of open files and return it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if 0 < most < 65_536 else 65_536
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
