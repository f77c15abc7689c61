"""Guesses the form of a column from a sample of its values."""

from collections.abc import Sequence

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
    )
