"""Content-Usage (a structured field, RFC 9651) and Content-Signal: which uses a site grants or refuses.

In robots.txt both may begin with a path; of the lines that match, those with the longest path count.
"""

import re
from collections.abc import Iterable, Iterator

from tamias.model.usage import CONTENT_SIGNAL, CONTENT_USAGE
from tamias.permit.paths import canonical_path, canonical_pattern, literal_pattern, matches, path_of

_BARE = r'"(?:[ !#-\[\]-~]|\\["\\])*"|\?[01]|-?[0-9]{1,15}(?:\.[0-9]{1,3})?|[A-Za-z*][\w!#$%&\'*+.^`|~:/-]*'
_KEY = r"[a-z*][a-z0-9_.*-]*"
_MEMBER = re.compile(rf"({_KEY})(?:=({_BARE}))?((?:; *{_KEY}(?:=(?:{_BARE}))?)*)", re.ASCII)
_COMMA = re.compile(r"[ \t]*,[ \t]*")
_PAIR = re.compile(r"([a-z0-9_-]+)\s*=\s*([a-z0-9_-]+)")


def content_usage(value: str) -> list[str]:
    """The preferences in a dictionary, `key=value` each; none if any of it is malformed, as RFC 9651 has it.

    >>> content_usage("train-ai=n, search=y;x=1"), content_usage("train-ai = n")
    (['train-ai=n', 'search=y'], [])
    """
    found: dict[str, str] = {}
    text, at = value.strip(" "), 0
    while at < len(text):
        member = _MEMBER.match(text, at)
        comma = _COMMA.match(text, member.end()) if member else None
        if member is None or (comma is None and member.end() < len(text)):
            return []
        found[member[1]] = member[2] or "?1"
        at = comma.end() if comma else member.end()
        if comma and at == len(text):
            return []
    return [f"{key}={preference}" for key, preference in found.items()]


def content_signal(value: str) -> list[str]:
    """The signals in a line, `key=value` each; what is none is passed over.

    >>> content_signal("search=yes, AI-Train = no, ???")
    ['search=yes', 'ai-train=no']
    """
    pairs = (_PAIR.fullmatch(part.strip()) for part in value.lower().split(","))
    return list(dict.fromkeys(f"{pair[1]}={pair[2]}" for pair in pairs if pair))


READERS = {CONTENT_USAGE: content_usage, CONTENT_SIGNAL: content_signal}


def robots_usage(lines: Iterable[tuple[str, str]], url: str) -> Iterator[tuple[str, str]]:
    """The uses that lines of robots.txt (their key, and what is behind the colon) grant or refuse for a URL.

    Two lines with the same path both count: whoever refuses wins.
    """
    path = canonical_path(path_of(url))
    by_key: dict[str, list[tuple[str, str]]] = {}
    for key, value in lines:
        pattern, uses = _path_and_uses(value)
        if key in READERS and (not pattern or matches(path, pattern)):
            by_key.setdefault(key, []).append((pattern, uses))
    for key, found in by_key.items():
        longest = max(len(pattern) for pattern, _uses in found)
        for pattern, uses in found:
            if len(pattern) == longest:
                yield from ((key, use) for use in READERS[key](uses))


def _path_and_uses(value: str) -> tuple[str, str]:
    if not value.startswith("/"):
        return "", value
    path, *rest = value.split(maxsplit=1)
    return canonical_pattern(literal_pattern(path)), "".join(rest)
