"""Validators of sources that are one file: its ETag, date and digest at the last harvest."""

from collections.abc import AsyncIterator

import msgspec

from tamias.features.portals.paging.driver import read_listing
from tamias.features.portals.paging.listing import PortalListing, state_of
from tamias.features.portals.paging.position import Position
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.finding import HarvestEnd, HarvestStep
from tamias.protocols import PoliteClient


class FileBookmark(msgspec.Struct, kw_only=True, frozen=True):
    """The validators of a file."""

    etag: str | None = None
    last_modified: str | None = None
    sha256: str = ""


def file_bookmark(capture: Capture) -> bytes | None:
    """Return the bookmark of a response with a file; None without one."""
    if capture.body is None or not capture.hops:
        return None
    last = capture.hops[-1]
    return msgspec.msgpack.encode(
        FileBookmark(
            etag=last.header("etag"), last_modified=last.header("last-modified"), sha256=capture.body.sha256
        )
    )


def request_if_changed(url: str, bookmark: bytes | None, accept: str | None = None) -> Request:
    """Return a request for the file, if it changed."""
    known = _known(bookmark)
    return Request(url=url, accept=accept, etag=known.etag, last_modified=known.last_modified)


def unchanged_end(capture: Capture, bookmark: bytes | None) -> HarvestEnd | None:
    """Return the end of the harvest of an unchanged file; None where it is to be read."""
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
    """Read the listing, or end because the file is unchanged."""
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
