"""The secret that whoever writes must know: the user's own, or one made at the first start."""

import hmac
import os
import secrets
from pathlib import Path

import msgspec
from starlette.requests import Request

from tamias.database.disk import make_data_folder
from tamias.model.errors import ConfigError
from tamias.serve.http.problems import UNREAD, HttpProblem

VARIABLE = "TAMIAS_SECRET"
_LONGEST = 1024


class Secret(msgspec.Struct, frozen=True):
    """The secret, and where it came from."""

    value: str
    place: str
    chosen: bool
    """Whether the user set it; one that was made is good for the machine's own users only."""

    def __repr__(self) -> str:
        return f"<secret from {self.place}>"

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
    """Whether the request has it: for what anybody may ask for, and the owner gets more of."""
    told = _told(request)
    return bool(told) and secret.matches(told)


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
