"""`tamias crawl --dry-run`: says what a run would fetch, and what it would open again."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path

import click
import msgspec

from tamias.cli.console.options import CommonOptions, say, say_json
from tamias.crawl.plan.admit import Admission, open_frontier, seed_items
from tamias.crawl.plan.policy import CrawlPolicy
from tamias.crawl.plan.reopening import Reopened, Widening, count_widened, widenings
from tamias.crawl.plan.seed_outcomes import SeedState, seed_states
from tamias.crawl.request.robots import LoneClient
from tamias.crawl.store.progress import kind_of_reason
from tamias.crawl.verbs.run_policy import RunPolicy, run_policy
from tamias.database.connect import Database, Session
from tamias.frontier.service import found_crawl
from tamias.model.capture import Outcome
from tamias.model.errors import UsageError
from tamias.model.item import Seed
from tamias.model.url import fetch_url


class EarlierRuns(msgspec.Struct, frozen=True):
    """The state in which earlier runs left a crawl."""

    known: dict[str, SeedState] = {}
    """Seeds that they have put."""
    opened: Sequence[Widening] = ()
    """What this run allows and they did not."""
    reopened: Sequence[Reopened] = ()
    """URLs that this run would visit again for it."""
    open: int = 0
    """URLs that are still to be visited."""


def tell_dry_run(place: CommonOptions, flags: dict[str, object], seeds: list[Seed], name: str | None) -> None:
    """Looks at the seeds and at what earlier runs left, and changes nothing."""
    if not (place.db or (place.data / "pg").is_dir()):
        if not seeds:
            raise UsageError("--dry-run needs a seed: name one, or a --data with a crawl to resume")
        _tell_new(place, flags, seeds)
        return
    with (
        closing(Database(place.data, place.db, create=False)) as database,
        closing(database.session()) as session,
    ):
        known = found_crawl(session, name or "")
        if known is None:
            _tell_new(place, flags, seeds)
            return
        policy = run_policy(place, database, flags, seeds, known.crawl)
        earlier = read_earlier(session, policy, seeds, known.crawl)
    asyncio.run(_tell_prospects(place, policy, seeds, earlier))
    if place.json:
        say_json({"reopened": {each.option: each.urls for each in earlier.reopened}, "open": earlier.open})
        return
    for each in earlier.reopened:
        say(f"reopen {each}")
    if earlier.open:
        say(f"fetch  {Reopened('left by an earlier run', earlier.open)}")


def _tell_new(place: CommonOptions, flags: dict[str, object], seeds: list[Seed]) -> None:
    policy = RunPolicy(place.settings(**flags).settings, CrawlPolicy())
    asyncio.run(_tell_prospects(place, policy, seeds, EarlierRuns()))


def read_earlier(session: Session, policy: RunPolicy, seeds: list[Seed], crawl: int | None) -> EarlierRuns:
    """Return what earlier runs of a crawl left, and what a policy would open of it; None is a new crawl."""
    if crawl is None:
        return EarlierRuns()
    settings, before, after = policy.settings, policy.policy.before, policy.policy.options
    frontier = open_frontier(session, settings)
    return EarlierRuns(
        seed_states(session, frontier.buckets, seed_items(settings, seeds, crawl)),
        widenings(before, after),
        count_widened(session, frontier.buckets, crawl, before, after),
        next((each.open for each in frontier.figures().crawls if each.crawl == crawl), 0),
    )


async def _tell_prospects(
    place: CommonOptions, policy: RunPolicy, seeds: list[Seed], earlier: EarlierRuns
) -> None:
    advised: dict[str, str] = {}
    async for prospect in find_prospects(policy, seeds, earlier):
        if place.json:
            say_json(prospect)
        elif prospect.refusal:
            say(f"skip   {prospect.url}  ({prospect.refusal})")
            kind, advice = kind_of_reason(prospect.refusal)
            advised |= {kind: advice} if advice else {}
        else:
            say(f"fetch  {prospect.url}")
    if place.verbosity >= 0:
        for kind, advice in advised.items():
            click.echo(f"{kind}: {advice}", err=True)


class Prospect(msgspec.Struct, frozen=True):
    """A seed, and why it would not be fetched, if so."""

    url: str
    refusal: str | None


async def find_prospects(
    policy: RunPolicy, seeds: list[Seed], earlier: EarlierRuns
) -> AsyncIterator[Prospect]:
    """Look at each seed; only robots.txt is requested, once for each place."""
    admission = Admission(policy.settings, [*policy.policy.seeds, *(seed.address for seed in seeds)])
    with tempfile.TemporaryDirectory(prefix="tamias-") as spool:
        client = LoneClient(policy.settings, Path(spool), admission)
        try:
            for url in (fetch_url(seed.address) for seed in seeds):
                finished = _finished(earlier.known.get(url), earlier.opened) or admission.refusal(url, 0)
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
