"""A copy from begin to end: survey, pages, what to do about failures, and what can be said at the end.

A graph comes in windows of LIMIT and OFFSET. Each window begins with the end of the one before it: where
they do not join, the order of the server changes, and the graph comes by ranges of a hash instead.
"""

from collections.abc import AsyncIterator, Sequence
from zlib import crc32

import msgspec
from msgspec.structs import replace
from pyoxigraph import Quad

from tamias.features.sparql_copy import queries
from tamias.features.sparql_copy.client import EndpointClient, EndpointLimits, QueryFailed, answered
from tamias.features.sparql_copy.source import (
    GraphListing,
    ListedGraph,
    StatementPage,
    StatementSource,
    digest,
    has_blank_inside,
    list_graphs,
    prove,
    relabelled,
    uncut,
)
from tamias.features.sparql_copy.state import CopyPart, CopyState, Way, unpacked
from tamias.features.sparql_copy.survey import (
    MOST_COMPARED,
    SeenStatements,
    description,
    failed,
    own_or_all,
    survey,
    verdict,
)
from tamias.model.cut import TRAP
from tamias.model.finding import Finding, Harvest, HarvestEnd, HarvestStep, Links, Problem, Quads
from tamias.protocols import PoliteClient

MOST_FAILURES = 6
"""Of one request in a row before it is given up."""
MOST_REFUSALS = 2
WORTH_A_VISIT = 1_000
"""Statements of a page; one with less earns less."""
EARNED_BY_COUNTED = 0.9
"""Visits earned by a page of what the endpoint has counted: it comes to ten times the budget of its host."""
EARNED_BY_OTHERS = 0.2
OVERLAP = 20
"""Statements that two windows have in common."""
_SHRINK = 4
_FULL = 0.7
_PATIENCE = 5
"""Good pages before they are made larger."""
_OTHERWISE: dict[Way, Way] = {"pages": "hashes", "hashes": "ordered", "ordered": "unordered"}


class Copy:
    """Copies one endpoint, from where the state says."""

    def __init__(self, client: EndpointClient, state: CopyState, limits: EndpointLimits) -> None:
        self._client = client
        self._state = state
        self._limits = limits
        self._source = StatementSource(client, state)
        self._listing: GraphListing | None = None
        self._waiting: list[ListedGraph] = []
        """The graphs of the listing that are still to be copied, the next one last."""
        self._batch = limits.most_batch
        self._before: set[Quad] | None = None
        """The window before the next one."""
        self._seen = SeenStatements()
        """Statements of named graphs, where the default graph is compared with them."""
        self._named = 0
        """How many statements the named graphs have, each counted once."""
        self._seen_all = state.stage != "surveyed"
        """False after a break: what came before it was not seen here."""
        self._begun = [SeenStatements()]
        """What came of the graph being copied, each time that it was begun."""
        self._failures = 0
        self._good = 0
        self._earned = 0.0
        """Visits that pages have earned since the last step."""

    async def steps(self) -> AsyncIterator[HarvestStep]:
        """Yield the steps of the harvest; the last one has its end."""
        try:
            async for findings in self._prepare():
                yield self._step(findings)
            async for findings in self._statements():
                yield self._step(findings)
            yield self._step((), await verdict(self._client, self._state))
        except QueryFailed as failure:
            end = await self._end_of(failure)
            is_page = self._state.is_document and self._state.stage == "described" and not end.retry
            yield self._step([Links([self._client.url], self._client.url)] if is_page else (), end)

    async def _end_of(self, failure: QueryFailed) -> HarvestEnd:
        """Return the end: if the host has no visits left, what was copied counts."""
        if failure.capture is None or not failure.capture.cut & TRAP or not self._state.pages:
            return failed(failure, self._state)
        self._state.cut_short = failure.reason
        return await verdict(self._client, self._state)

    def _step(self, findings: Sequence[Finding], end: HarvestEnd | None = None) -> HarvestStep:
        earned, self._earned = self._earned, 0.0
        return HarvestStep(
            state=msgspec.msgpack.encode(self._state), findings=findings, end=end, earned=earned
        )

    async def _prepare(self) -> AsyncIterator[Sequence[Finding]]:
        if self._state.stage == "new":
            quads = await description(self._client, self._state)
            self._state.stage = "described"
            yield [Quads(quads)] if quads else []
        while self._state.stage != "surveyed":
            listing = await survey(self._client, self._state)
            if listing is not None:
                self._take(listing)
            yield []

    async def _statements(self) -> AsyncIterator[Sequence[Finding]]:
        state = self._state
        while state.part or state.default or state.listing:
            try:
                findings = await self._advance()
            except QueryFailed as failure:
                findings = await self._recover(failure)
            else:
                self._failures = 0
            if findings:
                yield findings
            for name, value in (("most_graphs", state.graphs), ("most_statements", state.statements)):
                if value > (most := getattr(self._limits, name)):
                    state.cut_short = f"{name} ({most:,})"
            if state.cut_short:
                return

    async def _advance(self) -> list[Finding]:
        """Do one thing; return the findings of a page, or nothing yet. Raises `QueryFailed`."""
        state = self._state
        if state.part is not None:
            if state.part.compared and not self._seen_all:
                await self._see_again()
            return await (self._range(state.part) if state.part.way == "hashes" else self._window(state.part))
        if state.default is not None and not (state.default.compared and state.listing):
            await self._open_default(state.default)
        elif self._listing is None:
            assert state.listing is not None
            self._take(await list_graphs(self._client, state, state.listing))
        elif self._listing.unproven >= max(1, state.most):
            self._listing = await prove(self._client, state, self._listing)
        elif not self._waiting:
            return await self._end_listing(self._listing)
        elif len(batch := self._next_batch()) > 1:
            return await self._graphs(batch)
        else:
            self._open(self._waiting.pop())
        return []

    async def _open_default(self, part: CopyPart) -> None:
        state = self._state
        if part.compared:
            if not self._seen_all:
                await self._see_again()
            self._named = len(self._seen)
            own = (part.expected or 0) - self._named
            state.part = await own_or_all(self._client, state, part, own)
        else:
            state.part = part
        state.default = None
        state.promised += (state.part and state.part.expected) or 0

    async def _see_again(self) -> None:
        """Request the named graphs again after a break, to compare the default graph with them."""
        again = replace(
            self._state, default=None, part=None, listing=queries.Span(), done="", statements=0, graphs=0
        )
        async for findings in Copy(self._client, again, self._limits)._statements():
            for finding in findings:
                self._seen.add(finding.quads if isinstance(finding, Quads) else ())
        self._seen_all = True
        self._named = len(self._seen)

    def _take(self, listing: GraphListing) -> None:
        self._listing = listing
        self._waiting = [graph for graph in reversed(listing.graphs) if graph.name > self._state.done]

    async def _end_listing(self, listing: GraphListing) -> list[Finding]:
        state = self._state
        found = await self._unnamed() if listing.unnamed else []
        self._listing = None
        state.done = ""
        state.listing = None if listing.span.is_last else listing.span.next()
        return found

    async def _unnamed(self) -> list[Finding]:
        """The graphs whose names are blank nodes, as one page."""
        limit = self._state.page
        page = StatementPage.of_rows(await self._client.select(queries.select_blank_graphs(limit)))
        if page.rows >= limit or self._state.triples:
            self._state.relabelled = True
        return self._keep(page, page.quads)

    def _open(self, graph: ListedGraph) -> None:
        self._state.graphs += 1
        self._state.promised += graph.statements or 0
        self._state.counted = (self._state.counted + digest([graph])) % (1 << 56)
        self._state.part = CopyPart(graph=graph.name, expected=graph.statements)

    def _next_batch(self) -> list[ListedGraph]:
        """Return as many graphs as fit into one page."""
        batch: list[ListedGraph] = []
        room, letters = self._state.page, self._client.most_query
        for graph in self._waiting[: -self._batch - 1 : -1]:
            if graph.statements is None:
                break
            room -= graph.statements
            letters -= 3 * len(graph.name) + 20
            if room <= 0 or letters < 0:
                break
            batch.append(graph)
        return batch

    async def _graphs(self, batch: list[ListedGraph]) -> list[Finding]:
        page = await self._source.graphs([graph.name for graph in batch], self._state.page)
        # A cap cut it, or the data changed: smaller batches, and at last each graph alone, sort that out.
        if page.rows != sum(graph.statements or 0 for graph in batch):
            self._batch = len(batch) // 2
            return []
        self._batch = min(self._limits.most_batch, 2 * self._batch)
        self._state.most = max(self._state.most, page.rows)
        for graph in batch:
            self._waiting.pop()
            self._open(graph)
        self._state.part = None
        self._state.done = batch[-1].name
        return self._keep(page, page.quads)

    async def _window(self, part: CopyPart) -> list[Finding]:
        state = self._state
        if self._torn(part):
            if part.content == "blank":
                return await self._blanks(part)
            if part.expected is None or part.expected > state.page:
                state.part = replace(part, content="blank")
                return []
        is_large = part.expected is None or part.expected > state.page
        if part.way == "pages" and is_large and await self._order_changes(part):
            return self._begin(part, "hashes")
        if part.offset and self._before is None:
            self._before = await self._window_before(part)
        overlap = min(OVERLAP, part.offset, max(1, state.page // 10))
        page = await self._source.window(part, state.page, part.offset - overlap)
        if part.offset == 0 and part.expected is not None and page.rows < part.expected <= state.page:
            return await self._cut_off(part, page)
        return self._joined(part, page, overlap)

    async def _blanks(self, part: CopyPart) -> list[Finding]:
        """Copy the statements with blank nodes whose labels change: in one response, if they fit."""
        state, end = self._state, part.offset
        page = await self._source.window(part, state.page, part.offset)
        end += page.rows
        whole = await uncut(state, page.rows, state.page, lambda: self._source.window(part, 1, end))
        after = replace(part, copied=part.copied + page.rows, offset=end)
        state.part = after
        found = self._keep(page, page.quads)
        if whole:
            self._finish(after)
        elif not state.relabelled:
            state.relabelled = True
            found.append(Problem("blank nodes relabelled: those of one graph do not fit into one response"))
        return found

    async def _cut_off(self, part: CopyPart, page: StatementPage) -> list[Finding]:
        """A graph that should fit into one response did not come whole."""
        if page.rows and len(await self._source.matching(self._source.pattern(part), 1, page.rows)):
            self._state.learn_cap(page.rows)
            return []
        return self._joined(part, page, 0)

    def _joined(self, part: CopyPart, page: StatementPage, overlap: int) -> list[Finding]:
        if not overlap:
            return self._added(part, page, page.quads, 0) if page.rows else self._nothing_new(part)
        before = self._before or set()
        new = [quad for quad in page.quads if quad not in before]
        if abs(len(page.quads) - len(new) - overlap) > page.unreadable:
            if part.way == "pages":
                return self._begin(part, "hashes")
            self._state.shuffled = True
        is_over = page.rows <= overlap or not new
        return self._nothing_new(part) if is_over else self._added(part, page, new, overlap)

    def _nothing_new(self, part: CopyPart) -> list[Finding]:
        if part.expected is not None and part.content == "all" and part.span.is_all:
            raise QueryFailed("gave nothing new, though more was counted")
        self._finish(part)
        return []

    def _added(self, part: CopyPart, page: StatementPage, new: list[Quad], overlap: int) -> list[Finding]:
        state, rows = self._state, page.rows - overlap
        after = replace(
            part,
            copied=part.copied + rows,
            offset=part.offset + rows,
            last=part.offset - overlap,
            digest=_digest(page.quads),
        )
        whole = part.expected is not None and after.copied >= part.expected
        if whole:
            state.most = max(state.most, page.rows)
        if part.expected is not None and not whole and part.content == "all" and page.rows < state.page:
            state.learn_cap(page.rows)
        self._before = None if whole else set(page.quads)
        state.part = after
        found = self._keep(page, new, compared=part.compared)
        if whole:
            self._finish(after)
        return found

    async def _window_before(self, part: CopyPart) -> set[Quad]:
        """The last window that was kept before a break, if the server still gives the same."""
        page = await self._source.window(part, part.offset - part.last, part.last)
        if _digest(page.quads) != part.digest:
            self._state.shuffled = True
        return set(page.quads)

    async def _order_changes(self, part: CopyPart) -> bool:
        """Return whether two small windows that overlap do not join."""
        state = self._state
        if state.order == "unknown":
            limit = min(100, state.page)
            first = set((await self._source.window(part, limit)).quads)
            half = len(first) // 2
            second = set((await self._source.window(part, limit, half)).quads)
            if len(second) == len(first):  # else all of it fits, and nothing is shown
                state.order = "holds" if len(first & second) == len(first) - half else "changes"
        return state.order == "changes"

    async def _range(self, part: CopyPart) -> list[Finding]:
        """Copy all statements of a range of hashes, in one response."""
        state, span, limit = self._state, part.span, self._state.page
        if span.is_all and part.expected is not None and part.expected > limit:
            span = span.resized(_FULL * limit / part.expected)
            part = replace(part, span=span)
        page = await self._source.window(part, limit)
        if not await uncut(state, page.rows, limit, lambda: self._source.window(part, 1, page.rows)):
            narrower = replace(part, span=span.resized(0.5 if span.is_last or page.rows < limit else 0.6))
            state.part = replace(part, way="ordered", offset=0) if span.width == 1 else narrower
            self._before = None
            return []
        found = self._keep(page, page.quads, compared=part.compared)
        after = replace(part, copied=part.copied + page.rows)
        self._next_range(replace(after, span=span), min(4.0, _FULL * limit / max(1, page.rows)))
        return found

    def _next_range(self, part: CopyPart, factor: float) -> None:
        if part.span.is_last:
            self._finish(replace(part, span=queries.Span()))
        else:
            span = part.span.next().resized(factor)
            self._state.part = replace(part, way="hashes", span=span, offset=0, last=0, digest=0)

    def _begin(self, part: CopyPart, way: Way) -> list[Finding]:
        """The same graph from its beginning, in another way; what came of it is not kept twice."""
        self._state.relabelled |= self._torn(part)
        self._before = None
        self._begun.append(SeenStatements())
        if not part.compared:
            self._state.statements -= part.copied - part.base
        self._state.part = replace(
            part, way=way, copied=part.base, offset=0, last=0, digest=0, span=queries.Span()
        )
        return []

    def _finish(self, part: CopyPart) -> None:
        state = self._state
        self._before = None
        if not part.span.is_all:
            self._next_range(part, 1.0)
            return
        if part.content == "blank":
            state.part = replace(part, content="ground", way="pages", offset=0, base=part.copied)
            return
        state.part = None
        self._begun = [SeenStatements()]
        if part.expected is not None and part.copied != part.expected:
            state.miscounted += 1
            name = "the default graph" if part.graph is None else f"<{part.graph}>"
            state.example = state.example or (
                f"the endpoint counts {part.expected:,} in {name}, where {part.copied:,} came"
            )
        elif part.compared and part.copied != self._named + state.renamed:
            state.miscounted += 1
            state.example = (
                state.example or "the counts of the default graph and of named graphs do not agree"
            )
        if part.graph is not None:
            state.done = part.graph

    def _torn(self, part: CopyPart) -> bool:
        return self._state.labels == "change" and part.content != "ground"

    def _keep(self, page: StatementPage, quads: list[Quad], *, compared: bool = False) -> list[Finding]:
        state = self._state
        if compared:
            quads = self._seen.without(list(dict.fromkeys(quads)))
            self._seen.add(quads)  # some servers give a statement once for each graph
            state.renamed += len(quads)
        elif state.default is not None:  # waits to be compared
            self._seen.add(quads)
        state.pages += 1
        state.statements += len(quads) + page.unreadable
        state.unreadable += page.unreadable
        # What the endpoint did not count before may have no end.
        promised = min(state.promised, self._limits.most_statements)
        most_earned = EARNED_BY_COUNTED if state.statements <= promised else EARNED_BY_OTHERS
        self._earned += min(most_earned, len(quads) / WORTH_A_VISIT)
        self._good += 1
        if self._good % _PATIENCE == 0:
            most = min(self._limits.page, state.cap or self._limits.page)
            state.page = max(state.page, min(most, state.page * 3 // 2))
        if state.labels == "none" and any(has_blank_inside(quad) for quad in quads):
            state.labels, state.relabelled = "change", True
        quads = self._new_statements(quads)
        found: list[Finding] = [Quads(quads)] if quads else []
        if page.unreadable:
            found.append(Problem(f"{page.unreadable} rows of a response are not RDF: {page.example}"))
        return found

    def _new_statements(self, quads: list[Quad]) -> list[Quad]:
        """The statements of a page without those that came before their graph was begun again."""
        state = self._state
        if state.labels == "change":
            return relabelled(quads, f"p{state.pages}x")
        for earlier in self._begun[:-1]:
            quads = earlier.without(quads)
        if state.part and state.part.copied < MOST_COMPARED:
            self._begun[-1].add(quads)
        return quads

    async def _recover(self, failure: QueryFailed) -> list[Finding]:
        """Tries again, with less, or in another way. Raises the failure when nothing can help now."""
        self._failures += 1
        if failure.final:
            raise failure
        if self._failures >= (MOST_REFUSALS if failure.lasting else MOST_FAILURES):
            if await answered(self._client.select(queries.ANY, tries=3), None) is None:
                raise failure
            self._failures = 0
            return self._try_otherwise(failure)
        if self._failures > 1:
            floor = min(self._state.page, self._limits.least_page)
            self._state.page = max(floor, self._state.page // _SHRINK)
        return []

    def _try_otherwise(self, failure: QueryFailed) -> list[Finding]:
        state = self._state
        if state.part is None and self._batch > 1:
            self._batch = 1
            return []
        if state.part is not None and (way := _OTHERWISE.get(state.part.way)):
            return self._begin(state.part, way)
        state.abandoned += 1
        if state.part is None or state.abandoned > self._limits.most_abandoned:
            raise failure
        self._finish(replace(state.part, expected=None, span=queries.Span()))
        return [Problem(f"a part of the endpoint could not be fetched: {failure.reason}")]


def _digest(quads: Sequence[Quad]) -> int:
    """A number by which the same statements are known again, in any order."""
    return sum(crc32(str(quad).encode("utf-8", "surrogatepass")) for quad in quads) % (1 << 32)


class SparqlHarvester:
    """Copies a SPARQL endpoint whole: its description, its default graph and every named graph."""

    kinds = frozenset({"sparql"})

    def __init__(self, **limits: int) -> None:
        """Keyword arguments are the fields of `Limits`."""
        self._limits = replace(EndpointLimits(), **limits)

    def harvest(self, harvest: Harvest, http: PoliteClient) -> AsyncIterator[HarvestStep]:
        state = unpacked(harvest.state, self._limits.page)
        client = EndpointClient(http, harvest.url, state.dialect, self._limits.most_bytes)
        return Copy(client, state, self._limits).steps()
