"""The forms of a URL: the one that is fetched, and the keys of its queue and of its robots.txt.

Pure functions over strings. Every link of every page passes here, so the common case is one native call.
"""

import re
from functools import cache, lru_cache
from itertools import product
from pathlib import Path

import ada_url
import can_ada
from publicsuffixlist import PSLFILE, PublicSuffixList

from tamias.model.errors import UrlError

_WEB = ("http:", "https:", "ftp:")

_SCHEME_AND_HOST = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://(?:[^/?#]*@)?([^/?#]*))?")
_PORT = re.compile(r":[0-9]*$")
_PASSWORD = re.compile(r"(?<=://)([^/?#:]*):[^/?#]*@")
_INVALID_USER = re.compile(r":.*@", re.DOTALL)


def fetch_url(address: str) -> str:
    """The URL to fetch: as the WHATWG URL standard writes it, without the fragment.

    Raises `UrlError` for what is no absolute URL. Any scheme will do.

    >>> fetch_url("HTTP://EXAMPLE.org:80/a/../b c#top")
    'http://example.org/b%20c'
    """
    try:
        href = can_ada.parse(address).href
    except (ValueError, TypeError):
        href = ""
    if not (address.isascii() and _is_undisputed(href)):
        href = _by_the_standard(address, None)
    return href.partition("#")[0]


def resolve(reference: str, base: str) -> str:
    """The `fetch_url` of a reference that stands in the document at `base`.

    >>> resolve("../c?d", "http://example.org/a/b/")
    'http://example.org/a/c?d'
    """
    try:
        href = (_parsed(base) + reference).href
    except (ValueError, TypeError):
        href = ""
    if not (reference.isascii() and base.isascii() and _is_undisputed(href)):
        href = _by_the_standard(reference, base)
    return href.partition("#")[0]


@lru_cache(maxsize=4096)  # a visit asks for the authority and the queue of its URL at each of its steps
def authority(url: str) -> str:
    """Scheme, host and port of a `fetch_url`: what one robots.txt speaks for.

    >>> authority("https://user@example.org:8443/a?b")
    'https://example.org:8443'
    """
    scheme, name = _scheme_and_host(url)
    return f"{scheme}://{name}" if name else f"{scheme}:"


def host(url: str) -> str:
    """The host of a `fetch_url`, without port and final dot; empty where there is none.

    >>> host("https://user@www.example.org.:8443/a?b")
    'www.example.org'
    """
    name = _PORT.sub("", _scheme_and_host(url)[1])
    return name.removesuffix(".") or name


def host_of_name(name: str) -> str:
    """The host of a graph or document; empty where its name is no URL, as that of an imported file may be."""
    try:
        return host(name)
    except UrlError:
        return ""


@lru_cache(maxsize=4096)
def host_key(url: str) -> str:
    """The key of the queue a `fetch_url` belongs to: its pay-level domain, its IP address, or its scheme.

    >>> host_key("https://www.data.example.co.uk/a"), host_key("http://[::1]:80/"), host_key("urn:a:b")
    ('example.co.uk', '::1', 'urn')
    """
    scheme, name = _scheme_and_host(url)
    return _pay_level_domain(name) if name else scheme.lower()


def without_password(url: str) -> str:
    """An address as it may be shown.

    >>> without_password("ftp://me:secret@example.org/a:b@c")
    'ftp://me@example.org/a:b@c'
    """
    return _PASSWORD.sub(r"\1@", url, count=1) if "@" in url else url


def shown_target(text: str) -> str:
    """A URL or name that somebody gave, valid or not, as it may be shown and logged.

    >>> [shown_target(each) for each in ("http:me:pw@example.org", "http://me:pw@host:bad", "me@home")]
    ['http://me@example.org/', 'http:…@host:bad', 'me@home']
    """
    try:
        return without_password(fetch_url(text))
    except UrlError:
        return _INVALID_USER.sub(":…@", text)


def _is_undisputed(href: str) -> bool:
    """Tell if can_ada, which follows an older edition of the standard, is right about an ASCII address.

    Since then `^` is escaped in paths, broken punycode is let through, opaque paths keep their last space.
    """
    return href.startswith(_WEB) and "^" not in href and "xn--" not in href


def _by_the_standard(address: str, base: str | None) -> str:
    try:
        if base is None:
            return ada_url.normalize_url(_scalar_values(address))
        return ada_url.join_url(_scalar_values(base), _scalar_values(address))
    except ValueError:
        raise UrlError(_complaint(address, base)) from None


def _scalar_values(text: str) -> str:
    """The text with lone surrogates replaced, which no URL parser takes."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _complaint(address: str, base: str | None) -> str:
    shown = repr(address if len(address) <= 200 else address[:200] + "…")
    if base is not None:
        return f"{shown} in {base[:200]!r} is not a URL"
    if _SCHEME_AND_HOST.match(address.lstrip()) is None:
        return f"{shown} is not a URL: it does not begin with a scheme such as https://"
    return f"{shown} is not a URL: its host or port cannot be read"


@lru_cache(maxsize=64)
def _parsed(base: str) -> can_ada.URL:
    return can_ada.parse(base)


@lru_cache(maxsize=4096)
def _scheme_and_host(url: str) -> tuple[str, str]:
    found = _SCHEME_AND_HOST.match(url)
    if found is None:
        raise UrlError(_complaint(url, None))
    return found[1], found[2] or ""


@lru_cache(maxsize=65_536)
def _pay_level_domain(name: str) -> str:
    domain = _canonical_host(_PORT.sub("", name))
    if domain.startswith("["):
        return domain[1:-1]
    if domain.rpartition(".")[2].isdigit():
        return domain
    return _public_suffixes().privatesuffix(domain) or domain


def _canonical_host(name: str) -> str:
    """A host as http would write it, which other schemes leave as they found it."""
    try:
        name = fetch_url(f"http://{name}/")[len("http://") : -1]
    except UrlError:
        name = name.lower()
    return name.rstrip(".") or name


@cache
def _public_suffixes() -> PublicSuffixList:
    """Return the list of public suffixes; only the few that are not ASCII are encoded."""
    lines = Path(PSLFILE).read_text("utf-8").split("\n")
    rules = [line.partition(" ")[0] for line in lines if line and line[0] != "/"]
    encoded = [_in_punycode(rule) for rule in rules if not rule.isascii()]
    return PublicSuffixList(rules + encoded, accept_encoded_idn=False)


def _in_punycode(rule: str) -> str:
    exception = "!" if rule.startswith("!") else ""
    return exception + ada_url.idna_to_ascii(rule.removeprefix(exception)).decode("ascii")


def is_address(text: str) -> bool:
    """Return whether a text can be made into something to fetch."""
    try:
        fetch_url(text)
    except UrlError:
        return False
    return True


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
    scheme, place, path, query = parts.groups()
    plain = _plain_path(path, session_names)
    key = f"{scheme}://{_plain_authority(scheme, place)}{plain}{_plain_query(query, session_names)}"
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
    pairs = [pair for pair in query.split("&") if _name(pair).lower() not in session_names]
    plain = _session_parameters(session_names).sub("", place)
    return fetch_url(plain + mark + "&".join(pairs) if pairs else plain)


def key_of_fetched(url: str, session_names: frozenset[str] = DEFAULT_SESSION_NAMES) -> str:
    """The `url_key` of a `fetch_url`, which most often is its own key.

    >>> key_of_fetched("http://example.org/a"), key_of_fetched("http://example.org/a?sid=1")
    ('http://example.org/a', 'http://example.org/a')
    """
    return url if _is_plain(url) else url_key(url, session_names)


def _is_plain(href: str) -> bool:
    """Return whether none of the rules has anything to do. An expression would take twice as long."""
    return (
        href.startswith(("http://", "https://"))
        and not ("%" in href or "?" in href or ";" in href or "./" in href or ".:" in href)
        and href.find("//", len("http://h")) < 0
    )


def _plain_authority(scheme: str, place: str) -> str:
    return _FINAL_DOT.sub("", place.removesuffix(_DEFAULT_PORTS.get(scheme, "")))


def _plain_path(path: str, session_names: frozenset[str]) -> str:
    path = _plain_text(path)
    if ";" in path:
        path = _session_parameters(session_names).sub("", path)
    return _SLASHES.sub("/", path) or "/"


def _plain_query(query: str, session_names: frozenset[str]) -> str:
    pairs = [pair for pair in _plain_text(query).split("&") if pair]
    others = [pair for pair in pairs if _name(pair).lower() not in session_names]
    others.sort(key=_name)
    return "?" + "&".join(others) if others else ""


def _plain_text(text: str) -> str:
    """The text with each escape in its one right form. No reserved character is decoded."""
    return _ESCAPE.sub(_plain_escape, text) if "%" in text else text


def _plain_escape(escape: re.Match[str]) -> str:
    return _PLAIN_ESCAPES[escape[0]]


def _name(pair: str) -> str:
    return pair.partition("=")[0]


@lru_cache(maxsize=16)
def _session_mark(names: frozenset[str]) -> re.Pattern[str]:
    """Find wherever a session parameter may stand."""
    words = "|".join(re.escape(name) for name in sorted(names))
    return re.compile(rf"[;?&](?:{words})=" if words else "(?!)", re.IGNORECASE)


@lru_cache(maxsize=16)
def _session_parameters(names: frozenset[str]) -> re.Pattern[str]:
    """Find `;name=value` in a path."""
    words = "|".join(re.escape(name) for name in sorted(names))
    return re.compile(rf";(?:{words})=[^;/]*" if words else "(?!)", re.IGNORECASE)


def site_of(url: str) -> str:
    """A URL up to the slash after its host; nothing useful of one that has no host.

    >>> site_of("https://a.example:8443/b/c"), site_of("http://b/")
    ('https://a.example:8443/', 'http://b/')
    """
    return url[: url.find("/", len("https://")) + 1]
