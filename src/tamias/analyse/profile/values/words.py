"""What the name of a column says about its values, in many languages of Europe."""

import re
from functools import cache
from importlib.resources import files

from tamias.analyse.profile.values.names import folded

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SPLIT = re.compile(r"[\W_]+|(?<=\D)(?=\d)|(?<=\d)(?=\D)")
_END, _BEGINNING = 6, 7
"""A word of so many letters also counts at the end or the beginning of a longer one: Gemeindenummer."""


def says(name: str, meaning: str) -> bool:
    """Whether the name of a column has a word for a meaning.

    >>> says("REF_YEAR", "year"), says("Gemeindename", "place"), says("real estate", "place")
    (True, True, False)
    """
    words = _words().get(meaning, frozenset())
    whole = folded(_CAMEL.sub("_", name.strip())).replace(" ", "_").replace("-", "_")
    if whole in words or whole.replace("_", "") in words:
        return True
    parts = [part for part in _SPLIT.split(whole) if part]
    if any(part in words for part in parts):
        return True
    return any(
        (len(word) >= _END and part.endswith(word)) or (len(word) >= _BEGINNING and part.startswith(word))
        for part in parts
        if len(part) > _END
        for word in words
    )


@cache
def _words() -> dict[str, frozenset[str]]:
    """The words of each meaning: `meaning: word word`, going on where a line is indented."""
    text = files(__package__).joinpath("words.txt").read_text("utf-8").replace("\n  ", " ")
    lines = (line.partition(": ") for line in text.splitlines())
    return {meaning: frozenset(words.split()) for meaning, _, words in lines}
