"""Harvester for a `data.json`: one file that describes a whole catalogue (DCAT-US 1.1 and 3)."""

from collections import deque
from collections.abc import AsyncIterator, Iterator
from itertools import chain, islice

import msgspec

from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.descriptions import Descriptions
from tamias.features.dcat.datasets.from_dcat import addresses_in
from tamias.features.dcat.datasets.mapping import BAD, MappedRecord, map_record
from tamias.features.dcat.datasets.records import described, failure, links
from tamias.features.portals.paging.validators import file_bookmark, request_if_changed, unchanged_end
from tamias.features.portals.records import pod
from tamias.model.capture import Capture, Outcome
from tamias.model.finding import (
    Finding,
    Harvest,
    HarvestEnd,
    HarvestStep,
    Problem,
    Quads,
    SourceRecords,
)
from tamias.protocols import PoliteClient

MOST_BYTES = 128 << 20
_RECORDS_A_STEP = 200
_ACCEPT = "application/json, application/vnd.data+json, */*;q=0.1"


class _DataJsonState(msgspec.Struct, kw_only=True):
    """The state of a harvest; it is only valid while the file is the same."""

    sha256: str = ""
    done: int = 0
    datasets: int = 0
    faults: int = 0
    repeated: int = 0


class DataJsonHarvester:
    """Reads the whole file, in steps."""

    kinds = frozenset({"data-json"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        saved = (
            msgspec.msgpack.decode(harvest.state, type=_DataJsonState) if harvest.state else _DataJsonState()
        )
        known = None if harvest.state else harvest.bookmark
        capture = await client.ask(request_if_changed(harvest.url, known, _ACCEPT))
        if end := unchanged_end(capture, known) or failure(capture, "data.json at", MOST_BYTES):
            yield _step(saved, end=end)
            return
        digest = capture.body.sha256 if capture.body else ""
        state = saved if saved.sha256 == digest else _DataJsonState(sha256=digest)
        for step in _steps(client, capture, state):
            yield step


def _steps(client: PoliteClient, capture: Capture, state: _DataJsonState) -> Iterator[HarvestStep]:
    catalogue = capture.final_url
    file = pod.read_file(client.body(capture, MOST_BYTES), catalogue)
    found = _found(file, catalogue)
    if state.done:
        deque(islice(found, state.done), maxlen=0)
    else:
        yield _step(state, list(_catalogue(file, catalogue)))
    while batch := list(islice(found, _RECORDS_A_STEP)):
        records = [each for each in batch if isinstance(each, MappedRecord)]
        problems = [each for each in batch if isinstance(each, Problem)]
        state.done += len(batch)
        state.datasets += len(records)
        state.faults += len(problems)
        state.repeated += batch.count(None)
        yield _step(state, [*described(records, catalogue), *problems])
    yield _step(state, end=_end(state, file_bookmark(capture)))


def _catalogue(file: pod.Found, catalogue: str) -> Iterator[Finding]:
    """Yield what the file says beside its datasets, and links to its services."""
    try:
        mapped = map_record(pod.CATALOGUE, file.catalogue, catalogue) if file.catalogue else None
    except BAD as error:
        mapped = None
        yield Problem(f"the catalogue of data.json: {error}")
    quads = mapped.quads if mapped else catalogue_quads(catalogue, "", None, None)
    yield Quads(quads)
    if mapped:
        yield SourceRecords([mapped.source])
        yield from links(addresses_in(Descriptions(quads)), catalogue)


def _found(file: pod.Found, catalogue: str) -> Iterator[MappedRecord | Problem | None]:
    """Yield an item for each record; None for one that was there before: the first one counts."""
    seen: set[str] = set()
    for record in chain(file.records, file.inner):
        if isinstance(record, str):
            yield Problem(record)
            continue
        try:
            mapped = map_record(pod.MAPPING, record, catalogue)
        except BAD as error:
            yield Problem(f"a record of data.json, after {len(seen)} others: {error}")
            continue
        yield mapped if mapped.dataset.record not in seen else None
        seen.add(mapped.dataset.record)


def _end(state: _DataJsonState, bookmark: bytes | None) -> HarvestEnd:
    said = f"{state.datasets} datasets in one file"
    said += f", {state.repeated} records of the same identifiers left out" if state.repeated else ""
    if not state.faults:
        return HarvestEnd(
            outcome=Outcome.OK, reason=f"{said}, all of it read", complete=True, bookmark=bookmark
        )
    outcome = Outcome.OK if state.datasets else Outcome.FAILED
    return HarvestEnd(outcome=outcome, reason=f"{said}, {state.faults} faults; there may be more")


def _step(
    state: _DataJsonState, findings: list[Finding] | None = None, end: HarvestEnd | None = None
) -> HarvestStep:
    return HarvestStep(state=msgspec.msgpack.encode(state), findings=findings or [], end=end)
