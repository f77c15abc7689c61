"""What a single cell looks like, and the shape that the cells of a column have in common."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tamias.analyse.profile.values.form import TEXT, TYPED_NULLS, ColumnForm
from tamias.analyse.profile.values.number_forms import number_form
from tamias.analyse.profile.values.time_forms import time_form

TRUTHS = (
    ("true", "false"), ("wahr", "falsch"), ("vrai", "faux"), ("vero", "falso"), ("verdadero", "falso"),
    ("yes", "no"), ("ja", "nein"), ("ja", "nee"), ("ja", "nej"), ("ja", "nei"), ("oui", "non"), ("sí", "no"),
    ("si", "no"), ("sì", "no"), ("sim", "não"), ("sim", "nao"), ("tak", "nie"), ("ano", "ne"), ("áno", "nie"),
    ("igen", "nem"), ("kyllä", "ei"), ("jah", "ei"), ("da", "nu"), ("da", "ne"), ("jā", "nē"), ("taip", "ne"),
    ("да", "не"), ("да", "нет"), ("ναι", "όχι"), ("y", "n"), ("j", "n"), ("t", "f"), ("o", "n"), ("s", "n"),  # noqa: RUF001
)  # fmt: skip
"""Yes and no, in many tongues."""


def form_of(values: Sequence[str], sign: str | None, delimiter: str | None) -> ColumnForm:
    """The form of a column. `values` are trimmed and not empty; the other arguments as in `number_form`."""
    told = [value for value in values if value.lower() not in TYPED_NULLS]
    if not told:
        return TEXT
    return _truth(told) or time_form(told) or number_form(told, sign, delimiter) or TEXT


def _truth(values: Sequence[str]) -> ColumnForm | None:
    seen = {value.lower() for value in values}
    if len(seen) > 2:
        return None
    pairs = [pair for pair in TRUTHS if seen <= set(pair) and (len(seen) == 2 or len(*seen) > 1)]
    if not pairs:
        return None
    yes, no = pairs[0]
    return ColumnForm(
        datatype="boolean",
        format=f"{yes}|{no}",
        sql=f"CASE lower({{v}}) WHEN '{yes}' THEN true WHEN '{no}' THEN false END",
        told="CAST({x} AS VARCHAR)",
        read=lambda text: {yes: "true", no: "false"}.get(text.lower()),
    )


_KINDS = (
    ("year", re.compile(r"(?:1[5-9]|20|21)\d{2}")),
    ("number", re.compile(
        r"[-+\u2212]?(?:[€$£]\s?)?(?:\d+|\d[\d .,'\u2019\u00a0]*\d|[.,]\d+)(?:[eE][-+]?\d+)?(?:\s?[%€$£])?"
    )),
    ("time", re.compile(
        r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?:[T ].*)?"
        r"|\d{1,2}:\d{2}(?::\d{2})?"
    )),
    ("url", re.compile(r"(?:https?|ftp)://\S+")),
    ("email", re.compile(r"[^@\s]+@[^@\s]+\.\w+")),
)  # fmt: skip
_LONGEST = 300
_LONGEST_SHAPE = 40
_USUAL = 0.8


def kind_of(cell: str) -> str:
    """One of `year`, `number`, `time`, `url`, `email`, `text`."""
    if len(cell) > _LONGEST:
        return "text"
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(cell)), "text")


class _Signs(dict[int, str]):
    """What stands for each character in a shape."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        shown = "9" if sign.isdigit() else "A" if sign.isupper() else "a" if sign.isalpha() else sign
        if code < _REMEMBERED:
            self[code] = shown
        return shown


_REMEMBERED = 0x2100
_SIGNS = _Signs()
_RUN = re.compile(r"(.)\1+", re.DOTALL)
_LETTERS = re.compile(r"([Aa9])(?:\{\d+\})?")


def shape_of(cell: str) -> str:
    """Letters as `A` or `a`, digits as `9`, repeated ones counted, all else as it is.

    >>> shape_of("AT-12345"), shape_of("Wien")
    ('A{2}-9{5}', 'Aa{3}')
    """
    return _RUN.sub(lambda run: f"{run[1]}{{{len(run[0])}}}", cell.translate(_SIGNS))


def usual_shape(values: Sequence[str]) -> str | None:
    """The shape of most values: exactly, else without counts; None where there is none."""
    if not values or max(map(len, values)) > 10 * _LONGEST_SHAPE:
        return None
    return _usual(map(shape_of, values), len(values)) or _usual(
        (_loose(shape_of(value)) for value in values), len(values)
    )


def _usual(shapes: Iterable[str], total: int) -> str | None:
    """The shape of most; given up as soon as there are too many different ones."""
    counts: Counter[str] = Counter()
    for shape in shapes:
        counts[shape] += 1
        if total - len(counts) + 1 < _USUAL * total:
            return None
    shape, count = counts.most_common(1)[0]
    return shape if count >= _USUAL * total and len(shape) <= _LONGEST_SHAPE else None


def _loose(shape: str) -> str:
    return _LETTERS.sub(lambda found: found[1] + "+", shape)
