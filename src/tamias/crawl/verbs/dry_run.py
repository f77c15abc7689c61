"""`tamias crawl --dry-run`: what would be fetched first, and why the rest would not."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.crawl.plan.reopening import Widening
from tamias.crawl.plan.seed_outcomes import SeedState
from tamias.crawl.request.lone import LoneClient
from tamias.model.capture import Outcome
from tamias.model.item import Seed
from tamias.model.url import fetch_url
from tamias.settings import Settings


class Prospect(msgspec.Struct, frozen=True):
    """A seed, and why it would not be fetched, if so."""

    url: str
    refusal: str | None


async def dry_run(
    settings: Settings,
    seeds: Sequence[Seed],
    near: Sequence[str],
    known: Mapping[str, SeedState],
    opened: Sequence[Widening],
) -> AsyncIterator[Prospect]:
    """Looks at each seed. Only robots.txt is asked for, once for each place.

    `near` are the seeds that the scope counts from, `known` those that an earlier run has put, and `opened`
    is what this run allows and that one did not.
    """
    admission = Admission(settings, [*near, *(seed.address for seed in seeds)])
    with tempfile.TemporaryDirectory(prefix="tamias-") as spool:
        client = LoneClient(settings, Path(spool), admission)
        try:
            for url in (fetch_url(seed.address) for seed in seeds):
                finished = _finished(known.get(url), opened) or admission.refusal(url, 0)
                yield Prospect(url, finished or client.address_refusal(url) or await client.refusal(url))
        finally:
            await client.close()


def _finished(state: SeedState | None, opened: Sequence[Widening]) -> str | None:
    """Return why a known seed is not fetched again, if so."""
    if state is None or not state.done:
        return None
    for each in opened:
        if state.cut & each.cut or (each.reason and each.reason in state.reason):
            return None
    if state.outcome is Outcome.NEW:
        return "known from an earlier run, which had it from elsewhere"
    return f"visited by an earlier run: {state.outcome.word}"
