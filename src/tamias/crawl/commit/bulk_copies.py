"""Datasets that a site offers as a whole (Semantic Sitemaps): had by the way that troubles their host least.

While such a copy is under way, nothing it covers is asked for one by one. A copy is had when it was read to
its end and gave statements. It counts only if it describes a quarter of the URIs that are looked up in it
(samples of the sitemap, and some that the crawl met), and has most of the statements that documents of a few
of these make about them. Then it covers the resources that it describes; the others are requested.
"""

import asyncio
import logging
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from random import Random
from urllib.parse import unquote

import msgspec

from tamias.archive.file_store import FileStore
from tamias.archive.sources.access_plan import Access, access_plan
from tamias.archive.sources.claim import authoritative, claims, hosts_to_ask
from tamias.archive.sources.sites import (
    Comparison,
    Covered,
    SiteDataset,
    after,
    any_unvisited,
    covered,
    dataset_key,
    documents_of,
    met_urls,
    note_claims,
    note_compared,
    note_failed,
    note_read,
    others_claims,
    put_site_dataset,
    waiting_claims,
    waiting_for,
)
from tamias.archive.stored_files import find_segment, segment_opener
from tamias.content.blank_nodes import Colours, with_gaps
from tamias.crawl.analysis.extractor import PAGES, Extraction
from tamias.crawl.plan.admit import Admission, Reference, first
from tamias.crawl.store.progress import Shares, count_share
from tamias.crawl.store.visit import CommitBatch, CommitHook, Visit
from tamias.database.connect import Cursor
from tamias.database.threads import SessionThread, run_uncancelled
from tamias.model.capture import Extent, Outcome
from tamias.model.document import Unreadable
from tamias.model.item import TRUSTED, WATCH, Item
from tamias.model.kind import DUMP, SITEMAP
from tamias.model.lease import Lease, Task
from tamias.model.site import SemanticDataset
from tamias.sinks.segments.segment_files import SegmentError, SegmentReader

Pieces = Callable[[], Iterable[bytes]]
"""Reads N-Quads from their beginning, in pieces that may end anywhere."""
MOST_BLANK = 1000
"""Blank nodes that are followed from the statements about resources; with more, none of them counts."""
MOST_STEPS = 8
"""How far they are followed. Each step reads all from the beginning."""
RUN = 1 << 20
"""Hashes of subjects that are sorted in memory."""
_SUBJECT = re.compile(rb"\n<([^>#]*)")
_ENCODED = re.compile("(?:%[89A-Fa-f][0-9A-Fa-f])+")


class SubjectIndex:
    """Says which URIs are subjects of a copy, by themselves or with a fragment.

    Their hashes are in sorted runs of a file without a name, so a copy of any size takes little memory.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        import numpy as np

        fresh, count, ends = [], 0, []
        with tempfile.TemporaryFile() as file:
            for lines in chain(_whole_lines(pieces), (None,)):
                subjects = set(_SUBJECT.findall(lines)) if lines else ()
                fresh.append(np.fromiter(map(hash, subjects), np.int64, len(subjects)))
                count += len(subjects)
                if count >= RUN or lines is None:
                    file.write(np.unique(np.concatenate(fresh)).tobytes())
                    ends.append(file.tell() // 8)
                    fresh, count = [], 0
            file.flush()
            hashes = np.memmap(file, np.int64, "r") if ends[-1] else np.empty(0, np.int64)
        self._runs = [run for run in np.split(hashes, ends[:-1]) if len(run)]

    def __contains__(self, uri: str) -> bool:
        return any(
            run[min(run.searchsorted(sought), len(run) - 1)] == sought
            for sought in map(hash, (name.encode() for name in _names(uri)))
            for run in self._runs
        )


def statements_about(read: Pieces, uris: Iterable[str]) -> dict[str, Counter[bytes]]:
    """Return the statements about each URI and the blank nodes they lead to, in any graph.

    Blank nodes are named by what is said of them, so that the results of two calls can be compared.
    """
    about = {uri: [_triple(line) for line in _found(read(), _beginnings(uri))] for uri in uris}
    fresh = {node for triples in about.values() for node in _blank_objects(triples)}
    of_node: dict[bytes, list[bytes]] = {}
    for _ in range(MOST_STEPS):
        if not fresh or len(of_node) + len(fresh) > MOST_BLANK:
            break
        of_node |= _about_nodes(read(), fresh)
        fresh = {node for each in fresh for node in _blank_objects(of_node[each])} - of_node.keys()
    if fresh:
        return {
            uri: Counter(each for each in found if with_gaps(each) is None) for uri, found in about.items()
        }
    return {uri: _coloured(_with_nodes(found, of_node)) for uri, found in about.items()}


def _found(pieces: Iterable[bytes], starts: Sequence[bytes]) -> Iterator[bytes]:
    """The lines that begin so."""
    for text in _whole_lines(pieces):
        for start in starts:
            place = text.find(start)
            while place >= 0:
                end = text.find(b"\n", place + 1)
                end = len(text) if end < 0 else end
                yield text[place + 1 : end]
                place = text.find(start, end)


def _about_nodes(pieces: Iterable[bytes], nodes: set[bytes]) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {node: [] for node in nodes}
    for text in _whole_lines(pieces):
        for line in text.split(b"\n"):
            subject = line.partition(b" ")[0] if line.startswith(b"_:") else b""
            if subject in found:
                found[subject].append(_triple(line))
    return found


def _with_nodes(triples: Iterable[bytes], of_node: dict[bytes, list[bytes]]) -> set[bytes]:
    """Return the triples with those about their blank nodes, recursively."""
    found: set[bytes] = set()
    waiting = list(triples)
    while waiting:
        triple = waiting.pop()
        if triple not in found:
            found.add(triple)
            waiting += [each for node in _blank_objects([triple]) for each in of_node[node]]
    return found


def _blank_objects(triples: Iterable[bytes]) -> set[bytes]:
    objects = (triple.split(b" ", 2)[2] for triple in triples)
    return {each for each in objects if each.startswith(b"_:")}


def _beginnings(uri: str) -> list[bytes]:
    """Return the possible beginnings of lines about a URI."""
    return [f"\n<{name}{end}".encode() for name in _names(uri) for end in ("> ", "#")]


def _names(uri: str) -> list[str]:
    """Return the URI, and the IRI with letters of all scripts that may be in its place."""
    iri = _ENCODED.sub(lambda encoded: unquote(encoded[0], errors="replace"), uri)
    return list(dict.fromkeys((uri, iri)))


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Text that begins with a line end and goes on to the last one."""
    rest = b"\n"
    for piece in pieces:
        lines, end, tail = (rest + piece).rpartition(b"\n")
        yield lines
        rest = end + tail


def _triple(line: bytes) -> bytes:
    """Return a stored line without its graph."""
    return line.rsplit(b" ", 2)[0]


def _coloured(triples: Iterable[bytes]) -> Counter[bytes]:
    plain, blank = [], []
    for triple in triples:
        statement = with_gaps(triple)
        if statement is None:
            plain.append(triple)
        else:
            blank.append(statement)
    try:
        names = {node: b"_:" + colour.hex().encode() for node, colour in Colours(blank).of.items()}
    except Unreadable:
        return Counter(plain)
    return Counter([*plain, *(each.written(names) for each in blank)])


_log = logging.getLogger(__name__)
PART = "part-of-whole"
"""The tag of what is asked for because a dataset is had from there."""
_MOST_HOSTS = 5
WAIT_MS = 5000
"""How long an address waits for the copy that covers it before it asks again."""
MOST_SAMPLES = 10
MOST_MET = 20
"""URIs that are looked up in a copy: samples of the sitemap, and those that the crawl met."""
MOST_INDEXES = 8
"""Copies whose subjects a worker has at hand."""
MOST_PROBES = 3
"""Covered URLs that are visited all the same, and as many samples, to compare their documents with a copy."""


class CopyRead(msgspec.Struct, frozen=True):
    """A part of a dataset was read; its statements stand in the extent."""

    crawl: int
    url: str
    extent: Extent | None


class CopiesFailed(msgspec.Struct, frozen=True):
    """The way under way to some datasets came to nothing."""

    datasets: list[SiteDataset]


class CopiesChosen(msgspec.Struct, frozen=True):
    """Datasets that a sitemap describes, with the way to each."""

    datasets: list[SiteDataset]
    now: int


class Coverage:
    """The URLs that need no request because a copied dataset covers them, as last read from the database."""

    def __init__(self, thread: SessionThread, files: FileStore) -> None:
        self._thread = thread
        find = partial(find_segment, thread.session)
        self._open_segment = segment_opener(lambda segment: thread.wait(partial(find, segment)), files.open)
        self._covered: list[Covered] = []
        self._probes: dict[tuple[int, bytes], dict[str, int]] = {}
        self._indexes: dict[tuple[Extent, ...], SubjectIndex] = {}
        self._indexing = asyncio.Lock()
        self.shares: Shares = {}

    def refresh(self) -> None:
        """Read all that is committed; called in the database's thread after each lease."""
        self._covered = covered(self._thread.session)

    async def of(self, task: Task, lease: Lease) -> Covered | None:
        """The dataset that a task's address belongs to, or that is had from there by another task.

        It says whether the copy lacks the address. What is under watch belongs to none.
        """
        if not self._covered or PART in task.tags or task.crawl == WATCH:
            return None
        found = self._dataset_of(task)
        if found is None or task.url in found.urls:
            return found
        if found.compared is not None:
            return await self._looked_up(task.url, found)
        probes = await self._probes_of(found, lease)
        if len(probes) < MOST_PROBES:
            probes[task.url] = task.uid
        if task.url in probes:
            return None
        if not found.is_copied or await self._thread.run(
            any_unvisited, self._thread.session, lease, found, probes.values()
        ):
            return msgspec.structs.replace(found, is_copied=False)
        await self._compare(found, lease)
        found = self._dataset_of(task, copied=True)
        return None if found is None else await self._looked_up(task.url, found)

    def _dataset_of(self, task: Task, *, copied: bool = False) -> Covered | None:
        return next(
            (each for each in self._covered if each.is_copied >= copied and _belongs(task, each)), None
        )

    async def _looked_up(self, url: str, dataset: Covered) -> Covered:
        """Say whether the copy describes an address."""
        index = await self._index(dataset.copies)
        return dataset if url in index else msgspec.structs.replace(dataset, lacks=True)

    async def _index(self, copies: tuple[Extent, ...]) -> SubjectIndex:
        async with self._indexing:
            if copies not in self._indexes:
                if len(self._indexes) >= MOST_INDEXES:
                    del self._indexes[next(iter(self._indexes))]
                self._indexes[copies] = await run_uncancelled(partial(self._indexed, copies))
            return self._indexes[copies]

    def _indexed(self, copies: Sequence[Extent]) -> SubjectIndex:
        try:
            with SegmentReader(self._open_segment) as reader:
                return SubjectIndex(chain.from_iterable(map(reader.read, copies)))
        except SegmentError as error:
            _log.warning("the resources of a dataset are requested one by one: %s", error)
            return SubjectIndex(())

    async def _probes_of(self, dataset: Covered, lease: Lease) -> dict[str, int]:
        """Covered URLs, with their ids, that are visited for the comparison; what was visited counts too."""
        key = (dataset.crawl, dataset.key)
        if key not in self._probes:
            met = await self._thread.run(met_urls, self._thread.session, lease, dataset, MOST_PROBES)
            self._probes[key] = {each.url: each.uid for each in met if each.visited}
        return self._probes[key]

    def without_own(self, reference: Reference) -> Reference:
        """The links without those from a copy to what it covers: they are known from there, not met."""
        for each in self._covered:
            if each.crawl == reference.crawl and reference.base in each.urls:
                others = [link for link in reference.references if not link.startswith(each.prefixes)]
                return msgspec.structs.replace(reference, references=others)
        return reference

    async def _compare(self, dataset: Covered, lease: Lease) -> None:
        """Looks URIs up in the copy. Two workers may do so at once: they find the same."""
        met = await self._thread.run(met_urls, self._thread.session, lease, dataset, MOST_MET)
        documents = await self._thread.run(documents_of, self._thread.session, lease, dataset, met)
        others = [each.url for each in met if each.url not in dataset.samples | dataset.urls]
        uris = [*sorted(dataset.samples)[:MOST_SAMPLES], *others]
        index = await self._index(dataset.copies)
        compared = await run_uncancelled(partial(self._compared, dataset.copies, uris, documents, index))
        if not compared.holds:
            _log.warning(
                "%s offers a dataset as a whole, but the copy %s: its resources are requested one by one",
                dataset.sitemap, compared.words,
            )  # fmt: skip
        if await self._thread.run(note_compared, self._thread.session, dataset, compared) and compared.holds:
            for each in met:  # others are counted when they are visited
                if each.visited:
                    count_share(self.shares, dataset.sitemap, described=each.url in index)
        await self._thread.run(self.refresh)

    def _compared(
        self,
        copies: Sequence[Extent],
        uris: Sequence[str],
        documents: dict[str, Extent],
        index: SubjectIndex,
    ) -> Comparison:
        with SegmentReader(self._open_segment) as reader:
            # Documents that the copy does not describe are requested, and say nothing about the others.
            said = {
                url: statements_about(partial(reader.read, extent), [url])[url]
                for url, extent in documents.items()
                if url in index
            }
            copied = statements_about(lambda: chain.from_iterable(map(reader.read, copies)), said)
            return Comparison(
                compared=len(uris),
                described=sum(uri in index for uri in uris),
                documents=len(said),
                statements=sum(each.total() for each in said.values()),
                confirmed=sum((each & copied[url]).total() for url, each in said.items()),
            )


def _belongs(task: Task, dataset: Covered) -> bool:
    return task.crawl == dataset.crawl and (
        task.url in dataset.urls
        or (task.url.startswith(dataset.prefixes) and task.url not in dataset.samples)
    )


def missing_in(found: Extraction) -> str | None:
    """Return why a body is not a copy of a dataset; None if it is one."""
    if found.media_type in PAGES:
        return f"a page ({found.media_type})"
    if not found.read:
        return "not read to its end"
    if found.damaged:
        return "damaged, or cut short"
    return None if found.quads else "without statements"


class BulkCopies(CommitHook):
    """Choose and follow the way to each dataset."""

    def __init__(self, thread: SessionThread, admission: Admission) -> None:
        self._thread = thread
        self._admission = admission

    async def take(self, visit: Visit, *, for_good: bool) -> str | None:
        """Adds to a visit what it means for datasets. Returns why this way was chosen; for its record."""
        task = visit.task
        if not visit.found.semantic:
            return await self._follow(visit, for_good=for_good) if PART in task.tags else None
        # Not for one resource under watch: only a sitemap that the user named puts dumps there.
        if task.crawl != WATCH or TRUSTED in task.tags:
            await self._thread.run(self._choose, visit)
        return None

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Write what visits meant for datasets."""
        for _, read in batch.extras(CopyRead):
            note_read(cursor, read.crawl, read.url, read.extent)
        for failed in [each for _, extra in batch.extras(CopiesFailed) for each in extra.datasets]:
            note_failed(cursor, failed)
        for _, chosen in batch.extras(CopiesChosen):
            for each in chosen.datasets:
                put_site_dataset(cursor, each, chosen.now)

    async def _follow(self, visit: Visit, *, for_good: bool) -> str | None:
        """A part of a dataset was asked for: it is had, or, if that failed for good, the next way is put."""
        task, outcome = visit.task, visit.capture.outcome
        waiting = await self._thread.run(waiting_for, self._thread.session, task.crawl, task.url)
        ways = [f"for the dataset of {each.sitemap}: {each.access.why}" for each in waiting if each.access]
        why = "chosen " + ", ".join(ways) if ways else None
        lacking = missing_in(visit.found) if outcome is Outcome.OK else None
        if lacking is not None and waiting:
            why = f"{why}; no copy of it: {lacking}"
        if outcome in (Outcome.OK, Outcome.UNCHANGED) and lacking is None:
            visit.extras.append(CopyRead(task.crawl, task.url, visit.found.extent))
        elif for_good or lacking is not None:
            following = [access for each in waiting if (access := after(each))]
            visit.items += [item for access in following for item in self._items(access, task)]
            visit.extras.append(CopiesFailed(waiting))
        return why

    def _choose(self, visit: Visit) -> None:
        """A sitemap describes datasets: the best way to each is put.

        With those of other sitemaps that waited for this one to speak.
        """
        task, sitemap, datasets = visit.task, visit.capture.final_url, visit.found.semantic
        claimed = [claim for dataset in datasets for claim in claims(dataset, sitemap)]
        self._thread.session.transact(partial(note_claims, crawl=task.crawl, claims=claimed))
        waiting = waiting_claims(self._thread.session, task.crawl)
        chosen = [
            self._chosen(task, place, dataset)
            for place, dataset in [*((sitemap, each) for each in datasets), *waiting]
        ]
        visit.extras.append(CopiesChosen(chosen, self._thread.session.time()))
        for each in chosen:
            if each.access is not None:
                samples = Reference(each.dataset.samples[:MOST_PROBES], sitemap, task.depth + 1, task.crawl)
                visit.items += [*self._items(each.access, task), *self._admission.items(samples)]
        others = {host for dataset in datasets for host in hosts_to_ask(dataset, sitemap)}
        for host in sorted(others)[:_MOST_HOSTS]:
            address = f"http://{host}/sitemap.xml"
            if self._admission.refusal(address, task.depth) is None:
                visit.items.append(first(self._admission, address, SITEMAP, task))

    def _items(self, access: Access, task: Task) -> list[Item]:
        kind = "sparql" if access.kind == "sparql" else DUMP
        return [first(self._admission, url, kind, task, (PART,)) for url in access.urls]

    def _chosen(self, task: Task, sitemap: str, dataset: SemanticDataset) -> SiteDataset:
        key = dataset_key(dataset)
        foreign = others_claims(self._thread.session, task.crawl, claims(dataset, sitemap))
        sound = frozenset(
            place
            for place in authoritative(dataset, sitemap, foreign)
            if self._admission.refusal(place, task.depth) is None
        )
        # The same draw for all workers of a day, so that they choose the same mirror.
        chance = Random(f"{task.crawl} {key.hex()} {time.strftime('%Y-%m-%d', time.gmtime())}")
        plan = access_plan(dataset, "whole", chance, among=sound)
        whole = [access for access in plan if access.kind != "dereference"]
        prefixes = tuple(prefix for prefix in dataset.prefixes if prefix.iri in sound)
        return SiteDataset(
            crawl=task.crawl,
            key=key,
            sitemap=sitemap,
            state="copying" if whole else "claimed",
            dataset=msgspec.structs.replace(dataset, prefixes=prefixes) if whole else dataset,
            plan=whole,
            missing=whole[0].urls if whole else (),
        )
