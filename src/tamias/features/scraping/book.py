"""The rules of a user, and the pages they are for."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from tamias.features.markup.statements import resolved
from tamias.features.scraping.apply import apply
from tamias.features.scraping.load import load_portal
from tamias.features.scraping.words import PageRule, PortalRules
from tamias.filters.url_filters import parts_in_order
from tamias.model.errors import ConfigError
from tamias.model.finding import Finding, Problem
from tamias.model.url import authority, host


def speaks_for(hosts: tuple[str, ...], url: str) -> bool:
    """Return whether the page's host is one of these.

    >>> speaks_for(("*.example.org",), "https://data.example.org/a"), speaks_for(("example.org",), "http://a.org/")
    (True, False)
    """
    name = host(url)
    return any(
        name == each or (each.startswith("*.") and (name.endswith(each[1:]) or name == each[2:]))
        for each in hosts
    )


def is_for(rule: PageRule, url: str) -> bool:
    """Return whether the rule is for the page, by its path and query."""
    path = url.partition("#")[0].removeprefix(authority(url)) or "/"
    if not any(matches(pattern, path) for pattern in rule.match):
        return False
    return not any(matches(pattern, path) for pattern in rule.unless)


def matches(pattern: str, text: str) -> bool:
    """Return whether the whole text fits; each `*` stands for any characters. Takes linear time.

    >>> matches("/dataset/*", "/dataset/a?b"), matches("/*/edit", "/dataset/a/edit"), matches("/a", "/ab")
    (True, True, False)
    """
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == text
    return parts_in_order(list(filter(None, parts)), text, from_start=bool(parts[0]), to_end=bool(parts[-1]))


MAX_TAGS_COUNTED = 20_000
"""Tags of a page on which selectors that count siblings (`:nth-child`, `~`) are tried: a second at worst."""


def load_rules(path: Path) -> "RuleBook":
    """The rules of a file, or of all `*.toml` files of a folder. Raises `ConfigError` with file and line."""
    if not path.is_dir():
        return RuleBook([load_portal(path)])
    files = sorted(path.glob("*.toml"))
    if not files:
        raise ConfigError(f"there is no rule file (*.toml) in {path}")
    return RuleBook([load_portal(file) for file in files])


class RuleBook:
    """Rules for any number of portals. A page without a rule costs almost nothing."""

    def __init__(self, portals: Iterable[PortalRules]) -> None:
        self._portals = tuple(portals)

    def applies(self, url: str) -> bool:
        """Return whether there is a rule for the page."""
        return bool(self._rules(url))

    def narrows(self, url: str) -> bool:
        """Return whether only the links that its rules name are followed."""
        return any(rule.follow_only for rule in self._rules(url))

    def extract(self, url: str, data: bytes, *, base: str | None = None) -> Iterator[Finding]:
        """Yield what the rules find on a page in UTF-8 that is safe for the HTML parser.

        Quads in the default graph; links to follow; what could not be made out, as problems. Never raises.
        """
        rules = self._rules(url)
        if not rules:
            return
        tree = LexborHTMLParser(data)
        counted = data.count(b"<") <= MAX_TAGS_COUNTED
        for rule in rules:
            if rule.counts and not counted:
                yield Problem(
                    f"{rule.subject.place}: more than {MAX_TAGS_COUNTED} tags on the page, too many for "
                    "selectors that count siblings"
                )
                continue
            yield from apply(rule, tree, url=url, base=base or _base(tree, url))

    def _rules(self, url: str) -> list[PageRule]:
        return [
            rule
            for portal in self._portals
            if speaks_for(portal.hosts, url)
            for rule in portal.pages
            if is_for(rule, url)
        ]


def _base(tree: LexborHTMLParser, url: str) -> str:
    node = tree.css_first("base[href]")
    return url if node is None else resolved((node.attrs.get("href") or "").strip(), url)
