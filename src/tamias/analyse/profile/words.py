"""What the name of a column says about its values, in many languages of Europe."""

import re
from functools import cache
from importlib.resources import files

from tamias.analyse.profile.names import folded

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SPLIT = re.compile(r"[\W_]+|(?<=\D)(?=\d)|(?<=\d)(?=\D)")
_COMPOUND = 5
"""A word of so many letters counts within a longer one: Gemeindenummer, Geburtsdatum."""


def says(name: str, meaning: str) -> bool:
    """Whether the name of a column has a word for a meaning.

    >>> says("REF_YEAR", "year"), says("Geburtsdatum", "date"), says("Übernachtungen", "date")
    (True, True, False)
    """
    words = _words().get(meaning, frozenset())
    whole = folded(_CAMEL.sub("_", name.strip())).replace(" ", "_").replace("-", "_")
    if whole in words or whole.replace("_", "") in words:
        return True
    parts = [part for part in _SPLIT.split(whole) if part]
    if any(part in words for part in parts):
        return True
    long = [word for word in words if len(word) >= _COMPOUND and "_" not in word]
    return any(
        part.endswith(word) or part.startswith(word)
        for part in parts
        if len(part) > _COMPOUND
        for word in long
    )


@cache
def _words() -> dict[str, frozenset[str]]:
    """The words of each meaning: `meaning: word word`, going on where a line is indented."""
    text = files(__package__).joinpath("words.txt").read_text("utf-8").replace("\n  ", " ")
    lines = (line.partition(": ") for line in text.splitlines())
    return {meaning: frozenset(words.split()) for meaning, _, words in lines}
