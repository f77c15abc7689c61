"""`tamias crawl --dry-run`: what would be fetched first, and which rule or robots line forbids the rest."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tamias.crawl.admit import Admission, seed_url
from tamias.crawl.fetching import fetchers
from tamias.model.capture import Capture, Request, Stop
from tamias.model.outcome import Outcome
from tamias.model.url import authority
from tamias.permit.availability import robots_address, rules_of
from tamias.permit.robots import Rules, Verdict
from tamias.protocols import Fetcher
from tamias.settings import Settings


async def dry_run(settings: Settings, seeds: Sequence[str]) -> list[str]:
    """A line for each seed. Only robots.txt is asked for, once for each place."""
    admission = Admission(settings, seeds)
    known: dict[str, Rules] = {}
    lines = []
    with tempfile.TemporaryDirectory(prefix="tamias-") as spool:
        made = fetchers(settings, Path(spool), lambda: time.time_ns() // 1_000_000)
        for seed in seeds:
            url = seed_url(seed)
            refusal = admission.refusal(url, 0) or await _forbidden(url, settings, made["http"], known)
            lines.append(f"skip   {url}  ({refusal})" if refusal else f"fetch  {url}")
        for fetcher in set(made.values()):
            await fetcher.close()
    return lines


async def _forbidden(url: str, settings: Settings, fetcher: Fetcher, known: dict[str, Rules]) -> str | None:
    if not settings.permit.robots or not url.startswith("http"):
        return None
    place = authority(url)
    if place not in known:
        known[place] = _rules(await fetcher.fetch(Request(url=robots_address(url)), _follow))
    verdict = known[place].verdict(url)
    return None if verdict.allowed else f"robots.txt: {verdict.rule}"


def _rules(capture: Capture) -> Rules:
    if capture.outcome is Outcome.REFUSED:
        return Rules(blanket=Verdict(False, capture.reason))
    return rules_of(capture.status, (capture.body.data or b"") if capture.body else b"")


async def _follow(_target: str) -> Stop | None:
    return None
