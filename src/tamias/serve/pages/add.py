"""The form by which a person puts an address under watch. The secret is asked for each time."""

from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.model.resource import resource_id
from tamias.model.url import fetch_url
from tamias.model.url_key import url_key
from tamias.serve.api import resources
from tamias.serve.api.resources import MOST_BYTES, NewResource
from tamias.serve.asked import body
from tamias.serve.pages.page import Page
from tamias.serve.pages.rendering import html
from tamias.serve.problems import UNREAD, Problem
from tamias.serve.service import Service

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 10


class AddForm(msgspec.Struct, frozen=True, kw_only=True):
    """What the form shows: what was typed, without the secret, and what became of it."""

    url: str = ""
    title: str = ""
    format: str = ""
    error: str | None = None
    done: str | None = None
    dataset: str | None = None
    """Of what is under watch now."""


async def empty(_: Request, __: Service) -> AddForm:
    """The form before anything was typed."""
    return AddForm()


def adding(service: Service) -> Callable[[Request], Awaitable[Response]]:
    """What takes the form when it is sent."""

    async def answer(request: Request) -> Response:
        told = await _fields(request)
        status, view = await _added(told, service)
        return html(PAGE.template, {"view": view, "data": PAGE.data}, status)

    return answer


async def _fields(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise Problem(415, f"this form is sent as {_FORM}", UNREAD)
    content = await body(request, MOST_BYTES)
    try:
        pairs = parse_qsl(content.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Problem(400, f"the body is no form of {_MOST_FIELDS} fields at most") from None
    return {name: value.replace("\0", "").strip() for name, value in pairs}


async def _added(told: dict[str, str], service: Service) -> tuple[int, AddForm]:
    """The status and the form; nothing is said about the address before the secret is right."""
    shown = AddForm(url=told.get("url", ""), title=told.get("title", ""), format=told.get("format", ""))
    if not service.secret.matches(told.get("secret", "")):
        return 403, _with_error(shown, "This is not the secret of this service. Nothing was added.")
    try:
        new = msgspec.convert(
            {"url": shown.url, "title": shown.title or None, "format": shown.format or None}, NewResource
        )
    except msgspec.ValidationError:
        return 400, _with_error(shown, "The address must have 1 to 4096 characters. Nothing was added.")
    taken = await service.desks.ask(partial(resources.add_wanted, wanted=[new]))
    if taken.refused:
        return 422, _with_error(shown, f"The address was not taken: {taken.refused[0].reason}.")
    done = "It is under watch now." if taken.new else "It was under watch already."
    return 201 if taken.new else 200, AddForm(done=done, dataset=_id(new.url, service))


def _with_error(form: AddForm, error: str) -> AddForm:
    return msgspec.structs.replace(form, error=error)


def _id(url: str, service: Service) -> str:
    names = frozenset(service.settings.filters.session_names)
    return resource_id(url_key(fetch_url(url), names))


PAGE = Page(path="/add", template="add.html", view=empty, data="/openapi.json", elsewhere=True)
