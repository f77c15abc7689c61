"""Seeds from the JSON lines of a URLFrontier, as its own client dumps and takes them; or one URL a line."""

from collections.abc import Iterator
from typing import Any

import msgspec

from tamias.model.item import NEVER, Seed
from tamias.model.url import fetch_url
from tamias.seeds.imported import seeds_by_line

LAST_SECOND = 253_402_300_799
"""The end of the year 9999: a later date is taken for this one."""
MOST_NAME = 255


class UrlFrontierSeeds:
    """Carries out `protocols.SeedSource`: keys, crawls, metadata and dates are kept."""

    def seeds(self, argument: str) -> Iterator[Seed]:
        return seeds_by_line(argument, seed_of_line)


def seed_of_line(line: bytes) -> Seed | None:
    """The seed of one line; None for an empty one. Raises `ValueError` for what is none.

    >>> seed_of_line(b'{"discovered": {"info": {"url": "http://a.example/", "key": "k"}}}').queue
    'k'
    """
    text = line.strip()
    if not text or text.startswith(b"#"):
        return None
    if not text.startswith(b"{"):
        return Seed(address=fetch_url(text.decode()))
    item = msgspec.json.decode(text, type=dict[str, Any])
    known = _known(item)
    state = known or _table(item.get("discovered") or {})
    info = _table(state.get("info") or item.get("info") or item)
    due = None if known is None else _due(known)
    return Seed(
        address=fetch_url(_name(info, "url", 32_768)),
        queue=_name(info, "key") or None,
        crawl=_name(info, "crawlID") or None,
        metadata=_metadata(_table(info.get("metadata") or {})),
        due=due,
    )


def _known(item: dict[str, Any]) -> dict[str, Any] | None:
    return _table(item["known"]) if item.get("known") is not None else None


def _due(known: dict[str, Any]) -> int:
    """Protocol buffers write long numbers as text, and leave out what is zero."""
    date_text = known.get("refetchableFromDate") or known.get("refetchable_from_date") or 0
    date = int(msgspec.convert(date_text, int | str))
    if date < 0:
        raise ValueError("a date before all dates")
    return min(date, LAST_SECOND) * 1000 if date else NEVER


def _metadata(table: dict[str, Any]) -> dict[str, list[str]]:
    found = {}
    for name, values in table.items():
        listed = values.get("values", []) if isinstance(values, dict) else values
        found[name] = msgspec.convert(listed, list[str])
    return found


def _table(value: Any) -> dict[str, Any]:
    return msgspec.convert(value, dict[str, Any])


def _name(info: dict[str, Any], field: str, most: int = MOST_NAME) -> str:
    value = info.get(field) or ""
    if not isinstance(value, str) or len(value) > most or "\0" in value:
        raise ValueError(f"{field} is not a text of at most {most} characters")
    return value
