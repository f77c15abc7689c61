"""What the harvesters to catalogues share: what records become, how an answer ends a harvest, loose JSON."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from tamias.harvesters.kit.mapping import MappedRecord
from tamias.harvesters.kit.terms import sound_iri
from tamias.model.capture import Capture, Outcome
from tamias.model.dataset import Dataset
from tamias.model.finding import Datasets, Finding, HarvestEnd, Links, Quads, SourceRecords
from tamias.protocols import PoliteClient

MOST_PAGE = 64 << 20
"""Bytes of one answer of an interface; more is not read."""


def described(records: Sequence[MappedRecord], catalogue: str) -> list[Finding]:
    """Records as DCAT, as documents, and as datasets with the addresses of their data."""
    datasets = [each.dataset for each in records]
    return [*kept_records(records), *links(addresses_of(datasets), catalogue)]


def kept_records(records: Sequence[MappedRecord]) -> list[Finding]:
    """What records say, the records themselves, and the datasets that they describe."""
    if not records:
        return []
    quads = [quad for each in records for quad in each.quads]
    sources = [each.source for each in records]
    return [Quads(quads), SourceRecords(sources), Datasets([each.dataset for each in records])]


def addresses_of(datasets: Iterable[Dataset]) -> dict[str, str | None]:
    """Where the data stand, with the kind of what is there; the landing page where nothing else is known."""
    found: dict[str, str | None] = {}
    for dataset in datasets:
        for each in dataset.distributions:
            if each.service:
                found[each.service] = "sparql" if each.service_kind == "sparql" else None
            if each.url != each.service:
                found.setdefault(each.url, None)
        if not dataset.distributions and dataset.landing_page:
            found.setdefault(dataset.landing_page, None)
    return found


def links(addresses: dict[str, str | None], base: str) -> list[Finding]:
    """Links to addresses, one finding for each kind; what is no address is left out."""
    kinds: dict[str | None, list[str]] = {}
    for address, kind in addresses.items():
        if sound_iri(address, web=True) is not None:
            kinds.setdefault(kind, []).append(address)
    return [Links(references, base, kind) for kind, references in kinds.items()]


def failure(capture: Capture, what: str, most: int = MOST_PAGE) -> HarvestEnd | None:
    """The end that an answer makes of a harvest; None where it can be read on."""
    if capture.outcome is Outcome.OK and capture.body is not None:
        if capture.body.size <= most:
            return None
        reason = f"{capture.body.size} bytes, more than the {most} that are read"
        return HarvestEnd(outcome=Outcome.FAILED, reason=f"{what} {capture.url}: {reason}")
    outcome = capture.outcome if capture.outcome is not Outcome.OK else Outcome.FAILED
    return HarvestEnd(
        outcome=outcome,
        reason=f"{what} {capture.url}: {capture.reason or 'nothing came'}",
        retry=capture.retry,
        retry_after_ms=capture.retry_after_ms,
    )


def json_of(client: PoliteClient, capture: Capture) -> Any:
    """The JSON that came. Raises `msgspec.DecodeError` for anything else, and for what nests too deep."""
    try:
        return msgspec.json.decode(client.body(capture, MOST_PAGE))
    except (RecursionError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError(str(error)) from error


def text(value: Any) -> str | None:
    """A text or a number as text; None for nothing, for blanks and for any other shape.

    >>> text(" a "), text(7), text([]), text("")
    ('a', '7', None, None)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip() or None


def texts(value: Any) -> tuple[str, ...]:
    """The texts of a list, or of a single text, each once.

    >>> texts(["a", None, "a", "b"]), texts("a"), texts({"a": 1})
    (('a', 'b'), ('a',), ())
    """
    found = map(text, value if isinstance(value, list) else [value])
    return tuple(dict.fromkeys(each for each in found if each))


def table(value: Any) -> dict[str, Any]:
    """A JSON object; an empty one for any other shape."""
    return value if isinstance(value, dict) else {}


def tables(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, or a single one."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


def count(value: Any) -> int | None:
    """A number from 0 up, also where it is written as text.

    >>> count(5), count("5"), count(-1), count(True), count("many")
    (5, 5, None, None, None)
    """
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        return int(value.strip()[:18])
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 2**63 else None


class CycleDetector(msgspec.Struct, kw_only=True):
    """Notices that pages come round again, whatever their number, in constant space (after Brent)."""

    mark: bytes = b""
    steps: int = 0
    power: int = 1

    def again(self, page: Iterable[str]) -> bool:
        """Whether a page that holds these records has been there; one without records never counts."""
        mark = sha256("\n".join(page).encode()).digest()[:16]
        if mark == _NOTHING:
            return False
        if mark == self.mark:
            return True
        self.steps += 1
        if self.steps == self.power:
            self.mark, self.steps, self.power = mark, 0, self.power * 2
        return False


_NOTHING = sha256(b"").digest()[:16]
