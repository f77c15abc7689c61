"""Signing in with the secret of the service, once for all forms, and out again."""

import asyncio
import time

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.features.pages.html.forms import form_fields, sent_form
from tamias.features.pages.html.page import html_page, page
from tamias.features.pages.queries import Record
from tamias.features.service.http.callers import COOKIE, SESSION_SECONDS, find_caller, new_session, record_of
from tamias.features.service.http.exchange import parameter
from tamias.features.service.service import Service
from tamias.features.tokens.tokens import SECRET_NAME

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
