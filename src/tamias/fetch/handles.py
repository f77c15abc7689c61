"""Handles of curl, with the options that all requests of a protocol have."""

import ssl
from collections.abc import Iterable

import pycurl

from tamias.fetch.credentials import HttpOptions
from tamias.model.url import host

READ_BYTES = 16 * 1024
"""Of one read from a socket; curl hands over no larger chunks anyway."""
_DNS_CACHE_SECONDS = 300
_SUPPRESS_CONNECT_HEADERS = 265  # curl's number: pycurl has no name for it


def http_handle(options: HttpOptions) -> pycurl.Curl:
    """A handle that sends no cookie, referer or password."""
    return new_handle(
        options,
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (
            pycurl.HTTP_VERSION,
            pycurl.CURL_HTTP_VERSION_2TLS if options.http2 else pycurl.CURL_HTTP_VERSION_1_1,
        ),
        (pycurl.HTTP09_ALLOWED, 0),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.USERAGENT, options.user_agent),
        # All codings that this curl can decode.
        (pycurl.ACCEPT_ENCODING, ""),
        (pycurl.SSL_VERIFYPEER, int(options.verify_tls)),
        (pycurl.SSL_VERIFYHOST, 2 if options.verify_tls else 0),
        *(_proxy_options(options) if options.proxy else ()),
    )


def _proxy_options(options: HttpOptions) -> Iterable[tuple[int, object]]:
    """The options of a handle that connects to hosts through a proxy, plain http included."""
    address = options.proxy.replace("socks5:", "socks5h:") if options.proxy_resolves else options.proxy
    yield pycurl.PROXY, address
    yield pycurl.HTTPPROXYTUNNEL, 1
    yield _SUPPRESS_CONNECT_HEADERS, 1
    if options.proxy_login:
        yield pycurl.PROXYUSERPWD, options.proxy_login


def new_handle(options: HttpOptions, *special: tuple[int, object]) -> pycurl.Curl:
    """A handle that asks no proxy and no netrc file."""
    common: Iterable[tuple[int, object]] = (
        (pycurl.NOSIGNAL, 1),
        (pycurl.NOPROGRESS, 0),
        (pycurl.PROXY, ""),
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        # We normalise URLs ourselves; curl must not ask for another one than the frontier knows.
        (pycurl.PATH_AS_IS, 1),
        (pycurl.BUFFERSIZE, READ_BYTES),
        (pycurl.CONNECTTIMEOUT_MS, int(options.connect_timeout * 1000)),
        (pycurl.DNS_CACHE_TIMEOUT, _DNS_CACHE_SECONDS),
        (pycurl.CONNECT_TO, connect_to(options)),
    )
    curl = pycurl.Curl()
    for option, value in (*common, *special):
        curl.setopt(option, value)
    trusted = options.ca_file or ssl.get_default_verify_paths().cafile
    if trusted is not None:
        curl.setopt(pycurl.CAINFO, trusted)
    return curl


def connect_to(options: HttpOptions, url: str | None = None) -> list[str]:
    """Return the addresses that curl is to connect to, also for a URL where it matters which."""
    pairs = options.resolve
    if options.address_of is not None and url is not None:
        pairs = {**pairs, host(url): options.address_of(url)}
    return [f"{bracketed(name)}::{bracketed(address)}:" for name, address in pairs.items()]


def bracketed(name: str) -> str:
    """Return the name of a host as curl takes it, an IPv6 address in brackets."""
    return f"[{name}]" if ":" in name and not name.startswith("[") else name
