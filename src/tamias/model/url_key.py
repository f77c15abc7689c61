"""What makes two URLs the same: the key that decides whether a URL is known.

Only for comparing. What is fetched is the `fetch_url`, for a server may care about order and sessions.
"""

import re
from functools import lru_cache
from itertools import product

from tamias.model.url import fetch_url

DEFAULT_SESSION_NAMES = frozenset({"sessionid", "jsessionid", "phpsessid", "sid"})
"""Parameters that name a visitor, not a resource; in lower case."""

# Those that the URL standard does not know; it has dropped those of http, https and ftp already.
_DEFAULT_PORTS = {"ftps": ":990", "sftp": ":22"}

_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


def _plain_escapes() -> dict[str, str]:
    escapes = ("%" + high + low for high, low in product("0123456789ABCDEFabcdef", repeat=2))
    plain = {escape: chr(int(escape[1:], 16)) for escape in escapes}
    return {escape: char if char in _UNRESERVED else escape.upper() for escape, char in plain.items()}


# A stray percent sign becomes %25: otherwise `%%341` would turn into `%41`, and that into `A`.
_PLAIN_ESCAPES = {"%": "%25", **_plain_escapes()}

_ESCAPE = re.compile("%(?:[0-9A-Fa-f]{2})?")
_SLASHES = re.compile("//+")
_FINAL_DOT = re.compile(r"(?<=[^.@])\.(?=(?::[0-9]+)?$)")
_PARTS = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?]*)([^?]*)\??(.*)")
_ANY_RULE = re.compile(r"[%?;]|//|\.[/:]")
"""Found behind the scheme wherever one of the rules may have something to do."""


def url_key(url: str, session_names: frozenset[str] = DEFAULT_SESSION_NAMES) -> str:
    """The key of a URL: equal for URLs that are taken to lead to the same thing.

    On top of `fetch_url`: default ports, final dot of the host, escapes of unreserved characters, session
    parameters, doubled slashes and an empty query go; query pairs are sorted by name, in stable order.

    >>> url_key("http://example.org./%7Eme//x;jsessionid=1?b=2&a=%2f&SID=3#top")
    'http://example.org/~me/x?a=%2F&b=2'
    """
    href = fetch_url(url)
    if _is_plain(href):
        return href
    parts = _PARTS.fullmatch(href)
    if parts is None:
        return href
    scheme, authority, path, query = parts.groups()
    plain = _plain_path(path, session_names)
    key = f"{scheme}://{_plain_authority(scheme, authority)}{plain}{_plain_query(query, session_names)}"
    # Without a session parameter a path can have dot segments that were none before.
    return key if plain == path else url_key(key, session_names)


def without_session(url: str, session_names: frozenset[str] = DEFAULT_SESSION_NAMES) -> str:
    """A `fetch_url` without its session parameters; all else stays as it is.

    >>> without_session("http://example.org/a;jsessionid=1?b=2&PHPSESSID=x&a=1")
    'http://example.org/a?b=2&a=1'
    """
    if not _session_mark(session_names).search(url):
        return url
    place, mark, query = url.partition("?")
    kept = [pair for pair in query.split("&") if _name(pair).lower() not in session_names]
    plain = _session_parameters(session_names).sub("", place)
    return fetch_url(plain + mark + "&".join(kept) if kept else plain)


def key_of_fetched(url: str, session_names: frozenset[str] = DEFAULT_SESSION_NAMES) -> str:
    """The `url_key` of a `fetch_url`, which most often is its own key.

    >>> key_of_fetched("http://example.org/a"), key_of_fetched("http://example.org/a?sid=1")
    ('http://example.org/a', 'http://example.org/a')
    """
    return url if _is_plain(url) else url_key(url, session_names)


def _is_plain(href: str) -> bool:
    """Whether none of the rules has anything to do."""
    return href.startswith(("http://", "https://")) and not _ANY_RULE.search(href, len("http://h"))


def _plain_authority(scheme: str, authority: str) -> str:
    return _FINAL_DOT.sub("", authority.removesuffix(_DEFAULT_PORTS.get(scheme, "")))


def _plain_path(path: str, session_names: frozenset[str]) -> str:
    path = _plain_text(path)
    if ";" in path:
        path = _session_parameters(session_names).sub("", path)
    return _SLASHES.sub("/", path) or "/"


def _plain_query(query: str, session_names: frozenset[str]) -> str:
    pairs = [pair for pair in _plain_text(query).split("&") if pair]
    kept = [pair for pair in pairs if _name(pair).lower() not in session_names]
    kept.sort(key=_name)
    return "?" + "&".join(kept) if kept else ""


def _plain_text(text: str) -> str:
    """The text with each escape in its one right form. No reserved character is decoded."""
    return _ESCAPE.sub(_plain_escape, text) if "%" in text else text


def _plain_escape(escape: re.Match[str]) -> str:
    return _PLAIN_ESCAPES[escape[0]]


def _name(pair: str) -> str:
    return pair.partition("=")[0]


@lru_cache(maxsize=16)
def _session_mark(names: frozenset[str]) -> re.Pattern[str]:
    """Finds wherever a session parameter may stand."""
    words = "|".join(re.escape(name) for name in sorted(names))
    return re.compile(rf"[;?&](?:{words})=" if words else "(?!)", re.IGNORECASE)


@lru_cache(maxsize=16)
def _session_parameters(names: frozenset[str]) -> re.Pattern[str]:
    """Finds `;name=value` in a path."""
    words = "|".join(re.escape(name) for name in sorted(names))
    return re.compile(rf";(?:{words})=[^;/]*" if words else "(?!)", re.IGNORECASE)
