"""TimeMaps as text: link format (RFC 6690, RFC 7089), JSON and CDXJ as MemGator writes them. Pure."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from tamias.archive.moments import rfc3339
from tamias.serve.replay.delivery import http_date

PAGE = 1000


class Memento(msgspec.Struct, frozen=True):
    """A version at its address."""

    address: str
    stamp: str
    captured_at: int


class TimeMap(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the list, and its neighbours."""

    original: str
    gate: str
    here: str
    forms: dict[str, str]
    mementos: list[Memento]
    first: Memento
    last: Memento
    before: str | None
    after: str | None


def as_link(told: TimeMap) -> bytes:
    """One link a line."""
    return ",\n".join(_links(told)).encode() + b"\n"


def as_json(told: TimeMap) -> bytes:
    """One document."""
    document: dict[str, Any] = {
        "original_uri": told.original,
        "self": told.here,
        "timegate_uri": told.gate,
        "timemap_uri": {f"{form}_format": address for form, address in told.forms.items()},
        "mementos": {
            "first": _pair(told.first),
            "list": [_pair(each) for each in told.mementos],
            "last": _pair(told.last),
        },
    }
    document |= {key: value for key, value in (("prev", told.before), ("next", told.after)) if value}
    return msgspec.json.encode(document)


def as_cdxj(told: TimeMap) -> bytes:
    """One line for each Memento behind lines about the whole."""
    return b"".join(line + b"\n" for line in _cdxj_lines(told))


def _links(told: TimeMap) -> Iterator[str]:
    low, high = told.mementos[0], told.mementos[-1]
    span = f'; from="{http_date(low.captured_at)}"; until="{http_date(high.captured_at)}"'
    kind = '; type="application/link-format"'
    yield f'<{told.original}>; rel="original"'
    yield f'<{told.here}>; rel="self"{kind}{span}'
    for neighbour in (told.before, told.after):
        if neighbour is not None:
            yield f'<{neighbour}>; rel="timemap"{kind}'
    yield f'<{told.gate}>; rel="timegate"'
    for each in told.mementos:
        yield f'<{each.address}>; rel="{_relation(told, each)}"; datetime="{http_date(each.captured_at)}"'


def _cdxj_lines(told: TimeMap) -> Iterator[bytes]:
    encode = msgspec.json.encode
    yield b'!context ["http://tools.ietf.org/html/rfc7089"]'
    yield b"!id " + encode({"uri": told.here})
    yield b'!keys ["memento_datetime_YYYYMMDDhhmmss"]'
    yield b"!meta " + encode({"original_uri": told.original})
    yield b"!meta " + encode({"timegate_uri": told.gate})
    yield b"!meta " + encode(
        {"timemap_uri": {f"{form}_format": address for form, address in told.forms.items()}}
    )
    for neighbour in (told.before, told.after):
        if neighbour is not None:
            yield b"!meta " + encode({"timemap_page": neighbour})
    for each in told.mementos:
        about = {
            "uri": each.address,
            "rel": _relation(told, each),
            "datetime": http_date(each.captured_at),
        }
        yield each.stamp.encode() + b" " + encode(about)


def _relation(told: TimeMap, memento: Memento) -> str:
    words = [word for word, each in (("first", told.first), ("last", told.last)) if each == memento]
    return " ".join([*words, "memento"])


def _pair(memento: Memento) -> dict[str, str]:
    return {"datetime": rfc3339(memento.captured_at), "uri": memento.address}


FORMS: Final[dict[str, tuple[str, Callable[[TimeMap], bytes]]]] = {
    "link": ("application/link-format", as_link),
    "json": ("application/json", as_json),
    "cdxj": ("application/cdxj+ors", as_cdxj),
}
"""The media type of each form, and who writes it."""
