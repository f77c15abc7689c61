"""Forms that change something: what they send, and whether who sends them may write."""

import hmac
from urllib.parse import parse_qsl

from starlette.requests import Request

from tamias.serve.http.params import body
from tamias.serve.http.problems import UNREAD, HttpProblem
from tamias.serve.http.secret import session_of
from tamias.serve.service import Service

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 10
_MOST_BYTES = 64 * 1024


async def form_fields(request: Request) -> dict[str, str]:
    """The fields of a form. Raises `HttpProblem`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise HttpProblem(415, f"this form is sent as {_FORM}", UNREAD)
    content = await body(request, _MOST_BYTES)
    try:
        pairs = parse_qsl(content.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise HttpProblem(400, f"the body is not a form of {_MOST_FIELDS} fields at most") from None
    return {name: value.replace("\0", "").strip() for name, value in pairs}


def may_write(request: Request, fields: dict[str, str], service: Service) -> bool:
    """Whether a form comes from a page of ours that a signed-in user sees, or has the secret in it."""
    session = session_of(request, service.secret)
    if session is None:
        return service.secret.matches(fields.get("secret", ""))
    return hmac.compare_digest(session.token.encode(), fields.get("token", "").encode())
