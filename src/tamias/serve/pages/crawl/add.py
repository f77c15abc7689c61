"""The form to watch an address."""

from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.serve.access.identify import note_reason
from tamias.serve.api import resources
from tamias.serve.api.resources import NewResource
from tamias.serve.http.params import parameter
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.secret import session_of
from tamias.serve.pages.crawl.add_preview import AddPreview, account
from tamias.serve.pages.html.forms import check_form, form_caller, form_fields
from tamias.serve.pages.html.page import Answered, HtmlPage
from tamias.serve.pages.html.rendering import html
from tamias.serve.service import Service

_LONGEST_URL = 4096


class AddForm(msgspec.Struct, frozen=True, kw_only=True):
    """What the form shows: what was typed, and what became of it."""

    url: str = ""
    kind: str = ""
    """Of a source of many, such as `portal`; else empty."""
    title: str = ""
    format: str = ""
    error: str | None = None
    done: str | None = None
    account: AddPreview | None = None
    """What will happen, where an address was given."""


async def form(request: Request, service: Service) -> AddForm:
    """The form, with what will happen to the address that `url` names."""
    url = (parameter(request, "url") or "").strip()
    told = await service.pool.run(lambda db: account(db, url)) if url else None
    title, kind = parameter(request, "title") or "", parameter(request, "kind") or ""
    return AddForm(url=url, title=title, kind=kind, account=told)


def adding(service: Service) -> Answered:
    """What takes the form when it is sent."""

    async def answer(request: Request) -> Response:
        told = await form_fields(request)
        status, view = await _added(request, told, service)
        note_reason(request, view.error or "")
        session = session_of(request)
        values = {
            "view": view,
            "here": PAGE.path,
            "data": PAGE.data,
            "session": session,
            "address": PAGE.path,
        }
        return html(PAGE.template, values, status)

    return answer


async def _added(request: Request, told: dict[str, str], service: Service) -> tuple[int, AddForm]:
    """The status and the form. What will happen is told to all; what has happened only with the secret."""
    shown = AddForm(
        url=told.get("url", ""),
        kind=told.get("kind", ""),
        title=told.get("title", ""),
        format=told.get("format", ""),
    )
    if told.get("only") == "account":
        said = await service.pool.run(lambda db: account(db, shown.url[:_LONGEST_URL]))
        return 200, msgspec.structs.replace(shown, account=said)
    if await form_caller(request, told, service) is None:
        return 403, _with_error(shown, "Sign in first. Nothing was added.")
    try:
        new = msgspec.convert(
            {name: getattr(shown, name) or None for name in ("url", "kind", "title", "format")}, NewResource
        )
    except msgspec.ValidationError:
        return 400, _with_error(shown, "The address must have 1 to 4096 characters. Nothing was added.")
    try:
        await check_form(request, service, "add", [shown.url])
        resources.check_sources(request, [new])
    except HttpProblem as refusal:
        return 403, _with_error(shown, f"Nothing was added: {refusal.detail}.")
    taken = await service.pool.run(partial(resources.add_wanted, wanted=[new]))
    if taken.refused:
        return 422, _with_error(shown, f"The address was not added: {taken.refused[0].reason}.")
    done = "It is watched now." if taken.new else "It was already watched."
    if new.kind:
        done += " Its datasets appear when it has been read."
    said = await service.pool.run(lambda db: account(db, new.url))
    return 201 if taken.new else 200, AddForm(done=done, account=said, kind=shown.kind)


def _with_error(form: AddForm, error: str) -> AddForm:
    return msgspec.structs.replace(form, error=error)


PAGE = HtmlPage(path="/add", template="add.html", view=form, data="/openapi.json", elsewhere=True)
