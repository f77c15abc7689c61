"""A curl handle with everything set that does not change from request to request."""

import ssl

import pycurl

from tamias.fetch.options import HttpOptions

READ_BYTES = 16 * 1024
"""Of one read from a socket; curl hands over no larger chunks anyway."""
_DNS_CACHE_SECONDS = 300


def configured(options: HttpOptions) -> pycurl.Curl:
    """A handle that sends no cookie, referer or password, and asks no proxy and no netrc file."""
    curl = pycurl.Curl()
    for option, value in (
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.HTTP_VERSION, _http_version(options)),
        (pycurl.HTTP09_ALLOWED, 0),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.NOSIGNAL, 1),
        (pycurl.NOPROGRESS, 0),
        (pycurl.PROXY, ""),
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.USERAGENT, options.user_agent),
        (pycurl.ACCEPT_ENCODING, ""),
        (pycurl.BUFFERSIZE, READ_BYTES),
        (pycurl.CONNECTTIMEOUT_MS, int(options.connect_timeout * 1000)),
        (pycurl.DNS_CACHE_TIMEOUT, _DNS_CACHE_SECONDS),
        (pycurl.CONNECT_TO, [_connect_to(name, to) for name, to in options.resolve.items()]),
        (pycurl.SSL_VERIFYPEER, int(options.verify_tls)),
        (pycurl.SSL_VERIFYHOST, 2 if options.verify_tls else 0),
    ):
        curl.setopt(option, value)
    trusted = options.ca_file or ssl.get_default_verify_paths().cafile
    if trusted is not None:
        curl.setopt(pycurl.CAINFO, trusted)
    return curl


def _http_version(options: HttpOptions) -> int:
    return int(pycurl.CURL_HTTP_VERSION_2TLS if options.http2 else pycurl.CURL_HTTP_VERSION_1_1)


def _connect_to(name: str, address: str) -> str:
    return f"{_bracketed(name)}::{_bracketed(address)}:"


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name
