"""Paths of URLs and patterns of robots.txt: how both are spelt before they are compared, and how they match.

There are two spellings. The literal one is Google's, the canonical one is RFC 9309, section 2.2.2.
"""

from collections.abc import Mapping
from urllib.parse import quote

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ASCII = "".join(map(chr, range(128)))
_URI = "%-._~:/?#[]@!$&'()*+,;="

_UPPER_CASE = {f"{octet:02X}": f"%{octet:02X}" for octet in range(256)}
_DECODED = _UPPER_CASE | {f"{ord(character):02X}": character for character in _UNRESERVED}
_DECODED_IN_QUERY = _DECODED | {f"{ord(character):02X}": character for character in ":/?[]@"}


def path_of(url: str) -> str:
    """Path and query of an absolute URL, or of what is already a path.

    >>> path_of("https://example.org?q=1#part"), path_of("/a/b#part")
    ('/?q=1', '/a/b')
    """
    path = url.partition("#")[0]
    if not path.startswith("/"):
        after_scheme = path.partition("://")[2]
        starts = [start for start in (after_scheme.find("/"), after_scheme.find("?")) if start >= 0]
        path = after_scheme[min(starts, default=len(after_scheme)) :]
    return path if path.startswith("/") else "/" + path


def literal_pattern(value: str) -> str:
    """A pattern as Google compares it: octets above ASCII are escaped, escapes are in upper case.

    >>> literal_pattern("/caf\\u00e9/%7ejo")
    '/caf%C3%A9/%7Ejo'
    """
    return _respelt(quote(value.encode("utf-8", "surrogateescape"), safe=_ASCII), _UPPER_CASE)


def canonical_pattern(pattern: str) -> str:
    """A literal pattern as RFC 9309 compares it; `*` and a last `$` keep their meaning.

    >>> canonical_pattern("/%7Ejo/$5 *$")
    '/~jo/%245%20*$'
    """
    end = "$" if pattern.endswith("$") else ""
    return _canonical(pattern.removesuffix("$")).replace("$", "%24") + end


def canonical_path(path: str) -> str:
    """A URL's path as RFC 9309 compares it: here `*` and `$` are only themselves.

    >>> canonical_path("/%7Ejo%2F*?to=https%3A%2F%2Fexample.org")
    '/~jo%2F%2A?to=https://example.org'
    """
    return _canonical(path).replace("*", "%2A").replace("$", "%24")


def matches(path: str, pattern: str) -> bool:
    """Return whether the pattern matches from the path's start. Each octet of the path is passed once.

    >>> matches("/a/b/c.ttl", "/a/*.ttl$"), matches("/a/b/c.ttl.gz", "/a/*.ttl$")
    (True, False)
    """
    if "*" not in pattern:
        return path == pattern[:-1] if pattern.endswith("$") else path.startswith(pattern)
    anchored = pattern.endswith("$")
    head, *middle, tail = pattern.removesuffix("$").split("*")
    if not path.startswith(head):
        return False
    at = len(head)
    for part in middle:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return path.endswith(tail) and len(path) - len(tail) >= at if anchored else path.find(tail, at) >= 0


def _canonical(text: str) -> str:
    path, mark, query = quote(text.encode("utf-8", "replace"), safe=_URI).partition("?")
    # In a query the RFC takes `:` and `%3A` for the same. It encodes both; decoded they are the same too,
    # and patterns whose `*` spans the question mark still match.
    return _respelt(path, _DECODED) + mark + _respelt(query, _DECODED_IN_QUERY)


def _respelt(text: str, spelling: Mapping[str, str]) -> str:
    if "%" not in text:
        return text
    head, *rest = text.split("%")
    return head + "".join(spelling.get(part[:2].upper(), "%" + part[:2]) + part[2:] for part in rest)
