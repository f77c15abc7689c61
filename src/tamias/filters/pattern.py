"""Keeps out what the user's regular expressions name."""

import re
from collections.abc import Sequence

from tamias.model.errors import ConfigError


class PatternFilter:
    """Lets in what some `include` finds and no `exclude` does; without an `include`, all but the excluded.

    The expressions are Python's and are searched anywhere in the URL; `^` and `$` tie them to its ends.
    They are the user's own and trusted: one such as `(a+)+$` can take hours on a single hostile URL.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._include = [_compiled(pattern, "include") for pattern in include]
        self._exclude = [_compiled(pattern, "exclude") for pattern in exclude]

    def refuse(self, url: str, depth: int) -> str | None:
        if (excluded := self.excluded(url)) is not None:
            return excluded
        if self._include and not any(pattern.search(url) for pattern in self._include):
            return "pattern: no include matches"
        return None

    def excluded(self, url: str) -> str | None:
        """The `exclude` that finds the URL, whatever is included."""
        for pattern in self._exclude:
            if pattern.search(url):
                return f"pattern: exclude {pattern.pattern!r} matches"
        return None


def _compiled(pattern: str, setting: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        where = "" if error.pos is None else f" at position {error.pos}"
        raise ConfigError(
            f"{setting} {pattern!r} is not a valid regular expression: {error.msg}{where}"
        ) from None
    except (OverflowError, RecursionError) as error:
        raise ConfigError(f"{setting} {pattern!r} is not a valid regular expression: {error}") from None


def parts_in_order(parts: Sequence[str], text: str, *, from_start: bool, to_end: bool) -> bool:
    """Return whether the parts stand in the text one after another; in one pass, whatever the text is.

    >>> parts_in_order(("example.org/", "/print"), "example.org/a/print", from_start=True, to_end=True)
    True
    """
    if (from_start and not text.startswith(parts[0])) or (to_end and not text.endswith(parts[-1])):
        return False
    place = 0
    for part in parts[:-1] if to_end else parts:
        place = text.find(part, place) + len(part)
        if place < len(part):
            return False
    return not to_end or len(text) - len(parts[-1]) >= place
