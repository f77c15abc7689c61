"""Sources that are one file: whether it is the file that the last harvest read, by ETag, date or digest."""

from collections.abc import AsyncIterator

import msgspec

from tamias.harvesters.kit.paging import PortalListing, read_listing, state_of
from tamias.harvesters.kit.position import Position
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.finding import HarvestEnd, HarvestStep
from tamias.protocols import PoliteClient


class FileBookmark(msgspec.Struct, kw_only=True, frozen=True):
    """What is needed to know the file again."""

    etag: str | None = None
    last_modified: str | None = None
    sha256: str = ""


def file_bookmark(capture: Capture) -> bytes | None:
    """Of the file that came; None where nothing did."""
    if capture.body is None or not capture.hops:
        return None
    last = capture.hops[-1]
    return msgspec.msgpack.encode(
        FileBookmark(
            etag=last.header("etag"), last_modified=last.header("last-modified"), sha256=capture.body.sha256
        )
    )


def request_if_changed(url: str, bookmark: bytes | None, accept: str | None = None) -> Request:
    """Asks for the file, unless it is as it was."""
    known = _known(bookmark)
    return Request(url=url, accept=accept, etag=known.etag, last_modified=known.last_modified)


def unchanged_end(capture: Capture, bookmark: bytes | None) -> HarvestEnd | None:
    """The end of the harvest of a file that is as it was; None where it is to be read."""
    if bookmark is None:
        return None
    if capture.outcome is Outcome.UNCHANGED:
        reason = f"the file is as it was: {capture.reason or 'not modified'}; 1 request"
    elif capture.body is not None and capture.body.sha256 == _known(bookmark).sha256:
        reason = "the file is as it was, by its SHA-256; 1 request"
    else:
        return None
    return HarvestEnd(outcome=Outcome.UNCHANGED, reason=reason, bookmark=bookmark, changes_only=True)


def _known(bookmark: bytes | None) -> FileBookmark:
    try:
        return msgspec.msgpack.decode(bookmark, type=FileBookmark) if bookmark else FileBookmark()
    except msgspec.MsgspecError:
        return FileBookmark()


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
    async for step in read_listing(listing, place, client, capture):
        if step.end is not None and step.end.complete:
            end = msgspec.structs.replace(step.end, bookmark=file_bookmark(capture))
            yield msgspec.structs.replace(step, end=end)
        else:
            yield step
