"""What makes a URL: the form that is fetched, and the keys of its queue and of its robots.txt.

Pure functions over strings. Every link of every page passes here, so the common case is one native call.
"""

import re
from functools import cache, lru_cache

import ada_url
import can_ada
from publicsuffixlist import PublicSuffixList

from tamias.model.errors import UrlError

_WEB = ("http:", "https:", "ftp:")

_SCHEME_AND_HOST = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://(?:[^/?#]*@)?([^/?#]*))?")
_PORT = re.compile(r":[0-9]*$")
_PASSWORD = re.compile(r"(?<=://)([^/?#:]*):[^/?#]*@")


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
    return _PASSWORD.sub(r"\1@", url, count=1)


def _is_undisputed(href: str) -> bool:
    """Whether can_ada, which follows an older edition of the standard, is right about an ASCII address.

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
        return f"{shown} in {base[:200]!r} is no URL"
    if _SCHEME_AND_HOST.match(address.lstrip()) is None:
        return f"{shown} is no URL: it does not begin with a scheme such as https://"
    return f"{shown} is no URL: its host or port cannot be read"


@lru_cache(maxsize=64)
def _parsed(base: str) -> can_ada.URL:
    return can_ada.parse(base)


@lru_cache(maxsize=4096)  # a visit asks for the authority and the queue of its URL at each of its steps
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
    return PublicSuffixList()


def is_address(text: str) -> bool:
    """Whether a text can be made into something to fetch."""
    try:
        fetch_url(text)
    except UrlError:
        return False
    return True
