"""The captures that another archive lists: TimeMaps (links, JSON, CDXJ) and answers of CDX servers. Pure."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import msgspec

from tamias.analyse.links.header import parsed_links

MOST_LISTED = 100_000
_DIGITS = re.compile(r"[0-9]{14}")
_REPLAYED = re.compile(r"/([0-9]{14})(?:[a-z]{2}_)?/(?=[a-z]+:)")
_FIELDS = (7, 9, 11)
"""The numbers of fields that a line of CDX may have."""
_PLACES = (1, 2, 4, 5)
_NAMES = ("timestamp", "url", "status", "digest")
_OTHER_NAMES = {"original": "url", "statuscode": "status"}


class ListedCapture(msgspec.Struct, frozen=True):
    """A capture that another archive has."""

    at: int
    """Its time in milliseconds."""
    memento: str
    """The address of its replay."""
    status: str = ""
    digest: str = ""


class ArchiveListing(msgspec.Struct, frozen=True):
    """A page of what an archive lists."""

    captures: list[ListedCapture]
    further: list[str] = []
    """Other TimeMaps that it names."""


def listing_address(source: str, url: str) -> str:
    """Return the address to ask: of a TimeMap, with the URL behind it; of a CDX server, with a query.

    >>> listing_address("https://a.example/timemap/link/", "http://b.example/")
    'https://a.example/timemap/link/http://b.example/'
    >>> listing_address("https://a.example/web/cdx", "http://b.example/?q=1")
    'https://a.example/web/cdx?url=http%3A%2F%2Fb.example%2F%3Fq%3D1&output=json'
    """
    if url in source or "url=" in source:
        return source
    if source.endswith("/"):
        return source + url
    return f"{source}?url={quote(url, safe='')}&output=json"


def read_listing(body: bytes, address: str) -> ArchiveListing | None:
    """Return what an answer lists, the earliest first; None where it is no TimeMap and no CDX."""
    text = body.decode("utf-8", "replace").strip()
    if text.startswith("<"):
        return None if "rel=" not in text else _of_links(text, address)
    if text.startswith(("{", "[")) and '"mementos"' in text:
        return _of_json(text)
    replay = f"{re.split(r'/cdx(?:/search/cdx)?(?=[?]|$)|/timemap/', address)[0]}"
    replay += "/web/" if "/cdx/search/cdx" in address else "/"
    found = [each for row in _rows(text) if (each := _of_row(row, replay)) is not None]
    return ArchiveListing(_sorted(found)) if found or not text or text in ("[]", "[[]]") else None


def raw_memento(memento: str) -> str:
    """Return the address of the bytes as they were captured, in archives that change links in pages.

    >>> raw_memento("https://a.example/web/20260101000000mp_/http://b.example/")
    'https://a.example/web/20260101000000id_/http://b.example/'
    """
    return _REPLAYED.sub(r"/\1id_/", memento, count=1)


def milliseconds(text: str) -> int | None:
    """Return the time of 14 digits, of RFC 3339 or of an HTTP date."""
    try:
        if _DIGITS.fullmatch(text):
            moment = datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        elif text[:4].isdigit():
            moment = datetime.fromisoformat(text)
        else:
            moment = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()) * 1000


def _of_links(text: str, address: str) -> ArchiveListing:
    found, further = [], []
    for link in parsed_links(text, MOST_LISTED):
        at = milliseconds(link.parameters.get("datetime", ""))
        if "memento" in link.relations and at is not None:
            found.append(ListedCapture(at, link.target))
        elif "timemap" in link.relations and link.target != address:
            further.append(link.target)
    return ArchiveListing(_sorted(found), further)


def _of_json(text: str) -> ArchiveListing | None:
    try:
        said = msgspec.json.decode(text, type=dict[str, Any])
        listed = said["mementos"]["list"][:MOST_LISTED]
        found = [(milliseconds(str(each["datetime"])), str(each["uri"])) for each in listed]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return None
    return ArchiveListing(_sorted([ListedCapture(at, uri) for at, uri in found if at is not None]))


def _rows(text: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each line: JSON by line or as one array, CDXJ, or columns of text."""
    try:
        names, *rows = msgspec.json.decode(text, type=list[list[str]])
        yield from (dict(zip(names, row, strict=False)) for row in rows[:MOST_LISTED])
        return
    except (msgspec.MsgspecError, ValueError):
        pass
    for line in text.splitlines()[:MOST_LISTED]:
        head, brace, rest = line.partition("{")
        try:
            if brace:
                known = dict(zip(("urlkey", "timestamp"), head.split(), strict=False))
                fields = {**known, **msgspec.json.decode(brace + rest, type=dict[str, Any])}
                yield {name: str(value) for name, value in fields.items()}
            elif len(words := line.split()) in _FIELDS:
                yield dict(zip(_NAMES, (words[place] for place in _PLACES), strict=True))
        except msgspec.MsgspecError:
            continue


def _of_row(row: dict[str, str], replay: str) -> ListedCapture | None:
    named = {_OTHER_NAMES.get(name, name): value for name, value in row.items()}
    stamp, url = named.get("timestamp", ""), named.get("url") or named.get("uri", "")
    at = milliseconds(stamp)
    if at is None or not url:
        return None
    memento = url if _REPLAYED.search(url) else f"{replay}{stamp}/{url}"
    return ListedCapture(at, memento, named.get("status", ""), named.get("digest", ""))


def _sorted(found: list[ListedCapture]) -> list[ListedCapture]:
    return sorted(found, key=lambda each: each.at)
