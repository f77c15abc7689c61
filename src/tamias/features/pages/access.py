"""Signing in and out, and the page of those with the scope `admin`: tokens, and the latest writing calls."""

import asyncio
import time

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.access.audit import list_entries
from tamias.features.pages.html.forms import check_form, form_fields, sent_form
from tamias.features.pages.html.page import html_page, page
from tamias.features.pages.queries import Record
from tamias.features.service.http.callers import COOKIE, SESSION_SECONDS, find_caller, new_session, record_of
from tamias.features.service.http.exchange import parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.tokens.tokens import (
    SCOPES,
    SECRET_NAME,
    NewToken,
    list_tokens,
    make_token,
    withdraw_token,
)
from tamias.model.errors import UsageError


@page("/access", "access.html", headers={"Cache-Control": "no-store"})
async def access(request: Request, service: Service) -> Record:
    """Tokens and calls."""
    caller = record_of(request).caller
    if caller is None or not caller.may("admin"):
        raise HttpProblem(403, "sign in with the secret, or a token with the scope 'admin', to see this page")
    return await service.pool.run(_read)


def _read(db: ServiceSession) -> Record:
    tokens, entries = list_tokens(db.session), list_entries(db.session, limit=50)
    return {"tokens": tokens, "entries": entries, "scopes": SCOPES, "made": None, "error": None}


async def changing(request: Request, service: Service) -> Response:
    """Make or withdraw a token, and show the page again."""
    fields, caller = await sent_form(request, service)
    name = fields.get("name", "")
    await check_form(request, service, "admin", [name[:100]])
    if fields.get("do") == "withdraw":
        if not await service.pool.run(lambda db: withdraw_token(db.session, name, caller.name)):
            raise HttpProblem(404, f"there is no active token '{name[:100]}'")
        return RedirectResponse(access.path, 303)
    try:
        new = msgspec.convert(
            {
                "name": name,
                "scopes": fields.get("scopes", "").replace(",", " ").split(),
                "bounds": fields.get("bounds", "").split(),
                "days": float(fields["days"]) if fields.get("days") else None,
            },
            NewToken,
        )
        made = await service.pool.run(lambda db: make_token(db.session, new, caller.name))
    except (UsageError, msgspec.ValidationError, ValueError) as error:
        record_of(request).reason = str(error)
        return await _page(request, service, 422, error=str(error))
    return await _page(request, service, 201, made=made)


async def _page(request: Request, service: Service, status: int, **shown: str) -> Response:
    """Show the page with what became of the form; a new token only this once."""
    view = {**await service.pool.run(_read), **shown}
    return html_page(request, access, view, status)


_PAUSE = 0.5
"""Seconds before a wrong secret is answered: guessing takes long."""


@page("/sign-in", "sign_in.html")
async def sign_in(request: Request, _: Service) -> Record:
    """The form, and where to go then."""
    return {"next": _own_page(parameter(request, "next") or "/"), "error": None}


async def signing_in(request: Request, service: Service) -> Response:
    """Take the form, and give a cookie."""
    fields = await form_fields(request)
    following = _own_page(fields.get("next", "/"))
    caller = await find_caller(fields.get("secret", ""), service.secret, service.pool)
    record_of(request).caller = caller
    if caller is None:
        await asyncio.sleep(_PAUSE)
        error = "This is neither the secret of this service nor a token."
        return html_page(request, sign_in, {"next": following, "error": error}, 403)
    found = RedirectResponse(following, 303)
    found.set_cookie(
        COOKIE,
        new_session(service.secret, time.time(), caller.token or SECRET_NAME),
        max_age=SESSION_SECONDS,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return found


async def signing_out(request: Request, service: Service) -> Response:
    """Forget the cookie."""
    await sent_form(request, service)
    found = RedirectResponse("/", 303)
    found.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return found


def _own_page(address: str) -> str:
    """An address on this service; the first page for any other.

    >>> _own_page("/add?url=x"), _own_page("//evil.example/"), _own_page("/\\\\evil.example")
    ('/add?url=x', '/', '/')
    """
    own = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if own and address.isascii() else "/"
