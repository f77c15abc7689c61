"""TDMRep: whether text and data mining is reserved, in headers, metas and `/.well-known/tdmrep.json`.

A value that is neither 0 nor 1 counts as not given, as the report of 2024-05-10 has it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from tamias.model.site import Signal
from tamias.model.usage import TDM_KEYS as KEYS
from tamias.permit.paths import canonical_path, canonical_pattern, literal_pattern, matches, path_of

PLACE = "/.well-known/tdmrep.json"
RESERVATION, POLICY = KEYS

MOST_BYTES = 1 << 20
MOST_RULES = 10_000
_LONGEST_POLICY = 2048


class TdmRule(msgspec.Struct, frozen=True, array_like=True):
    """The rule of the file for the paths that a pattern matches. Made to be cached."""

    pattern: str
    reservation: str | None = None
    policy: str | None = None


def tdm_rules(body: bytes) -> tuple[TdmRule, ...]:
    """The rules of a tdmrep.json, in order. What makes no sense is passed over; never raises."""
    try:
        rules = msgspec.json.decode(body[: MOST_BYTES + 1])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    return tuple(_rules(rules[:MOST_RULES])) if isinstance(rules, list) else ()


def tdm_file_signals(rules: Sequence[TdmRule], url: str) -> tuple[Signal, ...]:
    """Return what the first rule that matches says of a URL."""
    path = canonical_path(path_of(url))
    rule = next((rule for rule in rules if matches(path, rule.pattern)), None)
    if rule is None:
        return ()
    fields = ((RESERVATION, rule.reservation), (POLICY, rule.policy))
    return tuple(Signal("tdmrep.json", key, value) for key, value in fields if value is not None)


def tdm_signals(source: str, pairs: Iterable[tuple[str, str]]) -> Iterator[Signal]:
    """Yield what headers or metas say: names in any case, and their values."""
    for name, value in pairs:
        key = name.strip().lower()
        if key in KEYS and (valid := _valid(key, value)) is not None:
            yield Signal(source, key, valid)


def _rules(entries: list[Any]) -> Iterator[TdmRule]:
    for entry in entries:
        location = entry.get("location") if isinstance(entry, dict) else None
        if isinstance(location, str) and location.startswith(("/", "*")):
            yield TdmRule(
                canonical_pattern(literal_pattern(location)),
                _valid(RESERVATION, entry.get(RESERVATION)),
                _valid(POLICY, entry.get(POLICY)),
            )


def _valid(key: str, value: object) -> str | None:
    text = value.strip() if isinstance(value, str) else str(value) if type(value) is int else ""
    if key == RESERVATION:
        return text if text in ("0", "1") else None
    return text if text and len(text) <= _LONGEST_POLICY else None
