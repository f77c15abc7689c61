"""Tombstones: what was forgotten, when, why and by whom, and what may not be fetched again.

`is_forgotten` says of a version whether it may be given out; whoever lists or copies versions asks it.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tamias.archive.moments import rfc3339
from tamias.archive.sources.revisits import read_figure, write_figure
from tamias.database.columns import storable
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.errors import TamiasError, UrlError, UsageError
from tamias.model.resource import resource_id
from tamias.model.url import fetch_url, url_key, without_password

LONGEST_REASON = 1000
NO_REASON = "no reason given"
_KEY_FIGURE = "forget_key"
_LAST = 2**62


class Tombstone(msgspec.Struct, frozen=True):
    """A row of `forgotten`. Times are milliseconds UTC."""

    forgotten: int
    resource: str
    url: str
    number: int | None
    """Of the version; None: all that there was."""
    captured_at: int | None
    last_number: int
    reason: str
    by_whom: str
    at: int
    blocked: bool
    """Whether the URL is not fetched again."""
    by_rule: bool
    finished_at: int | None
    """None while bytes of it may be left."""
    remains: str | None

    def covers(self, number: int, captured_at: int) -> bool:
        """Return whether a version of the resource is forgotten."""
        if self.number is not None:
            return self.number == number
        return self.blocked or captured_at <= self.at

    @property
    def is_record(self) -> bool:
        """Return whether it is of a record of a catalogue."""
        return is_record(self.url)

    @property
    def sentence(self) -> str:
        """Return the sentence for users who request it."""
        return forgotten_words(self.at, self.reason)


class Forgotten(TamiasError):
    """Raised for what was in the archive and is forgotten; the tombstone says why."""

    def __init__(self, tombstone: Tombstone) -> None:
        version = "" if tombstone.number is None else f"version {tombstone.number} of "
        super().__init__(f"{version}{tombstone.url} was {tombstone.sentence}")
        self.tombstone = tombstone


_COLUMNS = ", ".join(f"forgotten.{each}" for each in Tombstone.__struct_fields__)
_SQL = statements("tamias.archive", "tombstones.sql", columns=_COLUMNS)


def _tombstones(session: Session, statement: str, **values: Any) -> list[Tombstone]:
    return [Tombstone(*row) for row in session.fetch_all(_SQL[statement], values)]


def is_record(url: str) -> bool:
    """Return whether a name is that of a record, `CATALOGUE#RECORD`: URLs of resources have no fragment."""
    return "#" in url


def forgotten_words(at: int, reason: str) -> str:
    """Return when and why something was forgotten, as a phrase.

    >>> forgotten_words(1700000000123, "asked for by its owner")
    'forgotten on 2023-11-14: asked for by its owner'
    """
    return f"forgotten on {rfc3339(at)[:10]}: {reason}"


def order(
    session: Session,
    targets: Iterable[tuple[str, str, int | None]],
    reason: str,
    by_whom: str,
    *,
    by_rule: bool = False,
) -> list[int]:
    """Puts tombstones for resources (id, URL, version or None for all); returns their numbers.

    From then on nothing of them is given out. A URL that is forgotten as a whole is not fetched again.
    """
    listed = list(targets)
    values = {
        "resource": [resource for resource, _, _ in listed],
        "url": [storable(url) for _, url, _ in listed],
        "number": [number for _, _, number in listed],
        "reason": storable(reason[:LONGEST_REASON]),
        "by_whom": by_whom,
        "at": session.now(),
        "blocked": not by_rule and any(number is None for _, _, number in listed),
        "by_rule": by_rule,
    }
    return [row[0] for row in session.fetch_all(_SQL["order"], values)]


def lift(session: Session, resources: Sequence[str], by_whom: str) -> list[str]:
    """The URLs of these may be fetched again; returns those that could not be."""
    values = {"resource": list(resources), "now": session.now(), "by_whom": by_whom}
    return [row[0] for row in session.fetch_all(_SQL["lift"], values)]


def tombstones_of(session: Session, resources: Sequence[str]) -> list[Tombstone]:
    """Return the tombstones of some resources, the latest first."""
    return _tombstones(session, "tombstones", resource=list(resources))


def all_tombstones(
    session: Session, *, before: int | None = None, limit: int = 1000, rules: bool = False
) -> list[Tombstone]:
    """Return tombstones, the latest first; those that rules have made only if `rules`."""
    return _tombstones(session, "all_tombstones", before=before or _LAST, limit=limit, rules=rules)


def under_way(session: Session) -> list[Tombstone]:
    """Return the tombstones of which bytes may be left."""
    return _tombstones(session, "under_way")


def has_captures_left(session: Session) -> bool:
    """Return whether records of WARC files are to be erased that retention rules do not keep."""
    return session.fetch_one(b"SELECT FROM erasing_capture LIMIT 1") is not None


def check_forgotten(session: Session, resource: str, number: int | None = None) -> None:
    """Raise `Forgotten` if a resource or version that is not there was forgotten."""
    for each in tombstones_of(session, [resource]):
        if each.number is None or each.number == number:
            raise Forgotten(each)


def check_gone(session: Session, resource: str, number: int | None) -> None:
    """Raise `Forgotten` if a version of a resource, or all of them, were forgotten."""
    for each in tombstones_of(session, [resource]):
        if number is None or each.number is None or each.number == number:
            raise Forgotten(each)


def check_moment(session: Session, resource: str, since: int, moment: int) -> None:
    """Raise `Forgotten` if another version than that of `since` held at a moment."""
    for each in tombstones_of(session, [resource]):
        if each.captured_at is not None and since < each.captured_at <= moment:
            raise Forgotten(each)


def is_forgotten(
    session: Session, resource: str, number: int | None = None, captured_at: int | None = None
) -> Tombstone | None:
    """The tombstone that covers a version of a resource, or the resource as a whole, if there is one."""
    for each in tombstones_of(session, [resource]):
        if number is None and captured_at is None:
            if each.number is None and (each.blocked or each.finished_at is None):
                return each
        elif each.covers(number or 0, captured_at if captured_at is not None else _LAST):
            return each
    return None


def blocked_urls(session: Session) -> dict[str, str]:
    """URLs that are not fetched again, with what is said of each."""
    return {url: forgotten_words(at, reason) for url, at, reason in session.fetch_all(_SQL["blocks"])}


def blocked_bodies(session: Session) -> dict[tuple[str, str], str]:
    """Bodies of forgotten versions by URL and SHA-256, which are not stored again for that URL."""
    rows = session.fetch_all(_SQL["blocked_bodies"])
    return {(url, sha256): forgotten_words(at, reason) for url, sha256, at, reason in rows}


def blocks_mark(session: Session) -> tuple[int, ...]:
    """Return numbers that change when the blocks do."""
    return session.fetch_one(_SQL["blocks_changed"]) or ()


def marks_key(session: Session) -> bytes:
    """The key of the marks of this archive, made when it is first needed."""
    known = read_figure(session, _KEY_FIGURE)
    if known is None:
        write_figure(session, _KEY_FIGURE, secrets.token_hex(32), session.now())
        known = read_figure(session, _KEY_FIGURE)
    return bytes.fromhex(str(known))


class ForgetTarget(msgspec.Struct, frozen=True):
    """A resource or version to forget, and how much that removes."""

    resource: str
    url: str
    number: int | None
    """Of the version; None: all of it."""
    versions: int
    """With suspicious responses."""
    bytes: int
    """Of their bodies."""
    stored_bytes: int
    """Of the records of those that no other resource has."""


def find_target(session: Session, url: str, number: int | None, names: frozenset[str]) -> ForgetTarget:
    """Find what a URL names. Raises `UsageError` where there is no such version, and `UrlError`."""
    resource, known = _named(session, url, names)
    values = {"resource": resource, "number": number}
    if number is not None and session.fetch_one(_SQL["has_version"], values) != (True,):
        gone = is_forgotten(session, resource, number)
        if gone is None:
            raise UsageError(f"{known} has no version {number}; 'tamias versions' lists them")
    return ForgetTarget(resource, known, number, *(session.fetch_one(_SQL["weight"], values) or (0, 0, 0)))


def _named(session: Session, url: str, names: frozenset[str]) -> tuple[str, str]:
    """The name and the address of a resource or a record, known or not."""
    record = resource_id(url)
    if session.fetch_one(_SQL["is_record"], {"resource": record}) == (True,):
        return record, url
    fetched = without_password(fetch_url(url))
    name = resource_id(url_key(fetched, names))
    row = session.fetch_one(_SQL["known_as"], {"resource": name, "url": spellings(fetched)})
    return (row[0], row[1]) if row else (name, fetched)


def put_tombstone(session: Session, target: ForgetTarget, reason: str | None, by_whom: str) -> list[int]:
    """Put a tombstone; the feature `forgetting` removes the bytes."""
    return order(session, [(target.resource, target.url, target.number)], reason or NO_REASON, by_whom)


def lift_blocks(session: Session, urls: Sequence[str], names: frozenset[str], by_whom: str) -> list[str]:
    """URLs that may be fetched again. Raises `UsageError` for one that was not blocked."""
    named = {url: _named(session, url, names)[0] for url in urls}
    lifted = lift(session, list(named.values()), by_whom)
    if not lifted:
        raise UsageError(f"not blocked: {', '.join(urls)}. 'tamias forget --list' shows what is.")
    return lifted


def spellings(url: str) -> list[str]:
    """An address as it may stand in rows and records."""
    try:
        fetched = fetch_url(url)
    except UrlError:
        return [url]
    return list(dict.fromkeys((url, fetched, without_password(fetched))))
