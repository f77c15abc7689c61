"""Find out whom a request comes from, by the secret, a token or a session, and what they may do."""

import hashlib
import hmac
import logging
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamias.archive.closed import ClosingRules
from tamias.database.connect import Session
from tamias.database.disk import make_data_folder
from tamias.database.sql import statements
from tamias.features.service.http.problems import UNREAD, HttpProblem, problem_of
from tamias.features.service.queries.thread_pool import SessionPool
from tamias.features.tokens.tokens import (
    OWNER,
    SECRET_NAME,
    AccessScope,
    Caller,
    caller_of_token,
    caller_with,
    is_token,
    uncovered,
)
from tamias.model.errors import ConfigError
from tamias.model.url import shown_target

_log = logging.getLogger(__name__)
VARIABLE = "TAMIAS_SECRET"
COOKIE = "tamias_session"
SESSION_SECONDS = 12 * 3600
_LONGEST = 1024
_LOCK_CLASS = 0x7A31A5
_SQL = statements("tamias.features.service.queries", "queries.sql")


class Secret(msgspec.Struct, frozen=True):
    """The secret, and where it came from."""

    value: str
    place: str
    chosen: bool
    """Whether the user set it; one that was made is good for the machine's own users only."""

    def __repr__(self) -> str:
        return f"<secret from {self.place}>"

    def sign(self, text: str) -> str:
        """Sign a text with the secret."""
        return hmac.new(self.value.encode(), text.encode(), "sha256").hexdigest()

    def matches(self, text: str) -> bool:
        """Return whether a text is the secret, in constant time."""
        return hmac.compare_digest(self.value.encode(), text.encode("utf-8", "surrogatepass"))


def find_secret(data: Path, file: Path | None) -> Secret:
    """The file that the user names, the environment, or `DATA/secret`, which is made if need be."""
    if file is not None:
        return Secret(_read(file), str(file), chosen=True)
    value = os.environ.get(VARIABLE, "").strip()
    if value:
        return Secret(value, VARIABLE, chosen=True)
    return Secret(_read_or_make(data / "secret"), str(data / "secret"), chosen=False)


def register_secret(session: Session, secret: Secret) -> None:
    """Tells the other services of the database that this one uses the secret, as long as the session lasts.

    Raises `ConfigError` for one that was made on the spot where another service uses another: what one signs
    the other would refuse.
    """
    number = int.from_bytes(hashlib.sha256(secret.value.encode()).digest()[:4], "big", signed=True)
    values = {"class": _LOCK_CLASS, "number": number}
    if session.fetch_one(_SQL["other_secrets"], values) is not None:
        if not secret.chosen:
            raise ConfigError(
                f"another service on this database uses another secret than {secret.place}, which was made "
                f"here; give all of them the same one ({VARIABLE} or --secret-file FILE)"
            )
        _log.warning("another service on this database uses another secret: what one signs the other refuses")
    session.execute(_SQL["register_secret"], values)


class SignedIn(msgspec.Struct, frozen=True):
    """A session of the pages."""

    token: str
    """What its forms send along, so that no other site can send them in its name."""
    caller: Caller


class CallRecord(msgspec.Struct):
    """The account of a request: whom it comes from, and what the audit log is to say of it."""

    caller: Caller | None = None
    session: SignedIn | None = None
    """The session of the pages that it belongs to, if that and its token are not over."""
    targets: list[str] = []
    """URLs, hosts or names that it concerns."""
    reason: str = ""
    """Why a form was refused."""

    @property
    def name(self) -> str:
        """Return the name of whom it comes from."""
        return self.caller.name if self.caller else "nobody"


def record_of(request: Request) -> CallRecord:
    """Return the account of a request."""
    found: CallRecord = request.scope.setdefault("tamias.record", CallRecord())
    return found


def may_read_all(request: Request) -> bool:
    """Return whether the caller has the scope `read`, and gets more than the public."""
    caller = record_of(request).caller
    return caller is not None and caller.may("read")


def may_read(request: Request, url: str) -> bool:
    """Return whether the caller has the scope `read`, and bounds that a URL is within if any."""
    caller = record_of(request).caller
    return caller is not None and caller.may("read") and (not caller.bounds or caller.covers(url))


def new_session(secret: Secret, now: float, who: str = SECRET_NAME) -> str:
    """The value of the cookie of a new session. `who` is the id of a token, or the secret's name."""
    name = f"{int(now) + SESSION_SECONDS}.{secrets.token_hex(16)}.{who}"
    return f"{name}.{secret.sign(f'session {name}')}"


def session_name(request: Request, secret: Secret) -> str | None:
    """Return the name in a valid session cookie; the caller stands after its last dot."""
    name, _, signature = request.cookies.get(COOKIE, "")[:_LONGEST].rpartition(".")
    if not hmac.compare_digest(secret.sign(f"session {name}").encode(), signature.encode("utf-8", "replace")):
        return None
    return None if float(name.partition(".")[0]) < time.time() else name


def given_secret(request: Request) -> str:
    """Return the bearer token, or the parameter `secret`; empty if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else request.query_params.get("secret", "")


def _read_or_make(path: Path) -> str:
    """The secret of a data directory: whoever is first makes it."""
    partial = path.with_name(f"secret.{os.getpid()}.{secrets.token_hex(4)}")
    if not path.exists():
        make_data_folder(path.parent)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        try:
            os.link(partial, path)
        except FileExistsError:
            pass
        finally:
            partial.unlink()
    return _read(path)


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            value = file.read(_LONGEST).strip()
    except OSError as error:
        raise ConfigError(f"cannot read the secret {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the secret {path} is not UTF-8 text: {error.reason}") from error
    if not value:
        raise ConfigError(f"the secret {path} is empty; write one into it")
    return value


_STATIC = "/static/"
_OPEN = ("/healthz", "/sign-in", _STATIC, "/robots.txt", "/.well-known/http-message-signatures-directory")
"""What everybody may ask for, also where reading is not public."""
_REPLAYED = ("/timegate/", "/timemap/", "/memento/", "/cdx")
"""What leaves out captures that are closed to the public."""


class Identify:
    """Middleware that puts the caller into the scope of a request."""

    def __init__(
        self, app: ASGIApp, secret: Secret, pool: SessionPool, *, public: bool, closed: ClosingRules
    ) -> None:
        """`closed`: with any rule, only what obeys rules one by one stays public."""
        self._app = app
        self._secret = secret
        self._pool = pool
        self._public = public and not closed
        self._open = (*_OPEN, *_REPLAYED) if public else _OPEN

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
            caller = record_of(request).caller
            if not (self._public or (caller and caller.may("read")) or scope["path"].startswith(self._open)):
                await _shut(request, caller)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _identify(self, request: Request) -> None:
        credential = given_secret(request)
        if credential:
            record_of(request).caller = await find_caller(credential, self._secret, self._pool)
            return
        name = session_name(request, self._secret)
        if name is None:
            return
        who = name.rpartition(".")[2]
        if who == SECRET_NAME:
            caller: Caller | None = OWNER
        else:
            caller = await self._pool.run(lambda db: caller_of_token(db.session, who))
        session = SignedIn(self._secret.sign(f"form {name}"), caller) if caller else None
        request.scope["tamias.record"] = CallRecord(caller, session)


async def find_caller(credential: str, secret: Secret, pool: SessionPool) -> Caller | None:
    """Return the caller who has a secret or token; None if it is neither."""
    if secret.matches(credential):
        return OWNER
    return await pool.run(lambda db: caller_with(db.session, credential)) if is_token(credential) else None


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
    caller = record_of(request).caller
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
    record_of(request).targets.extend(targets)
    caller = record_of(request).caller
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
