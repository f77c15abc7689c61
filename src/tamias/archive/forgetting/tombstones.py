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
from tamias.model.errors import TamiasError

LONGEST_REASON = 1000
SQL = statements("tamias.archive.forgetting", "forgetting.sql")
_KEY_FIGURE = "forget_key"
_LAST = 2**62


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `forgotten`. Times are milliseconds UTC."""

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
        """Whether a version of the resource is forgotten."""
        if self.number is not None:
            return self.number == number
        return self.blocked or captured_at <= self.at

    @property
    def is_record(self) -> bool:
        """Whether it is of a record of a catalogue."""
        return is_record(self.url)

    @property
    def sentence(self) -> str:
        """What is said to whoever asks for it."""
        return forgotten_words(self.at, self.reason)


class Forgotten(TamiasError):
    """What is asked for was here and is forgotten; the tombstone says why."""

    def __init__(self, tombstone: Tombstone) -> None:
        version = "" if tombstone.number is None else f"version {tombstone.number} of "
        super().__init__(f"{version}{tombstone.url} was {tombstone.sentence}")
        self.tombstone = tombstone


def _tombstones(rows: Iterable[Sequence[Any]]) -> list[Tombstone]:
    return [Tombstone(**dict(zip(Tombstone.__struct_fields__, row, strict=True))) for row in rows]


def is_record(url: str) -> bool:
    """Whether a name is that of a record, `CATALOGUE#RECORD`: URLs of resources have no fragment."""
    return "#" in url


def forgotten_words(at: int, reason: str) -> str:
    """When and why.

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
    asked = {
        "resource": [resource for resource, _, _ in listed],
        "url": [storable(url) for _, url, _ in listed],
        "number": [number for _, _, number in listed],
        "reason": storable(reason[:LONGEST_REASON]),
        "by_whom": by_whom,
        "at": session.now(),
        "blocked": not by_rule and any(number is None for _, _, number in listed),
        "by_rule": by_rule,
    }
    return [row[0] for row in session.fetch_all(SQL["order"], asked)]


def lift(session: Session, resources: Sequence[str], by_whom: str) -> list[str]:
    """The URLs of these may be fetched again; returns those that could not be."""
    asked = {"resource": list(resources), "now": session.now(), "by_whom": by_whom}
    return [row[0] for row in session.fetch_all(SQL["lift"], asked)]


def tombstones_of(session: Session, resources: Sequence[str]) -> list[Tombstone]:
    """All of some resources, the latest first."""
    return _tombstones(session.fetch_all(SQL["tombstones"], {"resource": list(resources)}))


def all_tombstones(
    session: Session, *, before: int | None = None, limit: int = 1000, rules: bool = False
) -> list[Tombstone]:
    """All of the archive, the latest first; those that rules have made only if `rules`."""
    asked = {"before": before or _LAST, "limit": limit, "rules": rules}
    return _tombstones(session.fetch_all(SQL["all_tombstones"], asked))


def under_way(session: Session) -> list[Tombstone]:
    """Those of which something may be left."""
    return _tombstones(session.fetch_all(SQL["under_way"]))


def check_forgotten(session: Session, resource: str, number: int | None = None) -> None:
    """Before it is said that there is no such resource or version: raises `Forgotten` if there was."""
    for each in tombstones_of(session, [resource]):
        if each.number is None or each.number == number:
            raise Forgotten(each)


def check_gone(session: Session, resource: str, number: int | None) -> None:
    """The same for a resource that is there: by the number of a version, or if all versions are gone."""
    for each in tombstones_of(session, [resource]):
        if number is None or each.number is None or each.number == number:
            raise Forgotten(each)


def check_moment(session: Session, resource: str, since: int, moment: int) -> None:
    """Before the version of `since` is given for a moment: raises `Forgotten` if another held then."""
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
    return {url: forgotten_words(at, reason) for url, at, reason in session.fetch_all(SQL["blocks"])}


def blocked_bodies(session: Session) -> dict[tuple[str, str], str]:
    """Bodies of forgotten versions by URL and SHA-256, which are not stored again for that URL."""
    rows = session.fetch_all(SQL["blocked_bodies"])
    return {(url, sha256): forgotten_words(at, reason) for url, sha256, at, reason in rows}


def blocks_mark(session: Session) -> tuple[int, ...]:
    """By which it is known whether the blocks are still the same."""
    return session.fetch_one(SQL["blocks_changed"]) or ()


def marks_key(session: Session) -> bytes:
    """The key of the marks of this archive, made when it is first needed."""
    known = read_figure(session, _KEY_FIGURE)
    if known is None:
        write_figure(session, _KEY_FIGURE, secrets.token_hex(32), session.now())
        known = read_figure(session, _KEY_FIGURE)
    return bytes.fromhex(str(known))
