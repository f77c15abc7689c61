"""Names that are known: countries by code and by name in several languages, and codes of languages."""

import unicodedata
from functools import cache
from importlib.resources import files


@cache
def language_codes() -> frozenset[str]:
    """The codes of ISO 639 with two letters, and the usual ones with three."""
    return frozenset(files(__package__).joinpath("languages.txt").read_text("utf-8").split())


@cache
def country_codes() -> tuple[frozenset[str], frozenset[str]]:
    """The codes of ISO 3166 with two and with three letters, and those of the European Union for Greece
    and the United Kingdom."""
    lines = _lines()
    return frozenset(line[:2] for line in lines) | {"EL", "UK"}, frozenset(line[3:6] for line in lines)


@cache
def country_names() -> frozenset[str]:
    """Names of countries, folded."""
    return frozenset(folded(name) for line in _lines() for name in line[7:].split(";"))


def folded(text: str) -> str:
    """For comparison: without case and accents.

    >>> folded("Côte d'Ivoire")
    "cote d'ivoire"
    """
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in parts if not unicodedata.combining(sign))


def _lines() -> list[str]:
    return files(__package__).joinpath("countries.txt").read_text("utf-8").splitlines()
