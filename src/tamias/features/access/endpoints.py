"""Tokens and the audit log over REST, for those with the scope `admin`."""

import re

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.access.audit import AuditEntry, list_entries
from tamias.features.service.http.callers import record_of
from tamias.features.service.http.endpoints import (
    PAGED,
    EndpointTable,
    Parameter,
    ResponseSpec,
    path_parameter,
)
from tamias.features.service.http.exchange import (
    ListPage,
    cursor,
    json_answer,
    json_body,
    limit,
    page_answer,
    parameter,
    since,
)
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service
from tamias.features.tokens.tokens import NewToken, TokenDescription, list_tokens, make_token, withdraw_token

MOST_BYTES = 64 * 1024
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


class MadeToken(msgspec.Struct, frozen=True):
    """A new token, shown only this once."""

    name: str
    token: str


ENDPOINTS = EndpointTable()
_PATH = "/api/v1/tokens"


@ENDPOINTS.post(
    _PATH,
    {201: ResponseSpec("Created; the token is shown only this once", MadeToken)},
    body=NewToken,
    scope="admin",
)
async def make(request: Request, service: Service) -> Response:
    """Create a named token with scopes, bound to hosts or portals if you like."""
    new = await json_body(request, NewToken, MOST_BYTES)
    record_of(request).targets.extend([new.name[:100]])
    by = record_of(request).name
    text = await service.pool.run(lambda db: make_token(db.session, new, by))
    return json_answer(request, MadeToken(new.name, text), 201, {"Cache-Control": "no-store"})


@ENDPOINTS.get(_PATH, ResponseSpec("Tokens, those in use first", ListPage[TokenDescription]), scope="admin")
async def listing(request: Request, service: Service) -> Response:
    """List all tokens: names, scopes and bounds."""
    found = await service.pool.run(lambda db: list_tokens(db.session))
    return json_answer(request, ListPage[TokenDescription](found, None))


@ENDPOINTS.add(
    "DELETE",
    _PATH + "/{name}",
    {204: ResponseSpec("Withdrawn")},
    path_parameter("name", "its name or id"),
    scope="admin",
)
async def withdraw(request: Request, service: Service) -> Response:
    """Withdraw a token."""
    name, by = str(request.path_params["name"]), record_of(request).name
    record_of(request).targets.extend([name[:100]])
    if not await service.pool.run(lambda db: withdraw_token(db.session, name, by)):
        raise HttpProblem(404, f"there is no active token '{name[:100]}'")
    return Response(status_code=204)


@ENDPOINTS.get(
    "/api/v1/audit",
    ResponseSpec("Calls", ListPage[AuditEntry]),
    Parameter("who", "only calls of this token, or `secret`"),
    Parameter("since", "only calls since this time"),
    *PAGED,
    scope="admin",
)
async def audited(request: Request, service: Service) -> Response:
    """The audit log: every writing call, the latest first."""
    most, found_cursor, begin = limit(request), cursor(request, _NUMBER), since(request, "since")
    before, who = int(found_cursor[0]) if found_cursor else None, parameter(request, "who")
    found = await service.pool.run(
        lambda db: list_entries(db.session, before=before, since=begin, who=who, limit=most)
    )
    return page_answer(request, found, str(found[-1].entry) if len(found) == most else None)
