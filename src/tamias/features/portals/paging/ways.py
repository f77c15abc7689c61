"""Ways to read one portal, tried in turn; the harvest's state says which one is taken."""

import re
from collections.abc import AsyncIterator, Callable, Mapping

import msgspec

from tamias.features.portals.paging.listing import state_of
from tamias.features.portals.paging.position import Position
from tamias.model.capture import Outcome
from tamias.model.finding import Harvest, HarvestEnd, HarvestStep
from tamias.model.url import authority, fetch_url
from tamias.protocols import Harvester, PoliteClient

Way = Callable[[], AsyncIterator[HarvestStep]]


async def in_turn(place: Position, ways: Mapping[str, Way]) -> AsyncIterator[HarvestStep]:
    """Take the first way that gives a dataset, beginning with the one that the place names.

    A way is left for the next if it ends badly before it brought a dataset; a portal that asked us to wait
    is waited for.
    """
    names = list(ways)
    for name in names[names.index(place.stage) if place.stage in names else 0 :]:
        place.stage = name
        left: HarvestEnd | None = None
        async for step in ways[name]():
            if step.end and name != names[-1] and _leads_nowhere(step.end, place):
                left = step.end
            else:
                yield _with_note(step, place)
        if left is None:
            return
        place.note = "; ".join(filter(None, [place.note, _reason(left)]))
        place.restart()
        place.second = False


async def through(
    harvester: Harvester,
    url: str,
    kind: str,
    place: Position,
    client: PoliteClient,
    bookmark: bytes | None = None,
) -> AsyncIterator[HarvestStep]:
    """Run another harvester, with its state inside of ours."""
    known = None if place.inner else bookmark
    harvest = Harvest(url=url, kind=kind, state=place.inner, bookmark=known)
    async for step in harvester.harvest(harvest, client):
        place.inner = step.state
        place.taken += sum(len(getattr(finding, "datasets", ())) for finding in step.findings)
        yield msgspec.structs.replace(step, state=state_of(place))


def _leads_nowhere(end: HarvestEnd, place: Position) -> bool:
    is_good = end.outcome in (Outcome.OK, Outcome.UNCHANGED)
    return not is_good and end.retry_after_ms is None and not place.taken


def _reason(end: HarvestEnd) -> str:
    if end.outcome is not Outcome.REFUSED:
        return end.reason
    return (
        f"{end.reason}: the portal's robots.txt forbids its API; where its operator permits it, "
        "name the host under `[permit] granted`"
    )


def _with_note(step: HarvestStep, place: Position) -> HarvestStep:
    """Return the step; its end says which ways were tried before."""
    if step.end is None:
        return step
    reason = _reason(step.end) if step.end.outcome is Outcome.REFUSED else step.end.reason
    said = f"{reason} (before that: {place.note})" if place.note else reason
    return msgspec.structs.replace(step, end=msgspec.structs.replace(step.end, reason=said[:4000]))


def roots(url: str, *inner: str) -> list[str]:
    """Return the likely roots of the portal of an address, likeliest first, each with a slash at the end.

    `inner` are the first segments of paths inside the portal: what stands before them is its root.

    >>> roots("https://example.org/data/dataset/trees?x=1", "api", "dataset")
    ['https://example.org/data/', 'https://example.org/']
    >>> roots("https://example.org/api/3/action/package_search", "api")
    ['https://example.org/']
    """
    url = fetch_url(url)
    top = authority(url) + "/"
    path = url.removeprefix(authority(url)).partition("?")[0]
    segments = [segment for segment in path.split("/") if segment]
    cut = next((place for place, segment in enumerate(segments) if segment in inner), len(segments))
    if cut == len(segments) and segments and re.search(r"\.\w{2,5}$", segments[-1]):
        cut -= 1
    prefix = "/".join(segments[:cut])
    return list(dict.fromkeys([f"{top}{prefix}/" if prefix else top, top]))
