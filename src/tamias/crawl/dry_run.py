"""`tamias crawl --dry-run`: what would be fetched first, and which rule or robots line forbids the rest."""

import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from tamias.crawl.admit import Admission
from tamias.crawl.fetching import fetchers
from tamias.crawl.visits.robots import few_hops, forbidden_by, robots_request, rules_in
from tamias.model.seed import Seed
from tamias.model.url import authority, fetch_url
from tamias.permit.availability import robots_address
from tamias.permit.robots import Rules
from tamias.protocols import Fetcher
from tamias.settings import Settings


class Prospect(msgspec.Struct, frozen=True):
    """A seed, and why it would not be fetched, if so."""

    url: str
    refusal: str | None


async def dry_run(settings: Settings, seeds: Sequence[Seed]) -> AsyncIterator[Prospect]:
    """Looks at each seed. Only robots.txt is asked for, once for each place."""
    admission = Admission(settings, [seed.address for seed in seeds])
    known: dict[str, Rules] = {}
    with tempfile.TemporaryDirectory(prefix="tamias-") as spool:
        made = fetchers(settings, Path(spool), lambda: time.time_ns() // 1_000_000)
        try:
            for url in (fetch_url(seed.address) for seed in seeds):
                refusal = admission.refusal(url, 0) or await _forbidden(url, settings, made, known)
                yield Prospect(url, refusal)
        finally:
            for fetcher in set(made.values()):
                await fetcher.close()


async def _forbidden(
    url: str, settings: Settings, made: dict[str, Fetcher], known: dict[str, Rules]
) -> str | None:
    fetcher = made.get(url.partition(":")[0])
    if fetcher is None:
        return f"no fetcher for {url.partition(':')[0]} addresses"
    if not settings.permit.robots:
        return None
    place = authority(url)
    if place not in known:
        known[place] = rules_in(await fetcher.fetch(robots_request(robots_address(url)), few_hops()))
    return forbidden_by(known[place], url)
