"""Portal Watch's metrics of one dataset, each from 0 to 1.

Its two slips are mended: keywords are looked for where DCAT has them, and coverage has its metrics defined.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

from tamias.features.quality.claims import ClaimedDescription, ClaimedForm, Got, format_is_true, size_is_true
from tamias.features.quality.formats import (
    is_known_licence,
    is_machine_readable,
    is_open,
    is_open_licence,
    is_registered,
    promised_type,
)

_DATE: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)"
    r"(?:[T ]([01]\d|2[0-4]):[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?\s?(?:Z|[+-]\d\d:?\d\d)?)?)?)?"
)


def is_date(text: str | None) -> bool:
    """Return whether a text is a year, month, day or moment of ISO 8601 that the calendar has.

    >>> is_date("2024-02-29T10:30:00Z"), is_date("2023-02-29"), is_date("29.02.2024")
    (True, False, False)
    """
    found = _DATE.fullmatch((text or "").strip())
    if found is None:
        return False
    try:
        date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError:
        return False
    return True


_WEB: Final = re.compile(r"(https?|ftps?)://[^\s/?#.][^\s/?#]*([/?#]\S*)?", re.IGNORECASE)
_EMAIL: Final = re.compile(r"(mailto:)?[^\s@:/<>\"]+@[^\s@:/<>\".]+(\.[^\s@:/<>\".]+)+", re.IGNORECASE)


def dataset_metrics(claimed: ClaimedDescription, got: Sequence[Got]) -> dict[str, float]:
    """Return all metrics that are known; `got` has one for each form. What was never tried has none."""
    types = [promised_type(form.media_type, form.format) for form in claimed.forms]
    return {
        **_existence(claimed),
        **_conformance(claimed, types),
        "opfo": _share(is_open(kind) for kind in types),
        "opma": _share(is_machine_readable(kind) for kind in types),
        "opli": _share(is_open_licence(form.licence) for form in claimed.forms),
        "reme": 1.0,
        **delivery_metrics(claimed.forms, types, got),
    }


def delivery_metrics(
    forms: Sequence[ClaimedForm], types: Sequence[str | None], got: Sequence[Got]
) -> dict[str, float]:
    """Return the metrics that only an archive can measure: whether the data came and were as claimed."""
    pairs = list(zip(forms, types, got, strict=True))
    known: dict[str, list[bool | None]] = {
        "rere": [each.retrieved for _, _, each in pairs if each.tried],
        "acfo": [format_is_true(kind, each) for _, kind, each in pairs],
        "acsi": [size_is_true(form.byte_size, each) for form, _, each in pairs],
    }
    values = {name: [value for value in found if value is not None] for name, found in known.items()}
    return {name: _share(found) for name, found in values.items() if found}


def is_web_address(text: str) -> bool:
    """Return whether a text has the form of a web address."""
    return _WEB.fullmatch(text.strip()) is not None


def _existence(claimed: ClaimedDescription) -> dict[str, float]:
    forms = claimed.forms
    found = [part is not None for form in forms for part in (form.format, form.media_type, form.byte_size)]
    return {
        "exac": _share(bool(form.url.strip()) for form in forms),
        "exdi": (claimed.title + claimed.description + claimed.keywords) / 3,
        "exco": float(claimed.contact or claimed.publisher),
        "exri": _share(form.licence is not None for form in forms),
        "expr": _share(found),
        "exda": _share(text is not None for text in _dates(claimed)),
        "exsp": float(claimed.spatial),
        "exte": float(claimed.temporal),
    }


def _conformance(claimed: ClaimedDescription, types: Sequence[str | None]) -> dict[str, float]:
    return {
        "coac": _share(is_web_address(form.url) for form in claimed.forms),
        "coce": float(any(_EMAIL.fullmatch(text) for text in claimed.emails)),
        "cocu": float(any(is_web_address(text) for text in claimed.pages)),
        "coda": _share(is_date(text) for text in _dates(claimed)),
        "coli": _share(is_known_licence(form.licence) for form in claimed.forms),
        "cofo": _share(is_registered(kind) for kind in types),
    }


def _dates(claimed: ClaimedDescription) -> list[str | None]:
    """Return the dates of the dataset and of each form, None where missing."""
    return [
        claimed.issued,
        claimed.modified,
        *(day for form in claimed.forms for day in (form.issued, form.modified)),
    ]


def _share(truths: Iterable[bool]) -> float:
    """The share of what is true; none of nothing."""
    listed = list(truths)
    return sum(listed) / len(listed) if listed else 0.0
