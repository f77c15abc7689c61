"""Make and steer crawls: their list with the form of a new one, and the forms of the page of a crawl."""

from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.cli.console.options import queue_units
from tamias.features.pages.crawl.crawl import crawl, crawl_form, show_again
from tamias.features.pages.html.page import html_page, page, table_of
from tamias.features.pages.queries import Record
from tamias.features.service.api.crawls import CrawlOptions, CrawlRequest, change_crawl, try_crawl
from tamias.features.service.api.frontier import crawl_number, crawl_states
from tamias.features.service.http.callers import record_of
from tamias.features.service.http.problems import problem_of
from tamias.features.service.service import Service
from tamias.frontier.crawls import end_run, pause, resume_in_service

STEERING = "/crawl/{name}/steer"
_ACTIONS = {"pause": pause, "resume": resume_in_service, "stop": end_run}
_SINKS = ("archive", "warc")
_NO_LIMIT = {"depth": "-1", "max_urls": "0", "max_time": "0"}
_EXISTS: str | None = "a crawl of this name exists; choose another name, or change it on its page"
_FIELDS = {"name": "", "seeds": "", "scope": "host", "depth": "3", "max_urls": "10000", "delay": ""}
_EMPTY: Record = {"trial": None, "error": None, "fields": _FIELDS}


@page("/crawls", "crawls.html", table=table_of("crawls", "name", "state", "hosts", "known", "open"))
async def crawls(_: Request, service: Service) -> Record:
    """List all crawls, beside the form of a new one."""
    states = await service.pool.run(crawl_states)
    return {**_EMPTY, "crawls": states, "unit": queue_units(service.settings.frontier.queue)}


async def making(request: Request, service: Service) -> Response:
    """Make a crawl and start it, or show what it would do."""
    name, fields = await crawl_form(request, service)
    if name in [each.name for each in await service.pool.run(crawl_states)]:
        status, found, error = 409, None, _EXISTS
    else:
        status, found, error = await _sent(request, service, name, fields)
    if found is not None and fields.get("do") == "start":
        return show_again(service, name)
    view = {**await crawls.view(request, service), "trial": found, "error": error, "fields": fields}
    return html_page(request, crawls, view, status)


async def steering(request: Request, service: Service) -> Response:
    """Pause, resume or stop a crawl; or change its options and add seeds, or show what that would do."""
    name, fields = await crawl_form(request, service)
    number = await service.pool.run(partial(crawl_number, name=name))
    if (action := _ACTIONS.get(fields.get("do", ""))) is not None:
        await service.pool.run(lambda db: action(db.session, number))
        return show_again(service, name)
    status, found, error = await _sent(request, service, name, fields)
    done = {"trial" if fields.get("do") == "try" else "changed": found}
    service.recent.forget(f"crawl {name}")
    view = {**await crawl.view(request, service), "error": error, **done}
    if error or fields.get("do") == "try":
        view["fields"] = {**view["fields"], **fields}
    return html_page(request, crawl, view, status)


async def _sent(
    request: Request, service: Service, name: str, fields: dict[str, str]
) -> tuple[int, Any, str | None]:
    """Carry out a form: the status, what came of it, and what is wrong with it, if so."""
    try:
        wanted = _request_of(fields)
        if fields.get("do") == "try":
            return 200, await try_crawl(service, name, wanted), None
        _, changed = await change_crawl(service, name, wanted)
    except Exception as error:  # noqa: BLE001 - the page says it
        problem = problem_of(error)
        record_of(request).reason = problem.detail
        return problem.status, None, problem.detail
    return 200, changed, None


def _request_of(fields: dict[str, str]) -> CrawlRequest:
    """Return what a form asks for. Raises `msgspec.ValidationError`."""
    options: dict[str, Any] = {
        each: fields[each].split() for each in ("include", "exclude") if each in fields
    }
    options |= {each: fields[each] or no_limit for each, no_limit in _NO_LIMIT.items() if each in fields}
    options |= {each: fields[each] for each in ("scope", "delay") if fields.get(each)}
    options["requisites"] = fields.get("requisites") == "yes"
    if "name" in fields:
        options["sinks"] = [each for each in _SINKS if fields.get(each) == "yes"]
    return CrawlRequest(
        seeds=fields.get("seeds", "").splitlines(),
        options=msgspec.convert(options, CrawlOptions, strict=False),
        start=fields.get("do") == "start",
    )
