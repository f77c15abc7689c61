"""The captures that another archive lists: TimeMaps (links, JSON, CDXJ) and answers of CDX servers. Pure."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any
from urllib.parse import quote

import msgspec

from tamias.analyse.links.discovery import parsed_links
from tamias.archive.moments import digits

NO_END = 1 << 62
MOST_LISTED = 100_000
"""Captures that a run takes from all listings together; one more is read, which shows that there are more."""
_DIGITS = re.compile(r"[0-9]{14}")
_REPLAYED = re.compile(r"/([0-9]{14})(?:[a-z]{2}_)?/(?=[a-z]+:)")
_RESUMES = re.compile(r',\s*\[\s*\],\s*\["([^"]+)"\]\s*\]\Z|\n\s*\n(\S+)\Z')
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
    """Other pages that it names: TimeMaps, or the rest of an answer of a CDX server."""


def listing_address(source: str, url: str, between: tuple[int, int] = (0, NO_END)) -> str:
    """Return the address to ask: of a TimeMap, with the URL behind it; of a CDX server, with a query.

    >>> listing_address("https://a.example/timemap/link/", "http://b.example/")
    'https://a.example/timemap/link/http://b.example/'
    >>> listing_address("https://a.example/web/cdx", "http://b.example/?q=1", (1609459200000, NO_END))
    'https://a.example/web/cdx?url=http%3A%2F%2Fb.example%2F%3Fq%3D1&output=json&showResumeKey=true&from=20210101000000'
    """
    if url in source or "url=" in source:
        return source
    if source.endswith("/"):
        return source + url
    ends = [("from", between[0], 0), ("to", between[1], NO_END)]
    times = [f"&{name}={digits(at)}" for name, at, none in ends if at != none]
    return f"{source}?url={quote(url, safe='')}&output=json&showResumeKey=true{''.join(times)}"


def read_listing(body: bytes, address: str) -> ArchiveListing | None:
    """Return what an answer lists, the earliest first; None where it is no TimeMap and no CDX."""
    text = body.decode("utf-8", "replace").strip()
    if text.startswith("<"):
        return None if "rel=" not in text else _of_links(text, address)
    if text.startswith(("{", "[")) and '"mementos"' in text:
        return _of_json(text)
    replay = f"{re.split(r'/cdx(?:/search/cdx)?(?=[?]|$)|/timemap/', address)[0]}"
    replay += "/web/" if "/cdx/search/cdx" in address else "/"
    rest, key = _resume_key(text)
    rows = islice(_rows(rest), MOST_LISTED + 1)
    found = [each for row in rows if (each := _of_row(row, replay)) is not None]
    if not found and rest and rest not in ("[]", "[[]]"):
        return None
    further = [f"{re.sub(r'[&]resumeKey=[^&]*', '', address)}&resumeKey={key}"] if key else []
    return ArchiveListing(_sorted(found), further)


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


def _resume_key(text: str) -> tuple[str, str]:
    """Return the lines of a CDX server, and the key by which it sends the rest.

    >>> _resume_key('a 20210101000000 http://a.example/\\n\\na%29%2F+20220101')
    ('a 20210101000000 http://a.example/', 'a%29%2F+20220101')
    """
    if found := _RESUMES.search(text):
        return text[: found.start()] + "]" * bool(found[1]), quote(found[1] or found[2], safe="%+")
    return text, ""


def _of_links(text: str, address: str) -> ArchiveListing:
    found, further = [], []
    for link in parsed_links(text, MOST_LISTED + 1):
        at = milliseconds(link.parameters.get("datetime", ""))
        if "memento" in link.relations and at is not None:
            found.append(ListedCapture(at, link.target))
        elif "timemap" in link.relations and link.target != address:
            further.append(link.target)
    return ArchiveListing(_sorted(found), further)


def _of_json(text: str) -> ArchiveListing | None:
    try:
        said = msgspec.json.decode(text, type=dict[str, Any])
        listed = said["mementos"]["list"][: MOST_LISTED + 1]
        found = [(milliseconds(str(each["datetime"])), str(each["uri"])) for each in listed]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return None
    return ArchiveListing(_sorted([ListedCapture(at, uri) for at, uri in found if at is not None]))


def _rows(text: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each line: JSON by line or as one array, CDXJ, or columns of text."""
    try:
        names, *rows = msgspec.json.decode(text, type=list[list[str]])
        yield from (dict(zip(names, row, strict=False)) for row in rows)
        return
    except (msgspec.MsgspecError, ValueError):
        pass
    for line in text.splitlines():
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
