"""Named tokens: made once and shown once, stored as hashes, withdrawn at any time."""

import hmac
import re
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal, get_args

import msgspec

from tamias.archive.moments import of_row
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.errors import UsageError
from tamias.model.url import DEFAULT_SESSION_NAMES, fetch_url, host, is_address, url_key

AccessScope = Literal["read", "add", "crawl", "forget", "admin"]
SCOPES: tuple[AccessScope, ...] = get_args(AccessScope)
SECRET_NAME = "secret"  # noqa: S105 (a name, not a secret)
"""Who calls with the one secret of the service."""
MOST_BOUNDS = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_TOKEN = re.compile(r"tam_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_HOST = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]")
_SQL = statements("tamias.features.tokens", "tokens.sql")


class Caller(msgspec.Struct, frozen=True):
    """The sender of a request, and what they may do."""

    name: str
    scopes: frozenset[str]
    bounds: tuple[str, ...] = ()
    """Hosts, and URLs of portals, that writing calls may concern; none: all."""
    token: str | None = None
    """The id of the token; None for the secret."""

    def may(self, scope: AccessScope) -> bool:
        """Return whether they have the scope; `admin` has all of them."""
        return scope in self.scopes or "admin" in self.scopes

    def covers(self, target: str, session_names: frozenset[str] = DEFAULT_SESSION_NAMES) -> bool:
        """Return whether a host or a URL is within the bounds by its name alone; portals may list others.

        A URL is within them as it is fetched and as it is identified (`url_key`), however it is written.

        >>> bound = Caller("a", frozenset(), ("data.example", "*.example.org", "https://p.example/x/"))
        >>> [bound.covers(each) for each in ("https://data.example/a", "www.example.org", "example.org")]
        [True, True, False]
        >>> [bound.covers(each) for each in ("https://p.example/x/1", "https://p.example/", "p.example")]
        [True, False, False]
        >>> [bound.covers(each) for each in ("https://DATA.example", "https:a.example/.example.org")]
        [True, False]
        """
        if not self.bounds:
            return True
        if not is_address(target):
            return self._covers(target, target.lower())
        url = fetch_url(target)
        return all(self._covers(each, host(each)) for each in (url, url_key(url, session_names)))

    def _covers(self, target: str, name: str) -> bool:
        return _HOST.fullmatch(name) is not None and any(
            _covers(bound, target, name) for bound in self.bounds
        )

    @property
    def portals(self) -> list[str]:
        """Bounds that are URLs."""
        return [bound for bound in self.bounds if "://" in bound]


OWNER = Caller(SECRET_NAME, frozenset(SCOPES))


class TokenDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A token without what opens anything."""

    id: str
    name: str
    scopes: list[str]
    bounds: list[str]
    """Hosts, and URLs of portals, that its writing calls may concern; empty: all."""
    made_at: str
    made_by: str
    expires_at: str | None
    withdrawn_at: str | None
    withdrawn_by: str | None


class NewToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to be made."""

    name: str
    scopes: list[AccessScope]
    bounds: list[str] = []
    days: float | None = None
    """How long it is valid; null: until it is withdrawn."""


def make_token(session: Session, new: NewToken, by: str) -> str:
    """The text of a new token, which nobody can read again. Raises `UsageError`."""
    _check(new)
    name = secrets.token_hex(6)
    text = f"tam_{name}_{secrets.token_urlsafe(32)}"
    now = session.now()
    row = {
        "token": name,
        "name": new.name,
        "hash": _hash(text),
        "scopes": [scope for scope in SCOPES if scope in new.scopes],
        "bounds": [_bound(each) for each in new.bounds],
        "now": now,
        "by": by,
        "expires_at": None if new.days is None else now + int(new.days * 86_400_000),
    }
    if not session.execute(_SQL["put_token"], row):
        raise UsageError(f"a token named '{new.name}' is in use; withdraw it first, or choose another name")
    return text


def withdraw_token(session: Session, name: str, by: str) -> bool:
    """Withdraw a token by its name or id; return whether there was one."""
    return session.execute(_SQL["withdraw_token"], {"name": name, "by": by, "now": session.now()}) > 0


def list_tokens(session: Session) -> list[TokenDescription]:
    """List all tokens, those in use first."""
    return [of_row(TokenDescription, row) for row in session.fetch_all(_SQL["list_tokens"])]


def is_token(text: str) -> bool:
    """Return whether a text has the form of a token."""
    return _TOKEN.fullmatch(text) is not None


def caller_with(session: Session, text: str) -> Caller | None:
    """Return who has a token, in constant time; None if it is unknown, expired or withdrawn."""
    form = _TOKEN.fullmatch(text)
    if form is None:
        return None
    row = session.fetch_one(_SQL["find_token"], {"token": form[1]})
    known = bytes(row[2]) if row else b"\0" * 32
    return _caller(session, row) if hmac.compare_digest(known, _hash(text)) else None


def caller_of_token(session: Session, token: str) -> Caller | None:
    """Return who has the token of an id that we have signed; None if it is expired or withdrawn."""
    return _caller(session, session.fetch_one(_SQL["find_token"], {"token": token}))


def uncovered(
    session: Session, caller: Caller, targets: Sequence[str], session_names: frozenset[str]
) -> list[str]:
    """Return the hosts and URLs that a caller's bounds do not cover."""
    left = [each for each in targets if not caller.covers(each, session_names)]
    urls = {each: fetch_url(each) for each in left if is_address(each)}
    if not urls or not caller.portals:
        return left
    values = {"urls": list(urls.values()), "portals": caller.portals}
    listed = {row[0] for row in session.fetch_all(_SQL["listed_by_portals"], values)}
    return [each for each in left if urls.get(each) not in listed]


def urls_of(session: Session, ids: list[str]) -> list[str]:
    """The addresses of resources; an id that is unknown stays as it is."""
    known: dict[str, str] = dict(session.fetch_all(_SQL["urls_of"], {"ids": ids}))
    return [known.get(each, each) for each in ids]


def _caller(session: Session, row: tuple[Any, ...] | None) -> Caller | None:
    if row is None or row[6] is not None or (row[5] is not None and row[5] <= session.now()):
        return None
    return Caller(row[1], frozenset(row[3]), tuple(row[4]), row[0])


def _check(new: NewToken) -> None:
    if not _NAME.fullmatch(new.name) or new.name == SECRET_NAME:
        raise UsageError(
            f"'{new.name[:70]}' cannot name a token: use 1 to 64 letters, digits, '.', '_', '@' or '-'"
            f"; '{SECRET_NAME}' is taken"
        )
    if not new.scopes:
        raise UsageError(f"name at least one scope: {', '.join(SCOPES)}")
    if len(new.bounds) > MOST_BOUNDS:
        raise UsageError(f"a token has {MOST_BOUNDS} bounds at most")
    if new.bounds and "admin" in new.scopes:
        raise UsageError("a token with the scope 'admin' cannot be bound: it can make unbound ones")
    if new.days is not None and not 0 < new.days < 36_500:
        raise UsageError("a token is valid for more than 0 and less than 36500 days")


def _bound(text: str) -> str:
    if "://" in text:
        if not is_address(text):
            raise UsageError(f"'{text[:200]}' is neither a host nor the URL of a portal")
        return fetch_url(text)
    name = text.strip().lower()
    if not _HOST.fullmatch(name):
        raise UsageError(f"'{text[:200]}' is neither a host nor the URL of a portal")
    return name


def _covers(bound: str, target: str, name: str) -> bool:
    if "://" in bound:
        return target.startswith(bound) and (
            bound.endswith("/") or target[len(bound) :][:1] in ("", "/", "?")
        )
    return name.endswith(bound[1:]) if bound.startswith("*.") else name == bound


def _hash(text: str) -> bytes:
    """Return the hash of a token: its 256 random bits need no slow function."""
    return sha256(text.encode()).digest()
