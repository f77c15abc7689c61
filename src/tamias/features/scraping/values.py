"""A text of a page on its way to being a value: cut, split, read as a number or a date."""

import re
from collections.abc import Iterator
from datetime import datetime

from pyoxigraph import Literal, NamedNode

from tamias.analyse.markup.iri import named_node, resolved
from tamias.features.scraping.rule import Term, ValueRule
from tamias.features.scraping.words import PREFIXES

_NUMBER = re.compile(r"[-\u2212+]?\d[\d.,'\u2019 \u00a0\u202f]{0,40}")
_NOT_IN_NUMBERS = re.compile(r"['\u2019 \u00a0\u202f]")
_INTEGER, _DECIMAL, _DATE, _DATE_TIME = (
    NamedNode(PREFIXES["xsd"] + name) for name in ("integer", "decimal", "date", "dateTime")
)


class UnfitError(Exception):
    """A text from which a rule cannot make its value; the message says why."""


def texts(rule: ValueRule, text: str) -> Iterator[str]:
    """The text, or its parts, with space made plain and what is not wanted cut off."""
    for part in text.split(rule.split) if rule.split else [text]:
        plain = " ".join(part.split())
        if rule.after:
            plain = plain.partition(rule.after)[2] or (plain if rule.after not in plain else "")
        if rule.before:
            plain = plain.partition(rule.before)[0]
        if plain := plain.strip():
            yield plain


def term(rule: ValueRule, text: str, prefix: str, base: str) -> Term:
    """The value that the rule makes from the text. Raises `UnfitError`."""
    if rule.number:
        text, datatype = _number(text, rule.number)
    elif rule.date:
        text, datatype = _date(text, rule.date)
    else:
        datatype = None
    if rule.is_iri:
        return _iri(prefix + text, base)
    if rule.language:
        return Literal(prefix + text, language=rule.language)
    return Literal(prefix + text, datatype=rule.datatype or (None if prefix else datatype))


def _iri(reference: str, base: str) -> NamedNode:
    node = named_node(resolved(reference, base))
    if node is None:
        raise UnfitError(f"{_shown(reference)} is not an IRI")
    return node


def _number(text: str, sign: str) -> tuple[str, NamedNode]:
    """The first number, without what groups its digits.

    >>> _number("about 1,234.50 t", ".")[0], _number("1.234 Dateien", ",")[0]
    ('1234.50', '1234')
    """
    found = _NUMBER.search(text)
    if found is None:
        raise UnfitError(f"there is no number in {_shown(text)}")
    grouping = "," if sign == "." else "."
    digits = _NOT_IN_NUMBERS.sub("", found[0]).replace(grouping, "").replace("\u2212", "-")
    whole, point, rest = digits.partition(sign)
    fraction = rest.partition(sign)[0]
    return (f"{whole}.{fraction}", _DECIMAL) if point and fraction else (whole, _INTEGER)


def _date(text: str, form: str) -> tuple[str, NamedNode]:
    try:
        read = datetime.strptime(text, form)  # noqa: DTZ007 (a zone is there where the form has %z)
    except ValueError:
        raise UnfitError(f"{_shown(text)} is not a date of the form {form}") from None
    if "%H" in form or "%I" in form:
        return read.isoformat(), _DATE_TIME
    return read.date().isoformat(), _DATE


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…")
