"""Forms that change something: what they send, and whether who sends them may write."""

import hmac
from collections.abc import Sequence
from urllib.parse import parse_qsl

from starlette.requests import Request

from tamias.features.service.http.callers import check_caller, check_targets, find_caller, record_of
from tamias.features.service.http.exchange import body
from tamias.features.service.http.problems import UNREAD, HttpProblem
from tamias.features.service.service import Service
from tamias.features.tokens.tokens import AccessScope, Caller

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 20
_MOST_BYTES = 64 * 1024


async def form_fields(request: Request, most: int = _MOST_BYTES) -> dict[str, str]:
    """The fields of a form of so many bytes at most. Raises `HttpProblem`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise HttpProblem(415, f"this form is sent as {_FORM}", UNREAD)
    content = await body(request, most)
    try:
        pairs = parse_qsl(content.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise HttpProblem(400, f"the body is not a form of {_MOST_FIELDS} fields at most") from None
    return {name: value.replace("\0", "").strip() for name, value in pairs}


async def form_caller(request: Request, fields: dict[str, str], service: Service) -> Caller | None:
    """Return who sends a form: a signed-in user, or one who writes the secret or a token into it."""
    session = record_of(request).session
    if session is None:
        caller = await find_caller(fields.get("secret", ""), service.secret, service.pool)
        record_of(request).caller = caller
        return caller
    ours = hmac.compare_digest(session.token.encode(), fields.get("token", "").encode())
    return session.caller if ours else None


async def sent_form(
    request: Request, service: Service, most: int = _MOST_BYTES
) -> tuple[dict[str, str], Caller]:
    """Return the fields of a form and who sends it. Raises `HttpProblem` where nobody is signed in."""
    fields = await form_fields(request, most)
    caller = await form_caller(request, fields, service)
    if caller is None:
        raise HttpProblem(403, "sign in first, and send the form from a page of this service")
    return fields, caller


async def check_form(request: Request, service: Service, scope: AccessScope, targets: Sequence[str]) -> None:
    """Raises `HttpProblem` unless the caller whom `form_caller` found may do this to these URLs or names."""
    caller = record_of(request).caller
    assert caller is not None
    check_caller(caller, scope, bounded=True)
    await check_targets(request, service.pool, targets)
