"""Brings captures of one URL from another archive by polite requests, as an import does from files."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tamias.content.containers.documents import discard, whole
from tamias.crawl.plan.admit import Admission
from tamias.crawl.request.robots import LoneClient
from tamias.database.connect import Database
from tamias.features.backfill.listing import (
    MOST_LISTED,
    ArchiveListing,
    ListedCapture,
    listing_address,
    milliseconds,
    raw_memento,
    read_listing,
)
from tamias.features.imports.captures import ImportedCapture
from tamias.features.imports.importer import CaptureImporter, ImportResult
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.errors import TamiasError, UsageError
from tamias.model.url import url_key
from tamias.settings import Settings

MOST_LISTING = 64 << 20
MOST_PAGES = 100
_ORIGINAL = "x-archive-orig-"
_SECOND = 1000
_FIELDS = frozenset({"content-type", "last-modified", "etag"})


class ArchiveAway(TamiasError):
    """The other archive asks for a pause, or does not answer: what it has is asked for later."""

    retry_can_help = True


class BackfillResult(msgspec.Struct, kw_only=True):
    """The captures that an archive lists, and what became of them."""

    listed: int
    is_cut: bool
    """Whether the archive lists more: a later time to begin with brings them."""
    requested: int = 0
    left: int = 0
    """Captures that a later run requests."""
    imported: ImportResult


async def backfill(
    database: Database,
    data: Path,
    settings: Settings,
    url: str,
    source: str,
    *,
    limit: int,
    between: tuple[int, int],
) -> BackfillResult:
    """Bring captures of a URL that an archive lists between two times, `limit` at most, the earliest first.

    Raises `UsageError` for an address that lists nothing, or a URL that is excluded or forgotten.
    """
    importer = CaptureImporter(database, data, settings, "", archive=True)
    await importer.open()
    client = LoneClient(settings, importer.spool, Admission(settings, ()))
    try:
        refusal, known = await importer.standing(url)
        if refusal is not None:
            raise UsageError(f"{url} is not brought back: {refusal}")
        archive = _Archive(client, settings, url)
        listed, is_cut = await archive.listed(listing_address(source, url, between), between)
        wanted = [each for each in distinct(listed) if each.at not in known]
        result = BackfillResult(listed=len(listed), is_cut=is_cut, left=len(wanted), imported=importer.result)
        for each in wanted[:limit]:
            found = await archive.capture(each)
            result.requested += 1
            result.left -= 1
            if isinstance(found, ImportedCapture):
                await importer.take(each.memento, [found])
            else:
                importer.result.tell(each.memento, 0, found)
        return result
    finally:
        await client.close()
        await importer.close()


def distinct(listed: Sequence[ListedCapture]) -> list[ListedCapture]:
    """Return the captures that may be versions: what was there, without those that the one before equals.

    >>> statuses = ("200", "200", "404")
    >>> [each.at for each in distinct([ListedCapture(at, "", each, "X") for at, each in enumerate(statuses)])]
    [0]
    """
    found: list[ListedCapture] = []
    for each in listed:
        equal = found and each.digest and each.digest == found[-1].digest
        if each.status in ("", "-", "200") and not equal:
            found.append(each)
    return found


class _Archive:
    def __init__(self, client: LoneClient, settings: Settings, url: str) -> None:
        self._client = client
        self._settings = settings
        self._url = url
        self._is_raw = True

    async def listed(self, address: str, between: tuple[int, int]) -> tuple[list[ListedCapture], bool]:
        """Return the captures between two times of its listing, the earliest first, and if some are cut.

        Raises `UsageError` for an answer that is no listing or too large: it is not taken for an empty one.
        """
        captures: dict[int, ListedCapture] = {}
        pages, read = [address], 0
        while read < min(len(pages), MOST_PAGES) and len(captures) <= MOST_LISTED:
            page = await self._listing(pages[read])
            captures |= {each.at: each for each in page.captures if between[0] <= each.at <= between[1]}
            pages += [each for each in page.further[:MOST_PAGES] if each not in pages]
            read += 1
        found = [captures[at] for at in sorted(captures)]
        return found[:MOST_LISTED], len(found) > MOST_LISTED or read < len(pages)

    async def _listing(self, address: str) -> ArchiveListing:
        capture = await self._ask(address)
        body = whole(capture.body, MOST_LISTING)
        discard(capture.body)
        if capture.outcome is not Outcome.OK:
            raise UsageError(f"{address}: {capture.reason}")
        if body is None and capture.body is not None:
            raise UsageError(f"{address} lists more than {MOST_LISTING >> 20} MiB; use --since and --until")
        if (listing := read_listing(body or b"", capture.final_url)) is None:
            raise UsageError(f"{address} is no TimeMap and no answer of a CDX server")
        return listing

    async def capture(self, listed: ListedCapture) -> ImportedCapture | str:
        """Return a capture, or why there is none: as it was captured, or else as the archive replays it."""
        raw = raw_memento(listed.memento) if self._is_raw else listed.memento
        capture = await self._ask(raw)
        if not _at(capture) and raw != listed.memento:
            discard(capture.body)
            capture = await self._ask(listed.memento)
            self._is_raw = not _at(capture)
        at = _at(capture)
        if not at or capture.outcome not in (Outcome.OK, Outcome.GONE):
            discard(capture.body)
            return "it has no Memento-Datetime" if capture.outcome is Outcome.OK else capture.reason
        if not _is_of(capture.final_url, self._url) or abs(at - listed.at) >= _SECOND:
            discard(capture.body)
            return f"it leads to another capture: {capture.final_url}"
        hop = capture.hops[-1]
        headers = [(name.lower().removeprefix(_ORIGINAL), value) for name, value in hop.headers]
        hop = msgspec.structs.replace(
            hop, url=self._url, headers=tuple((n, v) for n, v in headers if n in _FIELDS), address=""
        )
        brought = msgspec.structs.replace(
            capture, url=self._url, started_at=listed.at, ended_at=listed.at, hops=(hop,),
            reason=f"{capture.reason}; brought from {capture.final_url}",
        )  # fmt: skip
        return ImportedCapture(capture=brought, agent="", problems=[], offset=0)

    async def _ask(self, address: str) -> Capture:
        """Ask, and wait for the pauses that the archive asks for, up to `crawl.max_wait`."""
        for _ in range(3):
            capture = await self._client.ask(Request(url=address, accept="*/*"))
            wait = capture.retry_after_ms
            if wait is None:
                return capture
            discard(capture.body)
            if wait > self._settings.crawl.max_wait * 1000:
                break
            await asyncio.sleep(wait / 1000)
        raise ArchiveAway(f"{address}: {capture.reason}; run the command again later: it continues")


def _at(capture: Capture) -> int | None:
    """Return the time of a memento; a page about an error of the archive has none."""
    header = capture.hops[-1].header("memento-datetime") if capture.hops else None
    return milliseconds(header or "")


def _is_of(memento: str, url: str) -> bool:
    """Return whether a memento is one of a URL, by http or https."""
    place = max(memento.rfind("/http:"), memento.rfind("/https:"))
    return place < 0 or _key(memento[place + 1 :]) == _key(url)


def _key(url: str) -> str:
    return url_key(url).partition("://")[2]
