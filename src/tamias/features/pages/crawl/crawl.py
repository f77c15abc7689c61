"""The page of one crawl: how fast it goes, how visits end and why, what waits; forms to open URLs again."""

import asyncio
import time
from collections import Counter, defaultdict
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.archive.moments import rfc3339
from tamias.cli.console.options import queue_units
from tamias.crawl.store.progress import ReasonCounts
from tamias.features.pages.crawl.activity import time_slot
from tamias.features.pages.html.forms import check_form, sent_form
from tamias.features.pages.html.page import page, table_of
from tamias.features.pages.queries import Record, records_of_buckets, rows_of_buckets
from tamias.features.service.api.crawls import EXPORT_TYPES, LARGEST_REQUEST, CrawlOptions, details
from tamias.features.service.api.frontier import crawl_number
from tamias.features.service.http.callers import check_caller
from tamias.features.service.http.problems import HttpProblem, problem_of
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.frontier.crawls import resume_in_service
from tamias.frontier.due import FIRST, Place, ReopenFilter, reopen_visited_page
from tamias.model.capture import Outcome
from tamias.plugins import host_notes, verbs

PATH = "/crawl/{name}/reopen"
_OUTCOMES = {
    each.word: each.value for each in (Outcome.GONE, Outcome.REFUSED, Outcome.FAILED, Outcome.SKIPPED)
}
_WAIT_SECONDS: Final = 1.0
_SHOWN_SECONDS: Final = 600.0
"""How long the page says what was done."""


class Reopening(msgspec.Struct, kw_only=True):
    """URLs of a crawl that are made due again: how many so far, and whether that is all."""

    opened: int = 0
    done: bool = False
    error: str | None = None
    """Why it ended before all were."""


_UnderWay = dict[str, tuple[float, Reopening, asyncio.Task[None]]]


def reopening_of(service: Service, name: str) -> Reopening | None:
    """Return the reopening of a crawl that is under way, or ended lately."""
    under_way: _UnderWay = service.parts.get("reopening", {})
    began, state, _ = under_way.get(name, (0.0, None, None))
    return state if state and not (state.done and time.monotonic() - began > _SHOWN_SECONDS) else None


async def reopening(request: Request, service: Service) -> Response:
    """Make URLs due again that ended so, and show the page again."""
    name, fields = await crawl_form(request, service)
    outcome, reason = _OUTCOMES.get(fields.get("outcome", "")), fields.get("reason", "")
    if outcome is None or not reason:
        raise HttpProblem(400, f"'outcome' is one of {', '.join(_OUTCOMES)}, and 'reason' a text")
    number = await service.pool.run(partial(crawl_number, name=name))
    await _begin(service, name, number, ReopenFilter(outcome=outcome, reason=reason))
    await service.pool.run(lambda db: resume_in_service(db.session, number))
    return show_again(service, name)


async def crawl_form(request: Request, service: Service) -> tuple[str, dict[str, str]]:
    """The crawl that a form is about, and its fields. Raises `HttpProblem` if its sender may not do that."""
    fields, caller = await sent_form(request, service, LARGEST_REQUEST)
    check_caller(caller, "crawl", bounded=False)
    name = request.path_params.get("name") or fields.get("name", "")
    await check_form(request, service, "crawl", [name[:_LONGEST_NAME]])
    return name, fields


def show_again(service: Service, name: str) -> Response:
    """Lead to the page of a crawl, which shows what was changed a moment ago."""
    service.recent.forget(f"crawl {name}")
    return RedirectResponse(f"/crawl/{quote(name, safe='')}", 303)


async def _begin(service: Service, name: str, crawl: int, which: ReopenFilter) -> None:
    """Begins; returns when it is done, or after a moment. Raises `HttpProblem` while another one goes on."""
    known: _UnderWay = service.parts.setdefault("reopening", {})
    before = reopening_of(service, name)
    if before is not None and not before.done:
        raise HttpProblem(
            409, f"URLs of this crawl are being reopened, {before.opened:,} so far; wait for it"
        )
    state = Reopening()
    task = asyncio.create_task(_reopen(service, name, crawl, which, state))
    known[name] = time.monotonic(), state, task
    await asyncio.wait([task], timeout=_WAIT_SECONDS)


async def _reopen(service: Service, name: str, crawl: int, which: ReopenFilter, state: Reopening) -> None:
    """Page by page, each a transaction of its own: nobody else waits long, and what is opened stays so."""
    after: Place | None = FIRST

    def reopen_page(db: ServiceSession, after: Place) -> tuple[int, Place | None]:
        return reopen_visited_page(db.session, db.frontier, crawl, which, after)

    try:
        while after is not None:
            count, after = await service.pool.run(partial(reopen_page, after=after))
            state.opened += count
    except Exception as error:  # noqa: BLE001 - the page says it
        state.error = problem_of(error).detail
    finally:
        state.done = True
        service.recent.forget(f"crawl {name}")


MOST_ATTEMPTS = 20_000
"""The newest, of each bucket: what the figures of the page are made from."""
MOST_SLOTS = 60
MOST_HOSTS = 20
MOST_REASONS = 500
SHOWN_REASONS = 20
_LONGEST_NAME = 255
_SECONDS = 3.0


@page("/crawl/{name}", "crawl.html", table=table_of("slots", "at", "fine", "other", "trouble"))
async def crawl(request: Request, service: Service) -> Record:
    """The crawl as it was a moment ago. Raises `NotArchived`."""
    name = request.path_params["name"]
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise HttpProblem(400, f"the name of a crawl has {_LONGEST_NAME} printable characters at most")
    found = await service.lately(f"crawl {name}", _SECONDS, lambda db: _crawl(db, name))
    shown = {"trial": None, "changed": None, "error": None, "fields": fields_of(found["options"])}
    return {**found, **shown, "reopening": reopening_of(service, name)}


def fields_of(options: CrawlOptions) -> dict[str, str]:
    """Return options as the fields of a form; what has no limit is empty."""
    values = msgspec.structs.asdict(options)
    lines = {name: "\n".join(value) for name, value in values.items() if isinstance(value, tuple)}
    return {name: "" if value in (None, False) else f"{value}" for name, value in {**values, **lines}.items()}


def _crawl(db: ServiceSession, name: str) -> Record:
    number = crawl_number(db, name)
    about = details(db, name)
    values = {"crawl": number, "most": MOST_ATTEMPTS}
    spans = [row for row in rows_of_buckets(db, "crawl_span", **values) if row[2]]
    first, last = min((row[0] for row in spans), default=0), max((row[1] for row in spans), default=0)
    slot = max(1000, (last - first) // MOST_SLOTS + 1)
    attempts = rows_of_buckets(db, "crawl_attempts", **values, first=first, slot=slot) if spans else []
    total = sum(row[2] for row in spans)
    outcomes, depths = _counts(attempts, 2), _counts(attempts, 1)
    hosts = records_of_buckets(db, "crawl_hosts", **values, limit=MOST_HOSTS)
    return {
        **{each: getattr(about, each) for each in ("name", "state", "limit", "known", "open", "options")},
        "queues": about.hosts,
        "unit": queue_units(db.settings.frontier.queue),
        "exports": list(EXPORT_TYPES) if "export" in verbs() else [],
        "attempts": total,
        "first": rfc3339(first) if spans else None,
        "last": rfc3339(last) if spans else None,
        "per_second": total / max(1.0, (last - first) / 1000),
        "statements": sum(row[4] for row in attempts),
        "bytes": sum(row[5] for row in attempts),
        "slot_seconds": slot / 1000,
        "slots": _slots(attempts, first, last, slot),
        "outcomes": {Outcome(each).word: n for each, n in sorted(outcomes.items())},
        "depths": dict(sorted(depths.items())),
        "reasons": _reasons(db, values),
        "notes": host_notes(db.session),
        "hosts": sorted(hosts, key=lambda each: (-each["attempts"], each["host"]))[:MOST_HOSTS],
        "waiting": _waiting(db, number),
    }


def _slots(attempts: list[tuple[int, ...]], first: int, last: int, slot: int) -> list[Record]:
    """Return the outcomes of the attempts in each slot of so many milliseconds."""
    slots: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for place, _, outcome, n, *_ in attempts:
        slots[place][outcome] += n
    return [time_slot(first + n * slot, slots[n]) for n in range((last - first) // slot + 1)]


def _counts(attempts: list[tuple[int, ...]], column: int) -> Counter[int]:
    counts: Counter[int] = Counter()
    for row in attempts:
        counts[row[column]] += row[3]
    return counts


def _reasons(db: ServiceSession, values: dict[str, int]) -> list[Any]:
    counts = ReasonCounts()
    for outcome, reason, n, url in rows_of_buckets(db, "crawl_reasons", **values, limit=MOST_REASONS):
        counts.add(Outcome(outcome).word, reason, url, n)
    return counts.top(SHOWN_REASONS)


def _waiting(db: ServiceSession, number: int) -> list[Record]:
    """Sum up queues that wait for the same thing, with the time when the first of them goes on."""
    found: dict[str, Record] = {}
    for each in records_of_buckets(db, "crawl_waiting", crawl=number, now=db.session.now()):
        if (known := found.setdefault(each["what"], each)) is not each:
            known["queues"] += each["queues"]
            known["urls"] += each["urls"]
            known["until"] = min(filter(None, (known["until"], each["until"])), default=None)
    return sorted(found.values(), key=lambda each: -each["urls"])
