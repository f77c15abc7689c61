"""Kinds of single cells, and the shape that the cells of a column have in common."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from tamias.features.archive.canonical.values.form import TEXT, TYPED_NULLS, ColumnForm, each_read
from tamias.features.archive.canonical.values.number_forms import (
    are_words,
    as_lines,
    number_form,
    plain_number_form,
)
from tamias.features.archive.canonical.values.time_forms import time_form

TRUTHS = (
    ("true", "false"), ("wahr", "falsch"), ("vrai", "faux"), ("vero", "falso"), ("verdadero", "falso"),
    ("yes", "no"), ("ja", "nein"), ("ja", "nee"), ("ja", "nej"), ("ja", "nei"), ("oui", "non"), ("sí", "no"),
    ("si", "no"), ("sì", "no"), ("sim", "não"), ("sim", "nao"), ("tak", "nie"), ("ano", "ne"), ("áno", "nie"),
    ("igen", "nem"), ("kyllä", "ei"), ("jah", "ei"), ("da", "nu"), ("da", "ne"), ("jā", "nē"), ("taip", "ne"),
    ("да", "не"), ("да", "нет"), ("ναι", "όχι"), ("y", "n"), ("j", "n"), ("t", "f"), ("o", "n"), ("s", "n"),  # noqa: RUF001
)  # fmt: skip
"""Yes and no, in many tongues."""


_TYPED_NULLS = frozenset(TYPED_NULLS)


def form_of(values: Sequence[str], sign: str | None, delimiter: str | None) -> ColumnForm:
    """The form of a column. `values` are trimmed and not empty; the other arguments as in `number_form`."""
    plain = plain_number_form(values)
    if plain is not None:
        return plain
    known = values
    if not _TYPED_NULLS.isdisjoint(map(str.lower, values)):
        known = [value for value in values if value.lower() not in _TYPED_NULLS]
    if not known:
        return TEXT
    if are_words(known):
        return _truth(known) or TEXT
    return _truth(known) or time_form(known) or number_form(known, sign, delimiter) or TEXT


def _truth(values: Sequence[str]) -> ColumnForm | None:
    seen: set[str] = set()
    for value in values:
        seen.add(value.lower())
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
        shown="CAST({x} AS VARCHAR)",
        read=each_read(lambda text: {yes: "true", no: "false"}.get(text.lower())),
    )


_KINDS = re.compile(
    r"(?P<year>(?:1[5-9]|20|21)\d{2})"
    r"|(?P<number>[-+\u2212]?(?:[€$£]\s?)?(?:\d+|\d[\d .,'\u2019\u00a0]*\d|[.,]\d+)(?:[eE][-+]?\d+)?"
    r"(?:\s?[%€$£])?)"
    r"|(?P<time>(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?:[T ].*)?"
    r"|\d{1,2}:\d{2}(?::\d{2})?)"
    r"|(?P<url>(?:https?|ftp)://\S+)"
    r"|(?P<email>[^@\s]+@[^@\s]+\.\w+)"
)
_LONGEST = 300
_LONGEST_SHAPE = 40
_USUAL = 0.8


def kind_of(cell: str) -> str:
    """Return the kind of a cell: `year`, `number`, `time`, `url`, `email` or `text`."""
    if len(cell) > _LONGEST or (cell[:1].isalpha() and cell[0] not in "hf" and "@" not in cell):
        return "text"  # no year, number or time begins so, no URL either
    found = _KINDS.fullmatch(cell)
    return (found and found.lastgroup) or "text"


_NUMBERS = re.compile(r"(?:[-+]?[0-9]{1,90}(?:\.[0-9]{1,90})?\n)+")
_YEAR_LINE = re.compile(r"^[12][0-9]{3}$", re.MULTILINE)


def usual_kind(cells: Sequence[str]) -> str | None:
    """Return the kind of at least four of five cells, unless that is text; stops at too many texts."""
    lines = as_lines(cells)
    if lines is not None and _NUMBERS.fullmatch(lines) and not _YEAR_LINE.search(lines):
        return "number"
    kinds: Counter[str] = Counter()
    least = len(cells) * 4
    left = len(cells)
    for cell in cells:
        kind = kind_of(cell)
        kinds[kind] += 1
        if kind == "text":
            left -= 1
            if left * 5 < least:
                return None
    kind, count = kinds.most_common(1)[0]
    return kind if kind != "text" and count * 5 >= least else None


class _Signs(dict[int, str]):
    """The sign that stands for each character in a shape."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        shown = "9" if sign.isdigit() else "A" if sign.isupper() else "a" if sign.isalpha() else sign
        if code < _REMEMBERED:
            self[code] = shown
        return shown


_REMEMBERED = 0x2100
_SIGNS = _Signs()
_RUN = re.compile(r"(.)\1+", re.DOTALL)
_OTHER_RUN = re.compile(r"([^Aa9\0])\1+")
_BETWEEN = "\0"
_LETTERS = frozenset("Aa9")
_NO_LETTERS = str.maketrans("", "", "Aa9" + _BETWEEN)


def _count(run: re.Match[str]) -> str:
    return f"{run[1]}{{{len(run[0])}}}"


def usual_shape(values: Sequence[str]) -> str | None:
    """The shape of most values: exactly, else without counts; None where there is none.

    Letters are `A` or `a`, digits `9`, repeated ones counted; all else is as it is.

    >>> usual_shape(["AT-12345", "DE-54321"]), usual_shape(["Wien", "Graz"]), usual_shape(["a1", "b23"])
    ('A{2}-9{5}', 'Aa{3}', 'a+9+')
    """
    if not values or max(map(len, values)) > 10 * _LONGEST_SHAPE:
        return None
    # All at once, with what is in no cell between them.
    signs = _BETWEEN.join(values).translate(_SIGNS).split(_BETWEEN)
    shapes = Counter(signs)
    found = _usual(shapes, len(signs), _counted)
    if found is not None:
        return found
    few = len(signs) // 5 + 2
    # If most have the same shape, two of these have.
    if len(shapes) > few and len(set(_loose(signs[:few]))) == few:
        return None
    loose: Counter[str] = Counter()
    for shape, count in zip(_loose(list(shapes)), shapes.values(), strict=True):
        loose[shape] += count
    return _usual(loose, len(signs), str)


def _counted(signs: str) -> str:
    return _RUN.sub(_count, signs)


def _usual(shapes: Counter[str], values: int, shown: Callable[[str], str]) -> str | None:
    """The shape of most values, as it is shown."""
    for shape, count in shapes.items():
        if count >= _USUAL * values:
            found = shown(shape)
            return found if len(found) <= _LONGEST_SHAPE else None
    return None


def _loose(shapes: Sequence[str]) -> list[str]:
    """Return shapes without counts of letters and digits."""
    signs = _BETWEEN.join(shapes)
    if any(sign * 2 in signs for sign in {*signs.translate(_NO_LETTERS)}):
        signs = _OTHER_RUN.sub(_count, signs)
    for sign in _LETTERS:
        while sign * 2 in signs:
            signs = signs.replace(sign * 2, sign)
        signs = signs.replace(sign, f"{sign}+")
    return signs.split(_BETWEEN)
