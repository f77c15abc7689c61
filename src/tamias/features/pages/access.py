"""The page of those with the scope `admin`: tokens to make and withdraw, and the latest writing calls."""

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.access.audit import list_entries
from tamias.features.pages.html.forms import check_form, sent_form
from tamias.features.pages.html.page import html_page, page
from tamias.features.pages.queries import Record
from tamias.features.service.http.callers import record_of
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.tokens.tokens import (
    SCOPES,
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
