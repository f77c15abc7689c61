"""Portals by the ways in which they can be read, tried in turn; the state says which one is taken."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple

import msgspec

from tamias.features.portals.paging.driver import read_listing
from tamias.features.portals.paging.listing import PortalListing, opening, place_of, state_of
from tamias.features.portals.paging.position import Position, place_after
from tamias.features.portals.paging.validators import read_file_listing
from tamias.model.capture import Outcome
from tamias.model.finding import Harvest, HarvestEnd, HarvestStep
from tamias.model.url import authority, fetch_url
from tamias.protocols import Harvester, PoliteClient

Find = Callable[[str, PoliteClient], Awaitable[Position | HarvestEnd]]
"""Finds where a portal begins, by an address of it."""


class CatalogueFile(NamedTuple):
    """A file of the whole portal that another harvester reads."""

    path: str
    harvester: type[Harvester]


Ways = Mapping[str, PortalListing | CatalogueFile]


class Portal:
    """Harvests a portal in the first way that gives a dataset, beginning with the one that the place names.

    A way is left for the next if it ends badly before it brought a dataset; a portal that asked us to wait
    is waited for.
    """

    def __init__(self, kind: str, find: Find, ways: Ways) -> None:
        self.kinds = frozenset({kind})
        self._find = find
        self._ways = ways

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        place = place_of(harvest.state)
        if place is None:
            found = place_after(harvest.bookmark) or await self._find(harvest.url, client)
            if isinstance(found, HarvestEnd):
                yield HarvestStep(state=b"", end=found)
                return
            place = found
            yield opening(place)
        bookmark, names = None if harvest.state else harvest.bookmark, list(self._ways)
        for name in names[names.index(place.stage) if place.stage in names else 0 :]:
            place.stage = name
            left: HarvestEnd | None = None
            async for step in _steps(self._ways[name], place, client, bookmark):
                if step.end and name != names[-1] and _leads_nowhere(step.end, place):
                    left = step.end
                else:
                    yield _with_note(step, place)
            if left is None:
                return
            place.note = "; ".join(filter(None, [place.note, _reason(left)]))
            place.restart()
            place.second = False


def at_root(*inner: str, is_top: bool = False) -> Find:
    """Make a function that begins at the root of a portal, or of its host, without a request."""

    async def find(url: str, _client: PoliteClient) -> Position:
        return Position(root=roots(url, *inner)[-1 if is_top else 0])

    return find


def _steps(
    way: PortalListing | CatalogueFile, place: Position, client: PoliteClient, bookmark: bytes | None
) -> AsyncIterator[HarvestStep]:
    if isinstance(way, CatalogueFile):
        return _through(way, place, client, bookmark)
    if way.is_file:
        return read_file_listing(way, place, client, bookmark)
    return read_listing(way, place, client)


async def _through(
    file: CatalogueFile, place: Position, client: PoliteClient, bookmark: bytes | None
) -> AsyncIterator[HarvestStep]:
    """Run another harvester, with its state inside of ours."""
    harvester = file.harvester()
    harvest = Harvest(
        url=place.root + file.path,
        kind=min(harvester.kinds),
        state=place.inner,
        bookmark=None if place.inner else bookmark,
    )
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
    said = _reason(step.end) + (f" (before that: {place.note})" if place.note else "")
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
