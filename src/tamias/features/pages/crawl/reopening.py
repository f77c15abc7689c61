"""Forms by which a signed-in user makes URLs that brought nothing due again.

Of a million URLs that takes minutes: a request waits shortly, the page of the crawl says how far it is.
"""

import asyncio
import time
from functools import partial
from typing import Final
from urllib.parse import quote
from weakref import WeakKeyDictionary

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.archive.reader.library import NotArchived
from tamias.features.pages.html.forms import check_form, form_caller, form_fields
from tamias.features.pages.queries import rows
from tamias.features.service.http.identify import check_caller
from tamias.features.service.http.negotiation import Answer
from tamias.features.service.http.problems import HttpProblem, problem_of
from tamias.features.service.queries.lately import forget_lately
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.frontier.crawls import resume_in_service
from tamias.frontier.due.reopen import FIRST, Place, ReopenFilter, reopen_visited_page
from tamias.model.capture import Outcome

PATH = "/crawl/{name}/reopen"
RESUME_PATH = "/crawl/{name}/resume"
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


_under_way: WeakKeyDictionary[Service, dict[str, tuple[float, Reopening, asyncio.Task[None]]]] = (
    WeakKeyDictionary()
)


def reopening_of(service: Service, name: str) -> Reopening | None:
    """Return the reopening of a crawl that is under way, or ended lately."""
    began, state, _ = _under_way.get(service, {}).get(name, (0.0, None, None))
    return state if state and not (state.done and time.monotonic() - began > _SHOWN_SECONDS) else None


def resuming(service: Service) -> Answer:
    """Return what lets the service work on a crawl, and shows its page again."""

    async def answer(request: Request) -> Response:
        name, _ = await _sent(request, service)
        await service.pool.run(partial(_resume, name=name))
        forget_lately(service, f"crawl {name}")
        return RedirectResponse(f"/crawl/{quote(name, safe='')}", 303)

    return answer


async def _sent(request: Request, service: Service) -> tuple[str, dict[str, str]]:
    """The crawl that a form is about, and its fields. Raises `HttpProblem` if its sender may not do that."""
    fields = await form_fields(request)
    caller = await form_caller(request, fields, service)
    if caller is None:
        raise HttpProblem(403, "sign in first, and send the form from the page of the crawl")
    check_caller(caller, "crawl", bounded=False)
    await check_form(request, service, "crawl", [])
    return request.path_params["name"], fields


def _resume(db: ServiceSession, name: str) -> None:
    resume_in_service(db.session, _number(db, name))


def reopening(service: Service) -> Answer:
    """Return the handler that takes the form and shows the page again."""

    async def answer(request: Request) -> Response:
        name, fields = await _sent(request, service)
        outcome, reason = _OUTCOMES.get(fields.get("outcome", "")), fields.get("reason", "")
        if outcome is None or not reason:
            raise HttpProblem(400, f"'outcome' is one of {', '.join(_OUTCOMES)}, and 'reason' a text")
        crawl = await service.pool.run(partial(_number, name=name))
        await _begin(service, name, crawl, ReopenFilter(outcome=outcome, reason=reason))
        await service.pool.run(partial(_resume, name=name))
        return RedirectResponse(f"/crawl/{quote(name, safe='')}", 303)

    return answer


async def _begin(service: Service, name: str, crawl: int, which: ReopenFilter) -> None:
    """Begins; returns when it is done, or after a moment. Raises `HttpProblem` while another one goes on."""
    known = _under_way.setdefault(service, {})
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
    try:
        while after is not None:
            count, after = await service.pool.run(partial(_page, crawl=crawl, which=which, after=after))
            state.opened += count
    except Exception as error:  # noqa: BLE001 - the page says it
        state.error = problem_of(error).detail
    finally:
        state.done = True
        forget_lately(service, f"crawl {name}")


def _page(db: ServiceSession, crawl: int, which: ReopenFilter, after: Place) -> tuple[int, Place | None]:
    return reopen_visited_page(db.session, db.frontier, crawl, which, after)


def _number(db: ServiceSession, name: str) -> int:
    found = rows(db, "crawl_named", crawl=name)
    if not found:
        raise NotArchived(f"there is no crawl {name!r}; /frontier lists all")
    return int(found[0][0])
