"""What will happen to an address that is put under watch, in plain sentences. Nothing is fetched for it."""

from typing import Any

import msgspec

from tamias.archive.moments import rfc3339
from tamias.archive.versions.resources import read_resources
from tamias.model.resource import Resource, resource_id
from tamias.model.url import authority, fetch_url, host, is_address, url_key
from tamias.permit.robots import Rules
from tamias.serve.pages.datasets.reasons import duration
from tamias.serve.pages.queries import place_of_host
from tamias.serve.queries.thread_pool import ServiceSession


class AddPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What is known before the first visit."""

    url: str
    """In the form in which it will be asked for."""
    host: str = ""
    refused: str | None = None
    """Why it will not be taken, if so."""
    dataset: str | None = None
    """Its id, where it is under watch already."""
    said: list[str] = []
    """What will happen, in order."""


def account(db: ServiceSession, told: str) -> AddPreview:
    """Of one address, as a person typed it."""
    if not is_address(told):
        return AddPreview(url=told, refused="not a valid URL")
    url = fetch_url(told)
    refused = db.admission.watch_refusal(url)
    if refused:
        return AddPreview(url=url, host=host(url), refused=refused)
    known = _known(db, url)
    said = [_first(known), _robots(db, url), _pace(db, url), _later(known)]
    return AddPreview(
        url=url,
        host=host(url),
        dataset=known.id if known else None,
        said=[each for each in said if each],
    )


def named(db: ServiceSession, url: str) -> str:
    """The id that a URL has, or would have."""
    names = frozenset(db.settings.filters.session_names)
    return resource_id(url_key(fetch_url(url), names))


def _known(db: ServiceSession, url: str) -> Resource | None:
    return next(iter(read_resources(db.session, [named(db, url)])), None)


def _first(known: Resource | None) -> str:
    if known is None:
        return "It is not watched yet. The first visit comes as soon as politeness allows."
    versions = "1 version" if known.versions == 1 else f"{known.versions} versions"
    if known.state == "stopped":
        return f"It was watched before and has {versions}. Adding it again begins with a visit."
    if known.next_visit is None:
        return f"It is watched, with {versions}. Its next visit comes as soon as politeness allows."
    return f"It is watched, with {versions}. {_planned(known.next_visit)}."


def _planned(at: int) -> str:
    return f"The next visit is planned for {rfc3339(at)[:16].replace('T', ' ')} UTC"


def _robots(db: ServiceSession, url: str) -> str:
    place = place_of_host(db, host(url))
    found = db.rows("robots", place) if place else []
    rules = next((packed for name, _, _, packed in found if name == authority(url)), None)
    if not db.settings.permit.robots:
        return "This service does not use robots.txt."
    if rules is None:
        return "The server's robots.txt is read first. If it forbids the address, nothing is fetched."
    verdict = msgspec.msgpack.decode(rules, type=Rules).verdict(url)
    if verdict.allowed:
        return f"The server's robots.txt allows it ({verdict.rule})."
    return f"The server's robots.txt forbids it ({verdict.rule}). It is not fetched unless that changes."


def _pace(db: ServiceSession, url: str) -> str:
    place = place_of_host(db, host(url))
    found: list[tuple[Any, ...]] = db.rows("politeness", place) if place else []
    if not found:
        return f"The host is new. Requests to it are {db.settings.fetch.delay:g} seconds apart."
    _, delay_ms, blocked_until, _, waiting = found[0]
    pause = blocked_until - db.session.now()
    peace = f" It is paused for another {duration(pause / 1000)}." if pause > 0 else ""
    return (
        f"Requests to the host are at least {delay_ms / 1000:g} seconds apart. "
        f"{'1 address is' if waiting == 1 else f'{waiting} addresses are'} queued.{peace}"
    )


def _later(known: Resource | None) -> str:
    if known is not None and known.state == "stopped":
        return "Its title and format stay as they are."
    if known is not None:
        return "Its title and format stay as they are. Adding it again fetches nothing."
    return (
        "Every version is stored unchanged. It is visited again after some days, then more often "
        "if it changes often and less often if it does not."
    )
