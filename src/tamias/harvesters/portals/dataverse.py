"""Harvester for a Dataverse: its search for the list of datasets, an export of each for its files."""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import msgspec

from tamias.harvesters.kit.dcat import catalogue_quads
from tamias.harvesters.kit.records import CycleDetector, count, described, failure, json_of, table, text
from tamias.harvesters.kit.ways import roots
from tamias.harvesters.portals.dataverse_record import exported, listed
from tamias.model.capture import Capture, Request
from tamias.model.dataset import Dataset
from tamias.model.finding import Finding, Links, Problem, Quads
from tamias.model.harvest import Harvest, HarvestEnd, HarvestStep
from tamias.model.outcome import Outcome
from tamias.protocols import PoliteClient

PAGE_RECORDS = 100
_EXPORTS_A_STEP = 10
_FAILURES_IN_A_ROW = 5
_INNER = ("api", "dataset.xhtml", "dataverse", "dataverse.xhtml", "oai", "citation", "file.xhtml")
_COLLECTION = re.compile(r"/dataverse/([^/?#]+)")


class _DataverseState(msgspec.Struct, kw_only=True):
    """How far the list has been read, and what came of it."""

    root: str
    collection: str | None = None
    start: int = 0
    within: int = 0
    """Of the page that begins there, how many are done."""
    total: int = 0
    datasets: int = 0
    bare: int = 0
    """Datasets whose files could not be asked for."""
    problems: int = 0
    failures: int = 0
    exports: bool = True
    turns: CycleDetector = msgspec.field(default_factory=CycleDetector)


class DataverseHarvester:
    """Reads the datasets of an installation, or of the collection that the address names.

    Where robots.txt forbids the API, the OAI-PMH interface is left as a link to try instead.
    """

    kinds = frozenset({"dataverse"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        collection = _COLLECTION.search(harvest.url)
        fresh = _DataverseState(
            root=roots(harvest.url, *_INNER)[0], collection=collection[1] if collection else None
        )
        state = msgspec.msgpack.decode(harvest.state, type=_DataverseState) if harvest.state else fresh
        listing = _Listing(state, client)
        async for step in listing.steps():
            yield step


class _Listing:
    """The conversation with one installation; all that outlives a step is in the state."""

    def __init__(self, state: _DataverseState, client: PoliteClient) -> None:
        self._state = state
        self._client = client

    async def steps(self) -> AsyncIterator[HarvestStep]:
        state = self._state
        if not state.start and not state.within:
            yield self._step([Quads(catalogue_quads(state.root, "", None, state.root))])
        while True:
            capture = await self._client.ask(self._search())
            if end := failure(capture, "the search of"):
                yield self._step(self._instead(end), end)
                return
            items = self._items(capture)
            if isinstance(items, HarvestEnd):
                yield self._step([], items)
                return
            while state.within < len(items):
                findings, end = await self._part(items[state.within : state.within + _EXPORTS_A_STEP])
                yield self._step(findings, end)
                if end:
                    return
            if end := self._turn(items):
                yield self._step([], end)
                return

    def _search(self) -> Request:
        query: dict[str, Any] = {"q": "*", "type": "dataset", "sort": "date", "order": "asc"}
        query |= {"start": self._state.start, "per_page": PAGE_RECORDS}
        if self._state.collection:
            query["subtree"] = self._state.collection
        return Request(url=f"{self._state.root}api/search?{urlencode(query)}", accept="application/json")

    def _instead(self, end: HarvestEnd) -> list[Finding]:
        refused = end.outcome is Outcome.REFUSED and not self._state.datasets
        return [Links([f"{self._state.root}oai"], self._state.root, "oai-pmh")] if refused else []

    def _items(self, capture: Capture) -> list[Any] | HarvestEnd:
        try:
            found = table(table(json_of(self._client, capture)).get("data"))
        except msgspec.DecodeError as error:
            return self._no_list(capture, str(error))
        items = found.get("items")
        if not isinstance(items, list):
            return self._no_list(capture, "no `data.items`")
        self._state.total = count(found.get("total_count")) or 0
        return items

    def _no_list(self, capture: Capture, why: str) -> HarvestEnd:
        reason = f"{self._told()}; {capture.url} is no list of datasets: {why}"
        return HarvestEnd(outcome=Outcome.FAILED, reason=reason, retry=bool(self._state.start))

    async def _part(self, items: list[Any]) -> tuple[list[Finding], HarvestEnd | None]:
        """A few datasets with their files. Where the installation asks for a pause, those before it count."""
        datasets: list[Dataset] = []
        problems: list[Finding] = []
        end: HarvestEnd | None = None
        for item in items:
            try:
                short = listed(item, self._state.root)
                found = await self._whole(short)
            except ValueError as error:
                name = text(table(item).get("global_id")) or text(table(item).get("name")) or "?"
                problems.append(Problem(f"dataset {name} of {self._state.root}: {error}"))
                found = None
            if isinstance(found, HarvestEnd):
                end = found
                break
            self._state.within += 1
            datasets += [found] if found else []
        self._state.datasets += len(datasets)
        self._state.problems += len(problems)
        return [*described(datasets, self._state.root), *problems], end

    async def _whole(self, short: Dataset) -> Dataset | HarvestEnd:
        """The dataset as its export describes it; as the search does, where there is no export of it."""
        if not self._state.exports:
            self._state.bare += 1
            return short
        query = urlencode({"exporter": "dataverse_json", "persistentId": short.record})
        address = f"{self._state.root}api/datasets/export?{query}"
        capture = await self._client.ask(Request(url=address, accept="application/json"))
        end = failure(capture, "the export at")
        if end is None:
            self._state.failures = 0
            try:
                return exported(json_of(self._client, capture), short.record, self._state.root)
            except (msgspec.DecodeError, ValueError):
                end = HarvestEnd(outcome=Outcome.FAILED, reason="no export")
        self._state.failures += end.retry
        if end.retry and (end.retry_after_ms or self._state.failures >= _FAILURES_IN_A_ROW):
            self._state.failures = 0
            return end
        self._state.exports = end.outcome is not Outcome.REFUSED
        self._state.bare += 1
        return short

    def _turn(self, items: list[Any]) -> HarvestEnd | None:
        """Goes on to the next page; an end where there is none."""
        state = self._state
        if state.turns.again(text(table(item).get("global_id")) or "?" for item in items):
            return self._ended("the search gives the same page again")
        state.start, state.within = state.start + len(items), 0
        return self._ended(None) if not items or state.start >= state.total else None

    def _ended(self, why: str | None) -> HarvestEnd:
        state, doubts = self._state, [why] if why else []
        if state.problems:
            doubts.append(f"{state.problems} problems in reading them")
        if state.start < state.total:
            doubts.append(f"the search counts {state.total}")
        outcome = Outcome.OK if state.datasets or not doubts else Outcome.FAILED
        return HarvestEnd(outcome=outcome, reason="; ".join([self._told(), *doubts]), complete=not doubts)

    def _told(self) -> str:
        state, told = self._state, f"{self._state.datasets} datasets"
        told += f", {state.bare} of them without their files" if state.bare else ""
        return told + ("" if state.exports else " (robots.txt forbids their export)")

    def _step(self, findings: list[Finding], end: HarvestEnd | None = None) -> HarvestStep:
        return HarvestStep(state=msgspec.msgpack.encode(self._state), findings=findings, end=end)
