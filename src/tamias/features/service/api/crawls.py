"""Crawls over REST: make, change, try and export them. `frontier` pauses, resumes and stops them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.archive.moments import shown
from tamias.content.formats import JSON_LD, NQUADS, TRIG, TURTLE, suffix_of
from tamias.crawl.commit.deliver import checked
from tamias.crawl.plan.admit import open_frontier, seed_items
from tamias.crawl.plan.policy import CrawlPolicy, crawl_of, overlay, read_policy, write_policy
from tamias.crawl.plan.reopening import Reopened, reopen_widened
from tamias.crawl.verbs.run_policy import RunPolicy, changed_policy
from tamias.crawl.verbs.seed_check import SkippedSeeds, usable_seeds
from tamias.features.service.api.frontier import crawl_number
from tamias.features.service.http.callers import record_of
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec, path_parameter
from tamias.features.service.http.exchange import json_answer, json_body, parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service, verb_environment
from tamias.frontier import crawls as side_by_side
from tamias.frontier.crawls import CrawlState
from tamias.frontier.service import found_crawl
from tamias.model.errors import ConfigError
from tamias.model.item import Seed
from tamias.plugins import find, verbs
from tamias.seeds.files import sent_seeds
from tamias.settings import Resolved, Settings, all_settings

LARGEST_REQUEST: Final = 4 << 20
MOST_LOOKED_AT: Final = 50
"""Seeds that a dry run asks the servers of."""
LOOK_SECONDS: Final = 20.0
MOST_EXPORTS: Final = 2
"""At once."""
_PIECE: Final = 64 * 1024
EXPORT_TYPES: Final = {"nquads": NQUADS, "trig": TRIG, "turtle": TURTLE, "jsonld": JSON_LD}
_KEYS: Final = {
    **{name: f"crawl.{name}" for name in ("depth", "max_urls", "max_time", "requisites", "sinks")},
    **{name: f"filters.{name}" for name in ("scope", "include", "exclude")},
    "delay": "fetch.delay",
}
_NO_LIMIT: Final = {"crawl.depth": -1, "crawl.max_urls": 0, "crawl.max_time": 0}


class CrawlOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a crawl, named as the flags of `tamias crawl`; null: as it is."""

    depth: int | None = None
    """Steps from a seed; -1: no limit."""
    scope: Literal["any", "host", "domain", "prefix"] | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    max_urls: int | None = None
    """In a run; 0: no limit."""
    max_time: float | None = None
    """Seconds of a run; 0: no limit."""
    delay: float | None = None
    """Seconds between requests to one queue, not less than the service's own."""
    requisites: bool | None = None
    sinks: tuple[str, ...] | None = None
    """Without targets, such as `archive` and `warc`."""


class CrawlRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seeds and options of a crawl."""

    seeds: list[str] = []
    """Lines as in a file for `tamias crawl --seeds`."""
    options: CrawlOptions = CrawlOptions()
    start: bool = False
    """Whether the service works on it from now on."""


class CrawlEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a request on a crawl."""

    skipped: list[str]
    """Seeds that cannot be crawled, with the reasons."""
    changes: list[str]
    """Options that are others than before."""
    reopened: list[Reopened]
    """URLs that are visited again, by the option that allows it."""


class CrawlChange(CrawlEffect, frozen=True, kw_only=True):
    """The effect of a change."""

    crawl: str
    state: str
    new: int
    """Seeds that were not known."""


class DryRun(CrawlEffect, frozen=True, kw_only=True):
    """The effect that a change would have, and what would be fetched first."""

    fetch: list[str]
    """Seeds that would be fetched."""
    refused: dict[str, str]
    """Seeds that would not be fetched, with the reasons."""
    not_looked_at: int
    """Seeds beyond those whose robots.txt was asked for."""
    open: int
    """URLs that earlier runs left."""


class CrawlDetails(CrawlState, frozen=True, kw_only=True):
    """A crawl, its figures and its options."""

    options: CrawlOptions
    """Of sinks the names, without targets."""


class CrawlPlan(msgspec.Struct, frozen=True):
    """The plan of a crawl: what is to hold for it, and what it is to visit."""

    name: str
    number: int | None
    """None: it is new."""
    policy: RunPolicy
    seeds: list[Seed]
    skipped: SkippedSeeds


ENDPOINTS = EndpointTable()
_NAME = path_parameter("name", "the name of the crawl")


@ENDPOINTS.get("/api/v1/crawls/{name}", ResponseSpec("The crawl", CrawlDetails), _NAME)
async def show(request: Request, service: Service) -> Response:
    """A crawl: state, figures, options."""
    return json_answer(request, await service.pool.run(partial(details, name=request.path_params["name"])))


@ENDPOINTS.post(
    "/api/v1/crawls/{name}",
    {200: ResponseSpec("Changed", CrawlChange), 201: ResponseSpec("Made", CrawlChange)},
    _NAME,
    body=CrawlRequest,
    scope="crawl",
)
async def change(request: Request, service: Service) -> Response:
    """Make a crawl, or change one: seeds are added, options replaced, and wider ones open what they allow."""
    name, wanted = await _request(request)
    is_new, changed = await change_crawl(service, name, wanted)
    return json_answer(request, changed, 201 if is_new else 200)


@ENDPOINTS.post(
    "/api/v1/crawls/{name}/dry-run",
    ResponseSpec("What it would do", DryRun),
    _NAME,
    body=CrawlRequest,
    scope="crawl",
)
async def dry_run(request: Request, service: Service) -> Response:
    """Show what a crawl would fetch, and why the rest is skipped; only robots.txt is requested."""
    return json_answer(request, await try_crawl(service, *await _request(request)))


@ENDPOINTS.get(
    "/api/v1/crawls/{name}/export",
    ResponseSpec("RDF", media_types=tuple(EXPORT_TYPES.values())),
    _NAME,
    Parameter("format", "the format; by default nquads", {"enum": [*EXPORT_TYPES]}),
    for_people=True,
)
async def export(request: Request, service: Service) -> Response:
    """Write the documents of a crawl, each in a named graph, as `tamias export --crawl` does."""
    name, form = request.path_params["name"], parameter(request, "format") or "nquads"
    if form not in EXPORT_TYPES:
        raise HttpProblem(400, f"'format' must be one of {', '.join(EXPORT_TYPES)}")
    if "export" not in verbs():
        raise HttpProblem(404, "this service runs without the feature 'exports'")
    await service.pool.run(partial(crawl_number, name=name))
    if service.parts.get("exports", 0) >= MOST_EXPORTS:
        raise HttpProblem(
            503, f"{MOST_EXPORTS} exports are under way; try again later", {"Retry-After": "60"}
        )
    return StreamingResponse(
        _exported(service, name, form),
        media_type=EXPORT_TYPES[form],
        headers={"Content-Disposition": f'attachment; filename="crawl{suffix_of(EXPORT_TYPES[form])}"'},
    )


async def _request(request: Request) -> tuple[str, CrawlRequest]:
    record_of(request).targets.append(request.path_params["name"])
    return request.path_params["name"], await json_body(request, CrawlRequest, LARGEST_REQUEST)


async def _exported(service: Service, name: str, form: str) -> AsyncIterator[bytes]:
    """Yield what the verb writes, in a process of its own; an error ends the response early."""
    service.parts["exports"] = service.parts.get("exports", 0) + 1
    process = None
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tamias", "export", f"--crawl={name}", "--format", form, "-q",
            env=verb_environment(service.data, service.db),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        while piece := await process.stdout.read(_PIECE):
            yield piece
        if status := await process.wait():
            raise HttpProblem(500, f"the export of the crawl {name!r} ended with {status}")
    finally:
        service.parts["exports"] -= 1
        if process is not None and process.returncode is None:
            process.kill()


async def change_crawl(service: Service, name: str, wanted: CrawlRequest) -> tuple[bool, CrawlChange]:
    """Make or change a crawl; return whether it is new, and what was changed."""
    plan = await _planned(service, name, wanted)
    return plan.number is None, await service.pool.run(partial(_carry_out, plan=plan, start=wanted.start))


async def try_crawl(service: Service, name: str, wanted: CrawlRequest) -> DryRun:
    """Look at the seeds of a crawl; nothing is changed."""
    if (read_earlier := find("crawl_options", "earlier-runs")) is None:
        raise HttpProblem(404, "this service runs without the feature 'dry_run'")
    plan = await _planned(service, name, wanted)
    earlier = await service.pool.run(
        lambda db: read_earlier(db.session, plan.policy, plan.seeds, plan.number)
    )
    fetch: list[str] = []
    refused: dict[str, str] = {}
    # Names are resolved there, which blocks.
    await asyncio.to_thread(asyncio.run, _look(plan, earlier, fetch, refused))
    return DryRun(
        fetch=fetch,
        refused=refused,
        skipped=plan.skipped.sentences(),
        not_looked_at=len(plan.seeds) - len(fetch) - len(refused),
        changes=plan.policy.changes,
        reopened=list(earlier.reopened),
        open=earlier.open,
    )


def details(db: ServiceSession, name: str) -> CrawlDetails:
    """Return a crawl with its options. Raises `HttpProblem` where there is none of the name."""
    number = crawl_number(db, name)
    found = next(each for each in side_by_side.crawls(db.session) if each.number == number)
    values = read_policy(db.session, number).values()
    options = {word: values.get(key) for word, key in _KEYS.items()}
    options["sinks"] = [each.partition(":")[0] for each in options["sinks"] or ()]
    return shown(CrawlDetails, found, options=msgspec.convert(options, CrawlOptions))


async def _planned(service: Service, name: str, wanted: CrawlRequest) -> CrawlPlan:
    try:
        return await service.pool.run(partial(_plan, name=name, own=service.settings, wanted=wanted))
    except ConfigError as error:
        raise HttpProblem(400, str(error)) from error


def _plan(db: ServiceSession, name: str, own: Settings, wanted: CrawlRequest) -> CrawlPlan:
    """Check all that is wanted; nothing is changed."""
    if not name.isprintable() or name != name.strip() or "/" in name:  # it is part of addresses
        raise HttpProblem(400, "the name of a crawl is printable, without / and without spaces at its ends")
    number = crawl_of(db.session, name) if found_crawl(db.session, name) else None
    known = CrawlPolicy() if number is None else read_policy(db.session, number)
    listed = list(sent_seeds("\n".join(wanted.seeds).encode("utf-8", "replace")))
    near = [each for each in listed if each.problem is None]
    if number is None and not listed:
        raise HttpProblem(400, "a new crawl needs seeds: name at least one")
    policy = changed_policy(known, partial(_resolved, own), _flags(wanted.options, own), near)
    skipped = SkippedSeeds()
    seeds = usable_seeds(policy.settings, listed, skipped)
    return CrawlPlan(name, number, policy, seeds, skipped)


def _flags(options: CrawlOptions, own: Settings) -> dict[str, Any]:
    """Return options as flags. Raises `HttpProblem` for those that only the operator may set."""
    if options.delay is not None and options.delay < own.fetch.delay:
        raise HttpProblem(400, f"'delay' may not be less than that of the service, {own.fetch.delay:g} s")
    if any(":" in each for each in checked(options.sinks or ())):
        raise HttpProblem(400, "a sink with a target is set by 'tamias crawl --sink' only")
    named = ((word, value) for word, value in msgspec.structs.asdict(options).items() if value is not None)
    return {_KEYS[word].replace(".", "__"): value for word, value in named}


def _resolved(own: Settings, **flags: Any) -> Resolved:
    """Return the settings of the service with some replaced."""
    values = {key.replace("__", "."): value for key, value in flags.items()}
    values |= {key: None for key, no_limit in _NO_LIMIT.items() if values.get(key) == no_limit}
    origins = {each.key: "flag" if each.key in values else "default" for each in all_settings()}
    return Resolved(overlay(own, values), origins)


def _carry_out(db: ServiceSession, plan: CrawlPlan, *, start: bool) -> CrawlChange:
    session, number = db.session, crawl_of(db.session, plan.name)
    if plan.number is None:
        side_by_side.stop(session, number)  # nobody works on it before it is whole
    policy = plan.policy.policy
    in_service = policy.in_service or plan.number is None
    write_policy(session, msgspec.structs.replace(policy, in_service=in_service), number)
    frontier = open_frontier(session, plan.policy.settings)
    new = frontier.put(seed_items(plan.policy.settings, plan.seeds, number))
    reopened = reopen_widened(session, frontier, number)
    if start:
        side_by_side.resume_in_service(session, number)
    return CrawlChange(
        crawl=plan.name,
        state=details(db, plan.name).state,
        new=new,
        skipped=plan.skipped.sentences(),
        changes=plan.policy.changes,
        reopened=reopened,
    )


async def _look(plan: CrawlPlan, earlier: Any, fetch: list[str], refused: dict[str, str]) -> None:
    """Ask the servers of the first seeds, as long as there is time."""
    prospects = find("crawl_options", "prospects")
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            async for each in prospects(plan.policy, plan.seeds[:MOST_LOOKED_AT], earlier):
                if each.refusal is None:
                    fetch.append(each.url)
                else:
                    refused[each.url] = each.refusal
