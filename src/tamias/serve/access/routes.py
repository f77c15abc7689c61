"""Tokens and the audit log over REST, for those with the scope `admin`."""

import re

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.serve.access.audit import AuditEntry, list_entries
from tamias.serve.access.identify import caller_of, note_targets
from tamias.serve.access.tokens import NewToken, TokenDescription, list_tokens, make_token, withdraw_token
from tamias.serve.http.endpoints import PAGED, Endpoint, Parameter, ResponseSpec, path_parameter
from tamias.serve.http.params import cursor, json_body, limit, parameter, since
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.responses import ListPage, json_answer, page_answer
from tamias.serve.service import Service

MOST_BYTES = 64 * 1024
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


class MadeToken(msgspec.Struct, frozen=True):
    """A new token, shown only this once."""

    name: str
    token: str


async def make(request: Request, service: Service) -> Response:
    """Makes one."""
    new = await json_body(request, NewToken, MOST_BYTES)
    note_targets(request, [new.name[:100]])
    by = caller_name(request)
    text = await service.pool.run(lambda db: make_token(db.session, new, by))
    return json_answer(request, MadeToken(new.name, text), 201, {"Cache-Control": "no-store"})


async def listing(request: Request, service: Service) -> Response:
    """All of them, without what opens anything."""
    found = await service.pool.run(lambda db: list_tokens(db.session))
    return json_answer(request, ListPage[TokenDescription](found, None))


async def withdraw(request: Request, service: Service) -> Response:
    """From now on it opens nothing."""
    name, by = str(request.path_params["name"]), caller_name(request)
    note_targets(request, [name[:100]])
    if not await service.pool.run(lambda db: withdraw_token(db.session, name, by)):
        raise HttpProblem(404, f"there is no active token '{name[:100]}'")
    return Response(status_code=204)


async def audited(request: Request, service: Service) -> Response:
    """The latest writing calls first."""
    most, found_cursor, begin = limit(request), cursor(request, _NUMBER), since(request, "since")
    before, who = int(found_cursor[0]) if found_cursor else None, parameter(request, "who")
    found = await service.pool.run(
        lambda db: list_entries(db.session, before=before, since=begin, who=who, limit=most)
    )
    return page_answer(request, found, str(found[-1].entry) if len(found) == most else None)


def caller_name(request: Request) -> str:
    """Who it is."""
    caller = caller_of(request)
    return caller.name if caller else "nobody"


_PATH = "/api/v1/tokens"

ENDPOINTS = [
    Endpoint(
        method="POST",
        path=_PATH,
        handle=make,
        about="Create a named token with scopes, bound to hosts or portals if you like",
        answers={201: ResponseSpec("Created; the token is shown only this once", MadeToken)},
        body=NewToken,
        scope="admin",
    ),
    Endpoint(
        path=_PATH,
        handle=listing,
        about="All tokens: names, scopes and bounds",
        answers={200: ResponseSpec("Tokens, those in use first", ListPage[TokenDescription])},
        scope="admin",
    ),
    Endpoint(
        method="DELETE",
        path=_PATH + "/{name}",
        handle=withdraw,
        about="Withdraw a token",
        parameters=(path_parameter("name", "its name or id"),),
        answers={204: ResponseSpec("Withdrawn")},
        scope="admin",
    ),
    Endpoint(
        path="/api/v1/audit",
        handle=audited,
        about="The audit log: every writing call, the latest first",
        parameters=(
            Parameter("who", "only calls of this token, or `secret`"),
            Parameter("since", "only calls since this time"),
            *PAGED,
        ),
        answers={200: ResponseSpec("Calls", ListPage[AuditEntry])},
        scope="admin",
    ),
]
