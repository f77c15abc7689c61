"""Numbers as people write them: decimal commas, groups of thousands, percent signs, currencies."""

import re
from collections.abc import Callable, Sequence

from tamias.features.archive.canonical.values.form import ColumnForm, Uncertain

FITTING = 0.95
"""The share of a sample that must be of a form."""

UNITS = ("%", "€", "$", "£", "¥", "EUR", "USD", "GBP", "CHF", "Kč", "zł", "kr")
_SPACES = " \u00a0\u202f"
_UNIT = re.compile("|".join(re.escape(unit) for unit in UNITS))
_UNIT_LETTERS = frozenset(unit[0] for unit in UNITS)
_UNIT_BEGINS = re.compile("[" + re.escape("".join(sorted({unit[0] for unit in UNITS}))) + "]")
_MAYBE = re.compile(rf"[-+\u2212(]?[\d.,'\u2019{_SPACES}]*\d[\d.,'\u2019{_SPACES}eE+-]*\)?")
_PADDED = re.compile(r"[-+]?0\d+")
_STYLES = ((".", ""), (",", ""), (".", ","), (",", "."), (",", " "), (".", " "), (".", "'"), (",", "'"))
"""Decimal sign and sign between groups, the plainest first."""


def _pattern(decimal: str, group: str) -> re.Pattern[str]:
    signs = {"": "", " ": f"[{_SPACES}]", "'": "['\u2019]"}.get(group, re.escape(group))
    grouped = rf"|[1-9]\d{{0,2}}(?:{signs}\d{{3}})+" if group else ""
    point = re.escape(decimal)
    return re.compile(
        rf"[-+\u2212]?(?:(?:\d+{grouped})(?:{point}\d+|{point})?|{point}\d+)(?:[eE][-+]?\d{{1,3}})?"
    )


_PATTERNS = {style: _pattern(*style) for style in _STYLES}


_PLAIN_DECIMAL = re.compile(r"[-+\u2212]?\d+\.(?:\d{1,2}|\d{4,})")
"""That no other style can read: not as a group, which has three digits."""
_WITH_POINT = [style for style in _STYLES if style[0] == "."]

_WHOLE = re.compile("-?[0-9]{1,18}")
_WHOLES = re.compile(rf"(?:{_WHOLE.pattern}\n)*")
_DECIMALS = {
    sign: re.compile(rf"-?[0-9]{{1,15}}(?:[{sign}][0-9]{{1,30}})?(?:[eE][-+]?[0-9]{{1,2}})?") for sign in ".,"
}
_ALL_DECIMALS = {sign: re.compile(rf"(?:{each.pattern}\n)*") for sign, each in _DECIMALS.items()}
_NO_NUMBER = re.compile(r"[^\dnN]*")
"""What no way of reading makes a number of, not even `inf` or `nan`."""


def decimal_sign(columns: Sequence[Sequence[str]]) -> str | None:
    """The decimal sign of a table, where some number can be read in one way only."""
    for values in columns:
        for value in values:
            if "," not in value and "." not in value:
                continue
            bare = _bare(value)
            fits = {style[0] for style, pattern in _PATTERNS.items() if pattern.fullmatch(bare)}
            if len(fits) == 1:
                return fits.pop()
    return None


def do_fit(pattern: re.Pattern[str], values: Sequence[str], least: float) -> bool:
    """Return whether at least `least` values fit; stops as soon as they cannot."""
    fitting = len(values)
    for value in values:
        if not pattern.fullmatch(value):
            fitting -= 1
            if fitting < least:
                return False
    return fitting >= least


def number_form(values: Sequence[str], sign: str | None, delimiter: str | None) -> ColumnForm | None:
    """The form of a column of numbers; None if it is none.

    `sign` is the table's decimal sign, where it is known. A code such as `00601` is no number.
    """
    least = FITTING * len(values)
    bare: list[str] = []
    others = 0
    for value in map(_bare, values):
        if not _MAYBE.fullmatch(value):
            others += 1
            if len(values) - others < least:
                return None
        bare.append(value)
    if any(map(_PADDED.fullmatch, bare)):
        return None
    signed = [value for value in bare if not value.isdecimal()]
    if all(map(_PLAIN_DECIMAL.fullmatch, signed)):
        styles = _WITH_POINT if signed else list(_STYLES)
        style, fitting = _chosen(styles, sign, delimiter, bare), bare
    else:
        plain = len(bare) - len(signed)
        fits = {
            style: plain + sum(pattern.fullmatch(value) is not None for value in signed)
            for style, pattern in _PATTERNS.items()
        }
        best = max(fits.values())
        if best < least:
            return None
        styles = [style for style, count in fits.items() if count == best]
        style = _chosen(styles, sign, delimiter, bare)
        fitting = list(filter(_PATTERNS[style].fullmatch, bare))
    return _form(style, fitting, _unit_of(values), odd=len({decimal for decimal, _ in styles}) > 1)


def as_lines(values: Sequence[str]) -> str | None:
    """Return the values as lines, to match all of them at once; None if a value has a line end."""
    lines = "\n".join(values) + "\n"
    return lines if lines.count("\n") == len(values) else None


def are_words(values: Sequence[str]) -> bool:
    """Return whether too many values begin with a letter for a column of numbers or times."""
    left, least = len(values), FITTING * len(values)
    for value in values:
        if value[0].isalpha() and value[0] not in _UNIT_LETTERS:
            left -= 1
            if left < least:
                return True
    return False


def plain_number_form(values: Sequence[str]) -> ColumnForm | None:
    """Return the form of plain numbers, found by one match; None for all other columns."""
    lines = as_lines(values)
    if lines is None or not _PLAIN.fullmatch(lines):
        return None
    return _PLAIN_WHOLE if "." not in lines else _PLAIN_DECIMALS


def _bare(value: str) -> str:
    """Return a value without its unit, and `(5)` of accountants as `-5`."""
    if value.isdigit():
        return value
    if _UNIT_BEGINS.search(value):
        value = _UNIT.sub("", value)
    value = value.strip(_SPACES)
    return "-" + value[1:-1] if value.startswith("(") and value.endswith(")") else value


def _chosen(
    styles: list[tuple[str, str]], sign: str | None, delimiter: str | None, bare: list[str]
) -> tuple[str, str]:
    """Choose how to read 1.234 or 1,234 where both ways fit: as the rest of the table, else as usual.

    A decimal has its zeros, if it always has three digits: where there is also a 285, 1.234 has a group.
    """
    signs = set(",.") & set().union(*bare)
    if not signs:
        return styles[0]
    grouped = [style for style in styles if style[1] in signs]
    if len(signs) == 1 and grouped and sum(value.isdigit() for value in bare) * 20 >= len(bare):
        return grouped[0]
    if sign is None:
        sign = "," if "," in signs and delimiter == ";" else "."
    return next((style for style in styles if style[0] == sign), styles[0])


def _form(style: tuple[str, str], bare: list[str], unit: str | None, *, odd: bool) -> ColumnForm:
    decimal, group = style
    signs = set().union(*bare)
    whole = signs.isdisjoint({decimal, "e", "E"})
    big = whole and max(map(len, bare)) > 36
    return ColumnForm(
        datatype="string" if big else "integer" if whole else "decimal",
        format=None if whole and not group else _shown(decimal, group, whole=whole),
        sql="{v}" if big else _sql(decimal, group, "HUGEINT" if whole else "DOUBLE"),
        shown="{x}" if big else "CAST({x} AS VARCHAR)",
        read=None if big else _read_wholes if whole else _decimal_reader(decimal),
        unit=unit,
        odd=odd and not signs.isdisjoint({decimal, group}),
    )


def _shown(decimal: str, group: str, *, whole: bool) -> str | None:
    if decimal == "." and not group:
        return None
    return f"#{group}##0" + ("" if whole else f"{decimal}0")


def _sql(decimal: str, group: str, kind: str) -> str:
    text = f"regexp_replace({{v}}, '{'|'.join(map(re.escape, UNITS))}|[\\s{_SPACES[1:]}''\u2019)]', '', 'g')"
    text = f"replace(replace({text}, '(', '-'), '\u2212', '-')"
    if group in ",." and group:
        text = f"replace({text}, '{group}', '')"
    if decimal == ",":
        text = f"replace({text}, ',', '.')"
    return f"TRY_CAST({text} AS {kind})"


def _read_wholes(texts: Sequence[str]) -> list[int]:
    lines = as_lines(texts)
    if lines is None or not _WHOLES.fullmatch(lines):
        texts = _matching(_WHOLE, texts)
    return list(map(int, texts))


def _decimal_reader(decimal: str) -> Callable[[Sequence[str]], list[float]]:
    """Numbers that are written in the plainest way; but which of 0 and -0 is the less, nobody knows."""
    plain, all_plain = _DECIMALS[decimal], _ALL_DECIMALS[decimal]

    def read(texts: Sequence[str]) -> list[float]:
        lines = as_lines(texts)
        if lines is None or not all_plain.fullmatch(lines):
            texts = _matching(plain, texts)
        numbers = [float(text.replace(decimal, ".")) for text in texts]
        if 0.0 in numbers and any(
            not number and text[0] == "-" for number, text in zip(numbers, texts, strict=True)
        ):
            raise Uncertain("-0")
        return numbers

    return read


_PLAIN = re.compile(r"(?:(?:(?:0|[1-9][0-9]{0,6})|-?(?:0|[1-9][0-9]{0,14})\.(?:[0-9]{1,2}|[0-9]{4,30}))\n)+")
"""Whole numbers too short for a day, and decimals that no other style can read."""
_PLAIN_WHOLE = _form((".", ""), ["1"], None, odd=False)
_PLAIN_DECIMALS = _form((".", ""), ["1.0"], None, odd=False)


def _matching(pattern: re.Pattern[str], texts: Sequence[str]) -> list[str]:
    """Return the texts that match; raises `Uncertain` if another could still be a number."""
    found = []
    for text in texts:
        if pattern.fullmatch(text):
            found.append(text)
        elif not _NO_NUMBER.fullmatch(text):
            raise Uncertain(text)
    return found


def _unit_of(values: Sequence[str]) -> str | None:
    """The unit that most of the values stand with."""
    begun = (value for value in values if _UNIT_BEGINS.search(value))
    units = [found[0] for value in begun if (found := _UNIT.search(value))]
    unit = max(units, key=units.count, default=None)
    return unit if unit and units.count(unit) * 2 > len(values) else None
