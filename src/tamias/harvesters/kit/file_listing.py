"""A listing that is one file: read only if it is not the file that the last harvest read."""

from collections.abc import AsyncIterator, Iterator

import msgspec

from tamias.harvesters.kit.paging import PortalListing, read_listing, state_of
from tamias.harvesters.kit.position import Position
from tamias.harvesters.kit.validators import file_bookmark, request_if_changed, unchanged_end
from tamias.model.capture import Capture, Request
from tamias.model.finding import Finding, HarvestStep
from tamias.protocols import PoliteClient


async def read_file_listing(
    listing: PortalListing, place: Position, client: PoliteClient, bookmark: bytes | None
) -> AsyncIterator[HarvestStep]:
    """The steps of the listing, or an end that says that the file is as it was."""
    url, _ = listing.address(place, 0, 1)
    known = None if place.taken else bookmark
    capture = await client.ask(request_if_changed(url, known, "application/json"))
    if end := unchanged_end(capture, known):
        yield HarvestStep(state=state_of(place), end=end)
        return
    async for step in read_listing(listing, place, _AnsweredClient(client, capture)):
        if step.end is not None and step.end.complete:
            end = msgspec.structs.replace(step.end, bookmark=file_bookmark(capture))
            yield msgspec.structs.replace(step, end=end)
        else:
            yield step


class _AnsweredClient:
    """A client whose first answer is at hand."""

    def __init__(self, client: PoliteClient, first: Capture) -> None:
        self._client = client
        self._first: Capture | None = first

    async def ask(self, request: Request) -> Capture:
        first, self._first = self._first, None
        return first or await self._client.ask(request)

    def body(self, capture: Capture, most: int) -> bytes:
        return self._client.body(capture, most)

    def read(self, capture: Capture) -> Iterator[Finding]:
        return self._client.read(capture)

    async def records_held(self) -> int:
        return await self._client.records_held()
