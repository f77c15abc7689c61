"""`tamias crawl --dry-run`: what would be fetched first, and which rule or robots line forbids the rest."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.crawl.request.lone import LoneClient
from tamias.model.item import Seed
from tamias.model.url import fetch_url
from tamias.settings import Settings


class Prospect(msgspec.Struct, frozen=True):
    """A seed, and why it would not be fetched, if so."""

    url: str
    refusal: str | None


async def dry_run(settings: Settings, seeds: Sequence[Seed]) -> AsyncIterator[Prospect]:
    """Looks at each seed. Only robots.txt is asked for, once for each place."""
    admission = Admission(settings, [seed.address for seed in seeds])
    with tempfile.TemporaryDirectory(prefix="tamias-") as spool:
        client = LoneClient(settings, Path(spool), admission)
        try:
            for url in (fetch_url(seed.address) for seed in seeds):
                yield Prospect(url, admission.refusal(url, 0) or await client.refusal(url))
        finally:
            await client.close()
