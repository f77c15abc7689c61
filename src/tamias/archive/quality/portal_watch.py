"""Portal Watch's metrics of one dataset, each from 0 to 1.

Its two slips are mended: keywords are looked for where DCAT has them, and coverage has its metrics defined.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

from tamias.archive.quality.formats import (
    is_known_licence,
    is_machine_readable,
    is_open,
    is_open_licence,
    is_registered,
    promised_type,
)
from tamias.archive.quality.told import ClaimedDescription, Got, ToldForm, format_is_true, size_is_true

_DATE: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)"
    r"(?:[T ]([01]\d|2[0-4]):[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?\s?(?:Z|[+-]\d\d:?\d\d)?)?)?)?"
)


def is_date(text: str | None) -> bool:
    """Whether it is a year, a month, a day or a moment of ISO 8601 that the calendar has.

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


def dataset_metrics(told: ClaimedDescription, got: Sequence[Got]) -> dict[str, float]:
    """All metrics that can be told; `got` has one for each form. Of what was never tried, nothing is said."""
    types = [promised_type(form.media_type, form.format) for form in told.forms]
    return {
        **_existence(told),
        **_conformance(told, types),
        "opfo": _share(is_open(kind) for kind in types),
        "opma": _share(is_machine_readable(kind) for kind in types),
        "opli": _share(is_open_licence(form.licence) for form in told.forms),
        "reme": 1.0,
        **delivery_metrics(told.forms, types, got),
    }


def delivery_metrics(
    forms: Sequence[ToldForm], types: Sequence[str | None], got: Sequence[Got]
) -> dict[str, float]:
    """What only an archive can measure: whether the data came, and were what was told."""
    pairs = list(zip(forms, types, got, strict=True))
    known: dict[str, list[bool | None]] = {
        "rere": [each.retrieved for _, _, each in pairs if each.tried],
        "acfo": [format_is_true(kind, each) for _, kind, each in pairs],
        "acsi": [size_is_true(form.byte_size, each) for form, _, each in pairs],
    }
    values = {name: [value for value in found if value is not None] for name, found in known.items()}
    return {name: _share(found) for name, found in values.items() if found}


def is_web_address(text: str) -> bool:
    """Whether it has the form of an address to fetch data from."""
    return _WEB.fullmatch(text.strip()) is not None


def _existence(told: ClaimedDescription) -> dict[str, float]:
    forms = told.forms
    kept = [part is not None for form in forms for part in (form.format, form.media_type, form.byte_size)]
    return {
        "exac": _share(bool(form.url.strip()) for form in forms),
        "exdi": (told.title + told.description + told.keywords) / 3,
        "exco": float(told.contact or told.publisher),
        "exri": _share(form.licence is not None for form in forms),
        "expr": _share(kept),
        "exda": _share(text is not None for text in _dates(told)),
        "exsp": float(told.spatial),
        "exte": float(told.temporal),
    }


def _conformance(told: ClaimedDescription, types: Sequence[str | None]) -> dict[str, float]:
    return {
        "coac": _share(is_web_address(form.url) for form in told.forms),
        "coce": float(any(_EMAIL.fullmatch(text) for text in told.emails)),
        "cocu": float(any(is_web_address(text) for text in told.pages)),
        "coda": _share(is_date(text) for text in _dates(told)),
        "coli": _share(is_known_licence(form.licence) for form in told.forms),
        "cofo": _share(is_registered(kind) for kind in types),
    }


def _dates(told: ClaimedDescription) -> list[str | None]:
    """Of the dataset and of each form, there or not."""
    return [
        told.issued,
        told.modified,
        *(day for form in told.forms for day in (form.issued, form.modified)),
    ]


def _share(truths: Iterable[bool]) -> float:
    """The share of what is true; none of nothing."""
    listed = list(truths)
    return sum(listed) / len(listed) if listed else 0.0
