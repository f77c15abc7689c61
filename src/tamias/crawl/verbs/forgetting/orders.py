"""What is to be forgotten, as somebody names it: found, weighed, and given a tombstone."""

from collections.abc import Sequence

import msgspec

from tamias.archive.forgetting.tombstones import SQL, is_forgotten, lift, order
from tamias.crawl.verbs.forgetting.forgetter import spellings
from tamias.database.connect import Session
from tamias.model.errors import UsageError
from tamias.model.resource import resource_id
from tamias.model.url import fetch_url, url_key, without_password

NO_REASON = "no reason given"


class ForgetTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be forgotten, and what that removes."""

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
    """What somebody means by a URL. Raises `UsageError` where there is no such version, `UrlError`."""
    resource, known = _named(session, url, names)
    asked = {"resource": resource, "number": number}
    if number is not None and session.fetch_one(SQL["has_version"], asked) != (True,):
        gone = is_forgotten(session, resource, number)
        if gone is None:
            raise UsageError(f"{known} has no version {number}; 'tamias versions' lists them")
    weight = session.fetch_one(SQL["weight"], asked) or (0, 0, 0)
    return ForgetTarget(
        resource=resource,
        url=known,
        number=number,
        versions=weight[0],
        bytes=weight[1],
        stored_bytes=weight[2],
    )


def _named(session: Session, url: str, names: frozenset[str]) -> tuple[str, str]:
    """The name and the address of a resource or a record, known or not."""
    record = resource_id(url)
    if session.fetch_one(SQL["is_record"], {"resource": record}) == (True,):
        return record, url
    fetched = without_password(fetch_url(url))
    name = resource_id(url_key(fetched, names))
    row = session.fetch_one(SQL["known_as"], {"resource": name, "url": spellings(fetched)})
    return (row[0], row[1]) if row else (name, fetched)


def put_tombstone(session: Session, target: ForgetTarget, reason: str | None, by_whom: str) -> list[int]:
    """From now on it is forgotten; `Forgetter` removes its bytes."""
    return order(session, [(target.resource, target.url, target.number)], reason or NO_REASON, by_whom)


def lift_blocks(session: Session, urls: Sequence[str], names: frozenset[str], by_whom: str) -> list[str]:
    """URLs that may be fetched again. Raises `UsageError` for one that was not blocked."""
    named = {url: _named(session, url, names)[0] for url in urls}
    lifted = lift(session, list(named.values()), by_whom)
    if not lifted:
        raise UsageError(f"not blocked: {', '.join(urls)}. 'tamias forget --list' shows what is.")
    return lifted
