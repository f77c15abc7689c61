"""Rules that close captures to the public, for a time or for good: by host, URL, and time of the capture."""

import re
import time
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from tamias.archive.moments import first_millisecond
from tamias.model.errors import ConfigError, UrlError, UsageError
from tamias.model.url import fetch_url

CLOSED = "the archive has closed it to the public (archive.closed)"


class ClosingRule(msgspec.Struct, frozen=True):
    """A rule: which URLs it closes, until when, and captures of which times."""

    pattern: str
    """A regular expression, as Python and PostgreSQL read it."""
    until: int | None = None
    after: int | None = None
    before: int | None = None

    def closes(self, url: str, captured_at: int | None, now: int) -> bool:
        """Return whether a capture of a URL is closed; or all of its captures, where no time is given."""
        if (self.until is not None and self.until <= now) or re.match(self.pattern, url) is None:
            return False
        if captured_at is None:
            return self.after is None and self.before is None
        return (self.after is None or self.after <= captured_at) and (
            self.before is None or captured_at < self.before
        )


class ClosingRules(msgspec.Struct, frozen=True):
    """The rules together; without any, nothing is closed."""

    rules: tuple[ClosingRule, ...]

    def __bool__(self) -> bool:
        return bool(self.rules)

    def closes(self, url: str, captured_at: int | None) -> bool:
        """Return whether a capture of a URL is closed now; or all of its captures, where no time is given."""
        now = time.time_ns() // 1_000_000
        return any(rule.closes(url, captured_at, now) for rule in self.rules)

    @property
    def patterns(self) -> list[str]:
        """Return the regular expressions of URLs about which there is a rule."""
        return [rule.pattern for rule in self.rules]


@lru_cache(maxsize=8)
def closing_rules(texts: Sequence[str]) -> ClosingRules:
    """Parse the setting. Raises `ConfigError`.

    >>> rules = closing_rules(("example.org=until:2999-01-01", "http://a.example/b*=block,before:2020"))
    >>> rules.closes("https://www.example.org/x", 0), rules.closes("http://a.example/bc", 1700000000000)
    (True, False)
    """
    return ClosingRules(tuple(_parse_rule(text) for text in texts))


def _parse_rule(text: str) -> ClosingRule:
    target, _, rule = text.rpartition("=")
    kind, *limits = rule.replace(" ", "").split(",")
    try:
        times = [(name, first_millisecond(at)) for name, _, at in (each.partition(":") for each in limits)]
        if kind.startswith("until:"):
            times.append(("until", first_millisecond(kind.removeprefix("until:"))))
        elif kind != "block":
            raise UsageError(f"'{kind[:100]}' is neither block nor until:DATE")
        return ClosingRule(_pattern(target.strip()), **dict(times))
    except (UsageError, UrlError, TypeError, ValueError) as error:
        why = "a limit is after:TIME or before:TIME" if isinstance(error, TypeError) else str(error)
        raise ConfigError(
            f"archive.closed: '{text[:200]}' is not HOST=RULE or URL=RULE (a URL may end in *): {why}"
        ) from None


def _pattern(target: str) -> str:
    if "://" in target:
        is_prefix = target.endswith("*")
        return "^" + re.escape(fetch_url(target.removesuffix("*"))) + ("" if is_prefix else "$")
    if not re.fullmatch(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]", target):
        raise UsageError("it names no host")
    return rf"^[a-z]+://([^/]*@)?([^/@]*\.)?{re.escape(target.lower())}(:[0-9]+)?(/|$)"
