"""The form to watch an address."""

from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import rfc3339
from tamias.archive.versions.resources import read_resources
from tamias.cli.console.options import duration
from tamias.features.pages.html.charts import clock
from tamias.features.pages.html.forms import check_form, form_caller, form_fields
from tamias.features.pages.html.page import html_page, page
from tamias.features.pages.queries import Record, place_of_host
from tamias.features.service.api import resources
from tamias.features.service.api.resources import NewResource
from tamias.features.service.http.callers import record_of
from tamias.features.service.http.exchange import parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.history import id_of_url
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.resource import Resource
from tamias.model.url import authority, fetch_url, host, is_address
from tamias.permit.robots import Rules


def account(db: ServiceSession, typed: str) -> Record:
    """Return what will happen to an address as it was typed: in order, or why it is refused."""
    found: Record = {"url": typed, "host": "", "refused": None, "dataset": None, "said": []}
    if not is_address(typed):
        return {**found, "refused": "not a valid URL"}
    url = fetch_url(typed)
    found |= {"url": url, "host": host(url), "refused": db.admission.watch_refusal(url)}
    if found["refused"]:
        return found
    known = next(iter(read_resources(db.session, [id_of_url(db, url)])), None)
    said = [_first(known), _robots(db, url), _pace(db, url), _later(known)]
    return {**found, "dataset": known and known.id, "said": said}


def _first(known: Resource | None) -> str:
    if known is None:
        return "It is not watched yet. The first visit comes as soon as politeness allows."
    versions = "1 version" if known.versions == 1 else f"{known.versions:,} versions"
    if known.state == "stopped":
        return f"It was watched before and has {versions}. Adding it again begins with a visit."
    if known.next_visit is None:
        return f"It is watched, with {versions}. Its next visit comes as soon as politeness allows."
    planned = clock(rfc3339(known.next_visit))
    return f"It is watched, with {versions}. The next visit is planned for {planned} UTC."


def _robots(db: ServiceSession, url: str) -> str:
    place = place_of_host(db, host(url))
    found = db.rows("robots", place) if place else []
    rules = next((packed for name, _, _, packed in found if name == authority(url)), None)
    if not db.settings.permit.robots:
        return "This service does not use robots.txt."
    if rules is None:
        return "The server's robots.txt is read first. If it forbids the address, nothing is fetched."
    verdict = msgspec.msgpack.decode(rules, type=Rules).verdict(url)
    if verdict.allowed:
        return f"The server's robots.txt allows it ({verdict.rule})."
    return f"The server's robots.txt forbids it ({verdict.rule}). It is not fetched unless that changes."


def _pace(db: ServiceSession, url: str) -> str:
    place = place_of_host(db, host(url))
    found: list[tuple[Any, ...]] = db.rows("politeness", place) if place else []
    if not found:
        return f"The host is new. Requests to it are {db.settings.fetch.delay:g} seconds apart."
    _, delay_ms, blocked_until, _, waiting = found[0]
    pause = blocked_until - db.session.now()
    peace = f" It is paused for another {duration(pause / 1000)}." if pause > 0 else ""
    return (
        f"Requests to the host are at least {delay_ms / 1000:g} seconds apart. "
        f"{'1 address is' if waiting == 1 else f'{waiting} addresses are'} queued.{peace}"
    )


def _later(known: Resource | None) -> str:
    if known is not None and known.state == "stopped":
        return "Its title and format stay as they are."
    if known is not None:
        return "Its title and format stay as they are. Adding it again fetches nothing."
    return (
        "Every version is stored unchanged. It is visited again after some days, then more often "
        "if it changes often and less often if it does not."
    )


_LONGEST_URL = 4096


_FIELDS = ("url", "kind", "title", "format")
_EMPTY: Record = {**dict.fromkeys(_FIELDS, ""), "error": None, "done": None, "account": None}


@page("/add", "add.html", data="/openapi.json", elsewhere=True)
async def add(request: Request, service: Service) -> Record:
    """The form, with what will happen to the address that `url` names."""
    given = {name: (parameter(request, name) or "").strip() for name in ("url", "title", "kind")}
    preview = await service.pool.run(lambda db: account(db, given["url"])) if given["url"] else None
    return {**_EMPTY, **given, "account": preview}


async def adding(request: Request, service: Service) -> Response:
    """Watch what the form names, or say what would happen."""
    fields = await form_fields(request)
    shown = {**_EMPTY, **{name: fields.get(name, "") for name in _FIELDS}}
    status, said = await _added(request, fields, service)
    record_of(request).reason = said.get("error") or ""
    return html_page(request, add, {**shown, **said}, status)


async def _added(request: Request, fields: dict[str, str], service: Service) -> tuple[int, Record]:
    """The status and the form. What will happen is told to all; what has happened only with the secret."""
    url = fields.get("url", "")
    if fields.get("only") == "account":
        return 200, {"account": await service.pool.run(lambda db: account(db, url[:_LONGEST_URL]))}
    if await form_caller(request, fields, service) is None:
        return 403, {"error": "Sign in first. Nothing was added."}
    try:
        new = msgspec.convert({name: fields.get(name) or None for name in _FIELDS}, NewResource)
    except msgspec.ValidationError:
        return 400, {"error": "The address must have 1 to 4096 characters. Nothing was added."}
    try:
        await check_form(request, service, "add", [url])
        resources.check_sources(request, [new])
    except HttpProblem as refusal:
        return 403, {"error": f"Nothing was added: {refusal.detail}."}
    taken = await service.pool.run(partial(resources.add_wanted, wanted=[new]))
    if taken.refused:
        return 422, {"error": f"The address was not added: {taken.refused[0].reason}."}
    done = "It is watched now." if taken.new else "It was already watched."
    if new.kind:
        done += " Its datasets appear when it has been read."
    said = await service.pool.run(lambda db: account(db, new.url))
    emptied = {"url": "", "title": "", "format": ""}
    return 201 if taken.new else 200, {**emptied, "done": done, "account": said}
