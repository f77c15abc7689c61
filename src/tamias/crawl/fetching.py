"""The fetchers of a crawl, made from its settings, and the name under which they introduce themselves."""

from collections.abc import Callable
from pathlib import Path

from tamias import __version__
from tamias.fetch.options import HttpOptions
from tamias.model.errors import UsageError
from tamias.permit.addresses import forbidden
from tamias.permit.retry_after import retry_after_ms
from tamias.plugins import load_all
from tamias.protocols import Fetcher
from tamias.settings import Settings


def user_agent(settings: Settings) -> str:
    """One name everywhere, with a way to reach the crawler's operator."""
    return f"tamias/{__version__} (+{settings.fetch.contact})"


def fetchers(settings: Settings, spool: Path, now: Callable[[], int]) -> dict[str, Fetcher]:
    """A fetcher for each scheme that an installed part can fetch."""
    options = http_options(settings, spool)
    guard: Callable[[str], str | None] = (
        (lambda _address: None) if settings.permit.allow_private else forbidden
    )
    made = [
        part(options, forbidden=guard, now=now, retry_after=retry_after_ms)
        for part in load_all("tamias.fetchers").values()
    ]
    return {scheme: fetcher for fetcher in made for scheme in fetcher.schemes}


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
        total_timeout=fetch.timeout,
        min_rate=fetch.min_rate,
        min_rate_window=fetch.min_rate_window,
        max_redirects=fetch.max_redirects,
        max_header_bytes=fetch.max_header_bytes,
        max_ratio=fetch.max_ratio,
        resolve=_pairs(fetch.resolve),
        connections=fetch.concurrency,
    )


def _pairs(resolve: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for pair in resolve:
        host, colon, address = pair.partition(":")
        if not (host and colon and address):
            raise UsageError(f"--resolve takes HOST:ADDRESS, not '{pair}'")
        pairs[host] = address.strip("[]")
    return pairs
