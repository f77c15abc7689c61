"""The page of those with the scope `admin`: tokens to make and withdraw, and the latest writing calls."""

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.access.audit import AuditEntry, list_entries
from tamias.features.pages.html.forms import check_form, form_caller, form_fields
from tamias.features.pages.html.page import HtmlPage, html
from tamias.features.service.http.callers import record_of
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service
from tamias.features.tokens.tokens import (
    SCOPES,
    NewToken,
    TokenDescription,
    list_tokens,
    make_token,
    withdraw_token,
)
from tamias.model.errors import UsageError


class AccessView(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens and audit entries of the page."""

    tokens: list[TokenDescription]
    entries: list[AuditEntry]
    scopes: tuple[str, ...] = SCOPES
    made: str | None = None
    """A new token, this once."""
    error: str | None = None


async def view(request: Request, service: Service) -> AccessView:
    """Tokens and calls."""
    caller = record_of(request).caller
    if caller is None or not caller.may("admin"):
        raise HttpProblem(403, "sign in with the secret, or a token with the scope 'admin', to see this page")
    return await _view(service)


async def _view(service: Service, made: str | None = None, error: str | None = None) -> AccessView:
    def read(db: object) -> AccessView:
        session = db.session  # type: ignore[attr-defined]
        return AccessView(
            tokens=list_tokens(session), entries=list_entries(session, limit=50), made=made, error=error
        )

    return await service.pool.run(read)


async def changing(request: Request, service: Service) -> Response:
    """Make or withdraw a token, and show the page again."""
    fields = await form_fields(request)
    caller = await form_caller(request, fields, service)
    if caller is None:
        raise HttpProblem(403, "sign in first, and send the form from this page")
    name = fields.get("name", "")
    await check_form(request, service, "admin", [name[:100]])
    if fields.get("do") == "withdraw":
        if not await service.pool.run(lambda db: withdraw_token(db.session, name, caller.name)):
            raise HttpProblem(404, f"there is no active token '{name[:100]}'")
        return RedirectResponse(PAGE.path, 303)
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
        return _page(request, await _view(service, error=str(error)), 422)
    return _page(request, await _view(service, made=made), 201)


def _page(request: Request, shown: AccessView, status: int) -> Response:
    session = record_of(request).session
    values = {"view": shown, "here": PAGE.path, "data": PAGE.data, "session": session}
    return html(PAGE.template, values, status, {"Cache-Control": "no-store"})


PAGE = HtmlPage(
    path="/access",
    template="access.html",
    view=view,
    data="/access.json",
    headers={"Cache-Control": "no-store"},
)
