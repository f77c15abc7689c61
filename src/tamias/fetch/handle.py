"""Curl handles with everything set that does not change from request to request."""

import ssl
from collections.abc import Iterable

import pycurl

from tamias.fetch.options import HttpOptions
from tamias.model.url import host

READ_BYTES = 16 * 1024
"""Of one read from a socket; curl hands over no larger chunks anyway."""
_DNS_CACHE_SECONDS = 300


def http_handle(options: HttpOptions) -> pycurl.Curl:
    """A handle that sends no cookie, referer or password."""
    return _handle(
        options,
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.HTTP_VERSION, _http_version(options)),
        (pycurl.HTTP09_ALLOWED, 0),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.USERAGENT, options.user_agent),
        # All codings that this curl can decode.
        (pycurl.ACCEPT_ENCODING, ""),
        (pycurl.SSL_VERIFYPEER, int(options.verify_tls)),
        (pycurl.SSL_VERIFYHOST, 2 if options.verify_tls else 0),
    )


def ftp_handle(options: HttpOptions) -> pycurl.Curl:
    """A handle that only ever opens connections itself, and only to the host that it asks."""
    return _handle(
        options,
        (pycurl.PROTOCOLS, pycurl.PROTO_FTP | pycurl.PROTO_FTPS),
        # Data comes from the host we asked, not from one that the server names.
        (pycurl.FTP_SKIP_PASV_IP, 1),
        (pycurl.FTP_FILEMETHOD, pycurl.FTPMETHOD_SINGLECWD),
        (pycurl.FTPSSLAUTH, pycurl.FTPAUTH_TLS),
        (pycurl.FTP_RESPONSE_TIMEOUT, max(1, round(options.first_byte_timeout))),
        (pycurl.CONNECTTIMEOUT_MS, int(options.first_byte_timeout * 1000)),  # to curl the login is part of it
        (pycurl.OPT_FILETIME, 1),
        (pycurl.MAXFILESIZE_LARGE, options.max_bytes),
        (pycurl.MAXCONNECTS, 1),
    )


def _handle(options: HttpOptions, *special: tuple[int, object]) -> pycurl.Curl:
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


def _http_version(options: HttpOptions) -> int:
    return int(pycurl.CURL_HTTP_VERSION_2TLS if options.http2 else pycurl.CURL_HTTP_VERSION_1_1)


def connect_to(options: HttpOptions, url: str | None = None) -> list[str]:
    """Return the addresses that curl is to connect to, also for a URL where it matters which."""
    pairs = options.resolve
    if options.address_of is not None and url is not None:
        pairs = {**pairs, host(url): options.address_of(url)}
    return [f"{_bracketed(name)}::{_bracketed(address)}:" for name, address in pairs.items()]


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name
