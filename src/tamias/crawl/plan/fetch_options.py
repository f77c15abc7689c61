"""What a fetch may cost, by the settings, and the name under which the crawler introduces itself."""

from pathlib import Path

import msgspec

from tamias import __version__
from tamias.fetch.credentials import load_credentials
from tamias.fetch.options import HttpOptions
from tamias.model.errors import UsageError
from tamias.settings import Settings


def user_agent(settings: Settings) -> str:
    """One name everywhere, with a way to reach the crawler's operator."""
    return f"tamias/{__version__} (+{settings.fetch.contact})"


def http_options(settings: Settings, spool: Path) -> HttpOptions:
    """What a fetch may cost."""
    fetch = settings.fetch
    return HttpOptions(
        user_agent=user_agent(settings),
        contact=fetch.contact,
        spool_dir=str(spool),
        max_bytes=fetch.max_bytes,
        connect_timeout=fetch.connect_timeout,
        first_byte_timeout=fetch.first_byte_timeout,
        query_timeout=fetch.query_timeout,
        total_timeout=fetch.timeout,
        min_rate=fetch.min_rate,
        min_rate_window=fetch.min_rate_window,
        max_redirects=fetch.max_redirects,
        max_header_bytes=fetch.max_header_bytes,
        max_ratio=fetch.max_ratio,
        resolve=_pairs(fetch.resolve),
        credentials=load_credentials(fetch.credentials),
        connections=fetch.concurrency,
    )


def with_own_credentials(settings: Settings, files: tuple[str, ...]) -> Settings:
    """The settings of another machine with credentials of this one.

    Where the other machine says which address a host has, it could have the credential sent to itself: with
    credentials, only DNS says so.
    """
    resolve = () if load_credentials(files).hosts else settings.fetch.resolve
    fetch = msgspec.structs.replace(settings.fetch, credentials=files, resolve=resolve)
    return msgspec.structs.replace(settings, fetch=fetch)


def _pairs(resolve: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for pair in resolve:
        host, colon, address = pair.partition(":")
        if not (host and colon and address):
            raise UsageError(f"--resolve takes HOST:ADDRESS, not '{pair}'")
        pairs[host] = address.strip("[]")
    return pairs
