"""The secret that whoever writes must know: the user's own, or one made at the first start.

Whoever signs in on the pages gets a cookie that the secret signs: nothing is stored, a new secret ends it.
"""

import hmac
import os
import secrets
import time
from pathlib import Path

import msgspec
from starlette.requests import Request

from tamias.database.disk import make_data_folder
from tamias.model.errors import ConfigError
from tamias.serve.http.problems import UNREAD, HttpProblem

VARIABLE = "TAMIAS_SECRET"
COOKIE = "tamias_session"
SESSION_SECONDS = 12 * 3600
_LONGEST = 1024


class Secret(msgspec.Struct, frozen=True):
    """The secret, and where it came from."""

    value: str
    place: str
    chosen: bool
    """Whether the user set it; one that was made is good for the machine's own users only."""

    def __repr__(self) -> str:
        return f"<secret from {self.place}>"

    def sign(self, text: str) -> str:
        """What only who knows the secret can make of a text."""
        return hmac.new(self.value.encode(), text.encode(), "sha256").hexdigest()

    def matches(self, told: str) -> bool:
        """Whether this is it; how long that takes says nothing about it."""
        return hmac.compare_digest(self.value.encode(), told.encode("utf-8", "surrogatepass"))


def find_secret(data: Path, file: Path | None) -> Secret:
    """The file that the user names, the environment, or `DATA/secret`, which is made if need be."""
    if file is not None:
        return Secret(_read(file), str(file), chosen=True)
    told = os.environ.get(VARIABLE, "").strip()
    if told:
        return Secret(told, VARIABLE, chosen=True)
    return Secret(_kept(data / "secret"), str(data / "secret"), chosen=False)


def check_secret(request: Request, secret: Secret) -> None:
    """Raises `HttpProblem` unless the request has it, as bearer token or as `?secret=`."""
    told = _told(request)
    if not told:
        detail = "writing needs the secret: send 'Authorization: Bearer SECRET' or ?secret=SECRET"
        raise HttpProblem(401, detail, {**UNREAD, "WWW-Authenticate": 'Bearer realm="tamias"'})
    if not secret.matches(told):
        challenge = {**UNREAD, "WWW-Authenticate": 'Bearer realm="tamias", error="invalid_token"'}
        raise HttpProblem(401, "this is not the secret of this service", challenge)


def has_secret(request: Request, secret: Secret) -> bool:
    """Whether the request has it, or is of a session: for what all may ask for and the owner gets more of."""
    told = _told(request)
    return secret.matches(told) if told else session_of(request, secret) is not None


class SignedIn(msgspec.Struct, frozen=True):
    """A session of the pages."""

    token: str
    """What its forms send along, so that no other site can send them in its name."""


def new_session(secret: Secret, now: float) -> str:
    """The value of the cookie of a new session."""
    name = f"{int(now) + SESSION_SECONDS}.{secrets.token_hex(16)}"
    return f"{name}.{secret.sign(f'session {name}')}"


def session_of(request: Request, secret: Secret, now: float | None = None) -> SignedIn | None:
    """The session that a request belongs to; None without one, or when it is over."""
    name, _, signature = request.cookies.get(COOKIE, "")[:_LONGEST].rpartition(".")
    if not hmac.compare_digest(secret.sign(f"session {name}").encode(), signature.encode("utf-8", "replace")):
        return None
    if float(name.partition(".")[0]) < (time.time() if now is None else now):
        return None
    return SignedIn(secret.sign(f"form {name}"))


def _told(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else request.query_params.get("secret", "")


def _kept(path: Path) -> str:
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
            told = file.read(_LONGEST).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the secret {path}: {error}") from error
    if not told:
        raise ConfigError(f"the secret {path} is empty; write one into it")
    return told
