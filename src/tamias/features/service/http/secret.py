"""The secret that whoever writes must know: the user's own, or one made at the first start.

Whoever signs in on the pages gets a cookie that the secret signs: nothing is stored, a new secret ends it.
"""

import hashlib
import hmac
import logging
import os
import secrets
import time
from pathlib import Path

import msgspec
from starlette.requests import Request

from tamias.access.tokens import SECRET_NAME, Caller
from tamias.database.connect import Session
from tamias.database.disk import make_data_folder
from tamias.database.sql import statements
from tamias.model.errors import ConfigError

_log = logging.getLogger(__name__)
VARIABLE = "TAMIAS_SECRET"
COOKIE = "tamias_session"
CALLER = "tamias.caller"
"""Where the scope of a request has whom it comes from (`tamias.features.service.http.identify`)."""
SESSION = "tamias.session"
"""Where it has the session of the pages, if the request belongs to one."""
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


def may_read_all(request: Request) -> bool:
    """Return whether the caller has the scope `read`, and gets more than the public."""
    caller: Caller | None = request.scope.get(CALLER)
    return caller is not None and caller.may("read")


class SignedIn(msgspec.Struct, frozen=True):
    """A session of the pages."""

    token: str
    """What its forms send along, so that no other site can send them in its name."""
    caller: Caller


def new_session(secret: Secret, now: float, who: str = SECRET_NAME) -> str:
    """The value of the cookie of a new session. `who` is the id of a token, or the secret's name."""
    name = f"{int(now) + SESSION_SECONDS}.{secrets.token_hex(16)}.{who}"
    return f"{name}.{secret.sign(f'session {name}')}"


def session_of(request: Request) -> SignedIn | None:
    """The session that a request belongs to; None without one, or when it or its token is over."""
    session: SignedIn | None = request.scope.get(SESSION)
    return session


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
