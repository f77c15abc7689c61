"""Reads what was fetched: small bodies at once, large ones in a thread; waits for contexts they name."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Container, Iterator, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from tamias.content.containers.codecs import HEAD
from tamias.content.containers.documents import documents, start_of
from tamias.content.containers.limits import OpenLimits
from tamias.content.formats import FORMATS, SEVEN_ZIP, bare_type
from tamias.content.sniff import signed_type
from tamias.crawl.analysis.analysers import ROUNDS, ContextCache
from tamias.crawl.analysis.extractor import (
    PACKED_TYPES,
    SMALL_BODY,
    Extraction,
    Extractor,
    ReadingState,
    TakeLinks,
    Wanting,
    is_small,
)
from tamias.crawl.analysis.marker import AnalysisMarker
from tamias.crawl.plan.admit import FIRST, Admission, Reference, first, words_of
from tamias.crawl.sandbox.pool import SandboxPool, Turn
from tamias.crawl.sandbox.sandbox import Sandbox
from tamias.crawl.store.held_lease import HeldLease, NotNow
from tamias.crawl.store.progress import step
from tamias.crawl.store.visit import Visit, WorkerStore
from tamias.crawl.visit.progress_files import LongReading, ProgressFiles
from tamias.database.threads import run_uncancelled
from tamias.model.capture import Body, Capture
from tamias.model.document import Document, LimitExceeded, NotAtOnce
from tamias.model.finding import Worded
from tamias.model.item import TRUSTED, WATCH, Item
from tamias.model.kind import CONTEXT, PROBE, REFRESH, REQUISITE, SITEMAP, kind_of
from tamias.model.lease import Task
from tamias.seeds.well_known import kind_there

MOST_NESTED = 3
"""Indexes of sitemaps inside each other."""
_NESTED = "nested-sitemap"
MOST_GATHERED = 20_000
"""Links of a large document that wait for its end: those of one that goes over a limit are not followed."""

MANY_LINKS = 5_000
"""More than these are not put in the transaction of the visit, for which those of other hosts wait."""
LINKS_AT_ONCE = 1_000
"""Links of a large document that are put at once: the visits of other hosts are committed between them."""

LONG_BYTES = 16 << 20
"""Bytes, unpacked, of a body whose reading goes on after a death where it was."""

FetchContext = Callable[[Visit, str], Awaitable[bytes | None]]


FRESH_MS = 24 * 3600 * 1000
_PATIENCE = 30.0
_LOOK_SECONDS = 0.1


class ContextLoader:
    """Gets contexts that nobody has tried: from the store, or by having the frontier visit them."""

    def __init__(
        self,
        cache: ContextCache,
        store: WorkerStore,
        admission: Admission,
    ) -> None:
        self._cache = cache
        self._store = store
        self._admission = admission

    async def supply(
        self, addresses: list[str], task: Task, ask: Callable[[str], Awaitable[bytes | None]] | None
    ) -> None:
        """Waits until each address is at hand, or known not to be had, or it took too long.

        `ask` fetches an address of the queue that the document's own visit holds, if it still does.
        """
        since = self._store.now() - FRESH_MS
        left = await self._take([each for each in addresses if self._is_wanted(each)], since)
        own = self._admission.queue(task.url)
        for address in [each for each in left if ask and self._admission.queue(each) == own]:
            assert ask is not None
            self._cache.put(address, await ask(address))
            left.remove(address)
        if left:
            items = [self._item(address, task) for address in left]
            await self._store.put(items)
        deadline = time.monotonic() + _PATIENCE
        while left and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
            left = await self._take(left, since)
        for address in left:
            self._cache.put(address, None)

    def _is_wanted(self, address: str) -> bool:
        """Tell if a context may be requested; if not, note that it has none. The scope does not apply."""
        wanted = self._admission.blocked(address) is None
        if not wanted:
            self._cache.put(address, None)
        return wanted

    async def _take(self, addresses: list[str], since: int) -> list[str]:
        """Takes over what the store has; returns what it has not."""
        known = await self._store.read_contexts(addresses, since)
        for address, body in known.items():
            self._cache.put(address, body)
        return [address for address in addresses if address not in known]

    def _item(self, address: str, task: Task) -> Item:
        """Return an item that comes before all others of its host, because a document waits for it."""
        return first(self._admission, address, CONTEXT, task)


class _Storing(msgspec.Struct, frozen=True):
    """The position where reading begins, and the function that saves later ones."""

    start: ReadingState | None
    save: Callable[[ReadingState], None]


class Reader:
    """Reads bodies into segments; links come back, or are put as they are found where there may be many."""

    def __init__(
        self,
        extractor: Extractor,
        contexts: ContextLoader,
        store: WorkerStore,
        marker: AnalysisMarker,
        sandboxes: SandboxPool | None = None,
        files: ProgressFiles | None = None,
    ) -> None:
        """`sandboxes` analyse what is large, suspicious or has killed a worker; or everything.

        `files` take what is read for long, so that it goes on after a death where it was.
        """
        self._files = files
        self.interrupted = files.interrupted if files is not None else set[str]()
        """Bodies that were fetched and not read to their end: `fetched` brings them."""
        self.extractor = extractor
        self._sandboxes = sandboxes
        self._contexts = contexts
        self._store = store
        self._quads = store.quads
        self._marker = marker

    def is_read_at_once(self, capture: Capture, task: Task) -> bool:
        """Tell if a document is read in the event loop, not in a sandbox or a thread."""
        body = capture.body
        assert body is not None
        if self._sandboxes is None:
            return is_small(body)
        return not self._sandboxes.takes_all and task.deaths == 0 and is_read_at_once(capture, body)

    async def read(self, visit: Visit, fetch: FetchContext) -> None:
        """Read a body, again as long as it names contexts that nobody has tried.

        `fetch` gets a context of the same queue.
        """
        for _ in range(ROUNDS):
            try:
                visit.found, visit.references = await self._once(visit)
            except Wanting as wanting:
                # Once the visit is parked, its host may be somebody else's.
                ask = partial(fetch, visit) if visit.parked_until is None else None
                await self._contexts.supply(wanting.addresses, visit.task, ask)
            else:
                return
        visit.found = Extraction(limit=f"its contexts name each other more than {ROUNDS} times")

    async def _once(self, visit: Visit) -> tuple[Extraction, list[Reference]]:
        capture, task, held = visit.capture, visit.task, visit.held
        body = capture.body
        assert body is not None
        if visit.at_once:
            with suppress(NotAtOnce):  # its host waits for it: few documents take so long that look harmless
                return await self._at_once(visit)
        turn, long = Turn(held.lease.host, body.size, not is_plain(body)), None
        if self._files is not None and body.path is not None and turn.unpacked >= LONG_BYTES:
            long = await run_uncancelled(partial(self._files.open, task, held, capture))
        extract = partial(self._extract_large, asyncio.get_running_loop(), capture, task, long)
        if self._sandboxes is not None:
            # What is analysed in a sandbox is not to blame for a worker's death.
            read = await self._sandboxes.read(turn, extract)
        else:
            async with self._quads.one_large_at_a_time:
                with self._marker.analysing(held.lease, task):
                    given_up = threading.Event()
                    read = await run_uncancelled(partial(extract, self.extractor, given_up), given_up.set)
        if long is not None:
            long.end(visit)
        return read

    async def fetched(self, task: Task, held: HeldLease) -> Capture | None:
        """Return what was fetched for a document whose reading was interrupted."""
        assert self._files is not None
        return await run_uncancelled(partial(self._files.fetched, task, held))

    async def _at_once(self, visit: Visit) -> tuple[Extraction, list[Reference]]:
        """Read a small document in the event loop. Raises `NotAtOnce`."""
        capture, task = visit.capture, visit.task
        assert capture.body is not None
        references: list[Reference] = []
        take = self._collect(task, references)
        with self._marker.analysing(visit.held.lease, task), step("analyse"):
            found = self.extractor.extract(
                capture, capture.body, self._quads.small_document, take, kind_of(task.tags), at_once=True
            )
        if _is_sitemap(task):
            # Not with the commit: what the sitemaps of a host add is bounded, and the cut told with it.
            found.cut |= await self._put_now(references)
        return found, references

    def _extract_large(
        self,
        loop: asyncio.AbstractEventLoop,
        capture: Capture,
        task: Task,
        long: LongReading | None,
        reader: Extractor | Sandbox,
        given_up: threading.Event,
    ) -> tuple[Extraction, list[Reference]]:
        """Read a large document and put its links in batches, so that memory does not grow with it."""
        assert capture.body is not None
        gathered: list[Reference] = []
        known: set[str] = set()
        cut = 0

        def put() -> int:
            return asyncio.run_coroutine_threadsafe(self._put_now(gathered), loop).result()

        def save(reading: ReadingState) -> None:
            nonlocal cut
            cut |= put()
            known.clear()
            reading.found.cut |= cut
            assert long is not None
            long.save(reading)

        def take(found: Sequence[str], base: str, kind: str | None) -> None:
            nonlocal cut
            if given_up.is_set():
                raise NotNow
            words = found.words if isinstance(found, Worded) else {}
            fresh = found if kind else _unknown(found, known, words)
            if fresh:
                gathered.append(_reference(Worded(fresh, words) if words else fresh, base, kind, task))
                known.update(fresh)
            if len(known) > MOST_GATHERED:
                cut |= put()
                known.clear()

        with step("analyse"):
            kind = kind_of(task.tags)
            if long is None:
                found = reader.extract(capture, capture.body, self._quads.large_document, take, kind)
            else:
                stored = _Storing(long.start, save)
                found = reader.extract(capture, capture.body, long.document, take, kind, stored)
                found.extent = long.shelve() if found.quads and not found.limit else None
        if found.limit:
            gathered.clear()
        elif _is_sitemap(task) or len(known) > MANY_LINKS:
            cut |= put()
        found.cut |= cut
        return found, gathered

    def stop(self) -> None:
        """The worker is told to end: no document is to blame for its death any more."""
        self._marker.close()

    def close(self) -> None:
        """Ends the sandboxes."""
        if self._sandboxes is not None:
            self._sandboxes.close()

    async def _put_now(self, gathered: list[Reference]) -> int:
        """Put the links; return bits of `tamias.model.cut` for those that were refused."""
        cut = 0
        for reference in gathered:
            for some in slices(reference):
                cut |= await self._store.put_links(some)
        gathered.clear()
        return cut

    def _collect(self, task: Task, references: list[Reference]) -> TakeLinks:
        def take(found: Sequence[str], base: str, kind: str | None) -> None:
            if found:
                references.append(_reference(found, base, kind, task))

        return take


def slices(reference: Reference) -> Iterator[Reference]:
    """The same links, no more than `LINKS_AT_ONCE` at a time; those of a sitemap are counted together."""
    if reference.listed:
        yield reference
        return
    words = words_of(reference)
    for start in range(0, len(reference.references), LINKS_AT_ONCE):
        some = reference.references[start : start + LINKS_AT_ONCE]
        theirs = {each: words[each] for each in some if each in words} if words else {}
        yield msgspec.structs.replace(reference, references=some, words=theirs)


def _unknown(found: Sequence[str], known: set[str], words: Container[str]) -> list[str]:
    return [each for each in found if each not in known or each in words]


def _reference(found: Sequence[str], base: str, kind: str | None, task: Task) -> Reference:
    """Links lead one step deeper; but the sitemaps of an index are the same sitemap in parts."""
    listed = _is_sitemap(task)
    if kind == REQUISITE:
        return _requisites(found, base, task)
    if REQUISITE in task.tags:  # it is fetched for a page, not to go on from it
        return Reference((), base, task.depth, task.crawl)
    if kind == REFRESH:
        return Reference(found if task.crawl != WATCH else (), base, task.depth, task.crawl)
    if kind == SITEMAP:
        return msgspec.structs.replace(_parts(found, base, task), listed=listed)
    if task.crawl != WATCH:
        return Reference(found, base, task.depth + 1, task.crawl, kind, listed=listed)
    # What a resource links to is not under watch; what a sitemap lists is, if a user named the sitemap.
    watched = listed and TRUSTED in task.tags
    return Reference(found if watched else (), base, task.depth, task.crawl, kind, listed=listed)


def _requisites(found: Sequence[str], base: str, task: Task) -> Reference:
    """Return the requisites of a page at its depth; nested ones are followed for a few steps."""
    nested = len([tag for tag in task.tags if tag.startswith(REQUISITE)])
    if task.crawl == WATCH or nested >= MOST_NESTED:
        return Reference((), base, task.depth, task.crawl)
    tags = (REQUISITE, *(f"{REQUISITE}-{number}" for number in range(2, nested + 2)))
    return Reference(found, base, task.depth, task.crawl, None, tags)


def _is_sitemap(task: Task) -> bool:
    kind = kind_of(task.tags)
    return kind == SITEMAP or (kind == PROBE and kind_there(task.url) == SITEMAP)


def _parts(found: Sequence[str], base: str, task: Task) -> Reference:
    nested = len([tag for tag in task.tags if tag == _NESTED])
    if nested >= MOST_NESTED:
        return Reference((), base, task.depth, task.crawl)
    trusted = (TRUSTED,) if TRUSTED in task.tags else ()
    tags = (_NESTED,) * (nested + 1) + trusted
    return Reference(found, base, task.depth, task.crawl, SITEMAP, tags, FIRST)


NATIVE_TYPES = frozenset(name for name, row in FORMATS.items() if row.sandboxed)
PROLOG = 64 * 1024
AT_ONCE = OpenLimits(
    max_bytes=SMALL_BODY, max_ratio=1, ratio_after=SMALL_BODY, max_members=20, max_layers=2, max_archives=1
)
"""What is unpacked in the worker: no more than a plain document may have that is read there."""
_SLOW_TO_OPEN = frozenset({SEVEN_ZIP})


def is_read_at_once(capture: Capture, body: Body) -> bool:
    """Tell if a document is small and harmless enough for the worker's own thread."""
    if is_small(body) and not _claims_to_be_packed(capture):
        return not is_dangerous(body)
    data = body.data
    if data is None or len(data) > SMALL_BODY or signed_type(data[:HEAD], ()) in _SLOW_TO_OPEN:
        return False
    try:
        parts = documents(body, url=capture.final_url, declared_type=capture.declared_type, limits=AT_ONCE)
        return all(_is_harmless(part) for part in parts if isinstance(part, Document))
    except LimitExceeded:
        return False


def is_plain(body: Body) -> bool:
    """Tell if a body can be read without unpacking it."""
    return signed_type(start_of(body, HEAD), ()) not in PACKED_TYPES


def _claims_to_be_packed(capture: Capture) -> bool:
    """Brotli and old tar files are known by their names and types only."""
    path = capture.final_url.partition("?")[0]
    return path.endswith((".br", ".tar")) or bare_type(capture.declared_type) in PACKED_TYPES


def is_dangerous(body: Body) -> bool:
    """Tell if even a small body goes to the sandbox because its kind is known to kill parsers."""
    return _is_deadly((body.data or b"")[:PROLOG])


def _is_harmless(document: Document) -> bool:
    start = document.stream.read(PROLOG)
    while document.stream.read(PROLOG):
        continue
    return not _is_deadly(start)


def _is_deadly(start: bytes) -> bool:
    return b"<!ENTITY" in start or signed_type(start[:HEAD], ()) in NATIVE_TYPES
