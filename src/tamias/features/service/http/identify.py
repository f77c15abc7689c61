"""Finds out whom a request comes from before it is answered, and what they may do.

Where reading is not public, it also keeps out those who may not read.
"""

from collections.abc import Sequence
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamias.access.tokens import (
    OWNER,
    SECRET_NAME,
    AccessScope,
    Caller,
    caller_of_token,
    caller_with,
    is_token,
    uncovered,
)
from tamias.features.service.http.problems import UNREAD, HttpProblem, problem_of
from tamias.features.service.http.secret import (
    CALLER,
    COOKIE,
    SESSION,
    Secret,
    SignedIn,
    given_secret,
    session_name,
)
from tamias.features.service.queries.thread_pool import SessionPool
from tamias.model.url import shown_target

_BY_COOKIE = "tamias.by_cookie"
_TARGETS = "tamias.targets"
_REASON = "tamias.reason"
_STATIC = "/static/"
_OPEN = ("/healthz", "/sign-in", _STATIC, "/robots.txt")
"""What everybody may ask for, also where reading is not public."""


class Identify:
    """Middleware that puts the caller into the scope of a request."""

    def __init__(self, app: ASGIApp, secret: Secret, pool: SessionPool, *, public: bool) -> None:
        self._app = app
        self._secret = secret
        self._pool = pool
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._public and not scope["path"].startswith(_STATIC):
            send = _mark_private(send)
        if scope["type"] == "http" and (not self._public or _names_somebody(scope)):
            request = Request(scope)
            try:
                await self._identify(request)
            except Exception as error:  # noqa: BLE001 - every error has a document
                await problem_of(error).response()(scope, receive, send)
                return
            caller = caller_of(request)
            if not (self._public or (caller and caller.may("read")) or scope["path"].startswith(_OPEN)):
                await _shut(request, caller)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _identify(self, request: Request) -> None:
        credential = given_secret(request)
        if credential:
            request.scope[CALLER] = await self.caller_with(credential)
            return
        name = session_name(request, self._secret)
        if name is None:
            return
        request.scope[_BY_COOKIE] = True
        who = name.rpartition(".")[2]
        if who == SECRET_NAME:
            caller: Caller | None = OWNER
        else:
            caller = await self._pool.run(lambda db: caller_of_token(db.session, who))
        request.scope[CALLER] = caller
        request.scope[SESSION] = caller and SignedIn(self._secret.sign(f"form {name}"), caller)

    async def caller_with(self, credential: str) -> Caller | None:
        """Return the caller who has a secret or token."""
        return await find_caller(credential, self._secret, self._pool)


async def find_caller(credential: str, secret: Secret, pool: SessionPool) -> Caller | None:
    """Return the caller who has a secret or token; None if it is neither."""
    if secret.matches(credential):
        return OWNER
    return await pool.run(lambda db: caller_with(db.session, credential)) if is_token(credential) else None


def caller_of(request: Request) -> Caller | None:
    """Return the caller of a request, by secret, token or session."""
    caller: Caller | None = request.scope.get(CALLER)
    return caller


def caller_name(request: Request) -> str:
    """Return the name of whom the request comes from."""
    caller = caller_of(request)
    return caller.name if caller else "nobody"


def check_scope(request: Request, scope: AccessScope, *, bounded: bool) -> Caller:
    """The caller of a REST route, which takes no session. Raises `HttpProblem` unless they have the scope.

    `bounded`: whether the route checks what it concerns itself (`check_targets`).
    """
    if not given_secret(request):
        detail = (
            "writing needs the secret or a token with the scope"
            f" '{scope}': send 'Authorization: Bearer SECRET' or ?secret=SECRET"
        )
        raise HttpProblem(401, detail, {**UNREAD, "WWW-Authenticate": 'Bearer realm="tamias"'})
    caller = caller_of(request)
    if caller is None:
        challenge = {**UNREAD, "WWW-Authenticate": 'Bearer realm="tamias", error="invalid_token"'}
        raise HttpProblem(401, "this is not the secret of this service, nor an active token", challenge)
    check_caller(caller, scope, bounded=bounded)
    return caller


def check_caller(caller: Caller, scope: AccessScope, *, bounded: bool) -> None:
    """Raises `HttpProblem` unless they have the scope, and no bounds where a call concerns everything."""
    if not caller.may(scope):
        challenge = f'Bearer realm="tamias", error="insufficient_scope", scope="{scope}"'
        detail = f"the token '{caller.name}' has no scope '{scope}', only {', '.join(sorted(caller.scopes))}"
        raise HttpProblem(403, detail, {**UNREAD, "WWW-Authenticate": challenge})
    if caller.bounds and not bounded:
        detail = (
            f"the token '{caller.name}' is bound to {_shown(caller.bounds)}; this call concerns everything"
        )
        raise HttpProblem(403, detail, UNREAD)


async def check_targets(
    request: Request, pool: SessionPool, targets: Sequence[str], also: Sequence[str] = ()
) -> None:
    """Notes which URLs, hosts or names a call concerns; raises `HttpProblem` for those out of bounds.

    `also`: what must be within the bounds too, but is not what the call is about.
    """
    note_targets(request, targets)
    caller = caller_of(request)
    if caller is None or not caller.bounds:
        return
    named = [*targets, *also]
    outside = await pool.run(
        lambda db: uncovered(db.session, caller, named, frozenset(db.settings.filters.session_names))
    )
    if outside:
        raise HttpProblem(
            403, f"the token '{caller.name}' is bound to {_shown(caller.bounds)}, not {_shown(outside)}"
        )


def note_targets(request: Request, targets: Sequence[str]) -> None:
    """Note the targets of a request for the audit log."""
    request.scope.setdefault(_TARGETS, []).extend(targets)


def targets_of(request: Request) -> list[str]:
    """Return the hosts and URLs that were noted for a request."""
    noted: list[str] = request.scope.get(_TARGETS, [])
    return noted


def note_reason(request: Request, reason: str) -> None:
    """Note for the audit log why a form was refused."""
    request.scope[_REASON] = reason


def reason_of(request: Request) -> str:
    """Return the reason that was noted for a request."""
    noted: str = request.scope.get(_REASON, "")
    return noted


def _shown(names: Sequence[str]) -> str:
    return ", ".join(shown_target(each)[:200] for each in names[:3]) + (", …" if len(names) > 3 else "")


def _mark_private(send: Send) -> Send:
    """Mark responses as private, so that no shared cache stores them."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if "no-store" not in headers.get("cache-control", ""):
                headers["Cache-Control"] = "private, no-cache"
        await send(message)

    return sending


def _names_somebody(scope: Scope) -> bool:
    if b"secret=" in scope["query_string"]:
        return True
    cookie = COOKIE.encode()
    return any(
        name == b"authorization" or (name == b"cookie" and cookie in value)
        for name, value in scope["headers"]
    )


def _shut(request: Request, caller: Caller | None) -> Response:
    if caller is not None:
        return HttpProblem(403, f"the token '{caller.name}' has no scope 'read'").response()
    if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(f"/sign-in?next={quote(request.url.path)}", 303)
    challenge = {**UNREAD, "WWW-Authenticate": 'Bearer realm="tamias"'}
    return HttpProblem(
        401, "reading here needs the secret or a token with the scope 'read'", challenge
    ).response()
