"""Which pages a rule is for: hosts, and paths in which `*` stands for anything."""

from tamias.analyse.rules.rule import PageRule
from tamias.model.url import authority, host


def speaks_for(hosts: tuple[str, ...], url: str) -> bool:
    """Whether the page's host is one of these.

    >>> speaks_for(("*.example.org",), "https://data.example.org/a"), speaks_for(("example.org",), "http://a.org/")
    (True, False)
    """
    name = host(url)
    return any(
        name == each or (each.startswith("*.") and (name.endswith(each[1:]) or name == each[2:]))
        for each in hosts
    )


def is_for(rule: PageRule, url: str) -> bool:
    """Whether the rule is for the page: by its path and query."""
    path = url.partition("#")[0].removeprefix(authority(url)) or "/"
    if not any(matches(pattern, path) for pattern in rule.match):
        return False
    return not any(matches(pattern, path) for pattern in rule.unless)


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text fits; each `*` stands for any characters. Takes linear time.

    >>> matches("/dataset/*", "/dataset/a?b"), matches("/*/edit", "/dataset/a/edit"), matches("/a", "/ab")
    (True, True, False)
    """
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if not (text.startswith(first) and text.endswith(last) and len(text) >= len(first) + len(last)):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True
