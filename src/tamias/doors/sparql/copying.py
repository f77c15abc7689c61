"""A copy from begin to end: survey, pages, what to do about troubles, and what can be said at the end."""

from collections.abc import AsyncIterator, Sequence

from tamias.doors.sparql import queries
from tamias.doors.sparql.conversation import Conversation, Trouble
from tamias.doors.sparql.limits import Limits
from tamias.doors.sparql.paging import Pager
from tamias.doors.sparql.parts import otherwise
from tamias.doors.sparql.scope import Scope
from tamias.doors.sparql.standing import Standing
from tamias.doors.sparql.state import State, packed
from tamias.doors.sparql.survey import description, survey
from tamias.model.finding import Finding, Problem, Quads
from tamias.model.outcome import Outcome
from tamias.model.walk import Step, WalkEnd

MOST_TROUBLES = 6
"""Failures of one request in a row before it is given up."""
MOST_REFUSALS = 2
_SHRINK = 4


class Copy:
    """Copies one endpoint, from where the state says."""

    def __init__(self, conversation: Conversation, state: State, limits: Limits) -> None:
        self._conversation = conversation
        self._state = state
        self._limits = limits
        self._standing = Standing(state, limits)
        self._pager = Pager(conversation, self._standing, limits)
        self._troubles = 0

    async def steps(self) -> AsyncIterator[Step]:
        """All steps of the walk; the last one has its end."""
        try:
            async for findings in self._prepared():
                yield self._step(findings)
            async for findings in self._pages():
                yield self._step(findings)
            yield self._step((), await self._verdict())
        except Trouble as trouble:
            yield self._step((), self._stopped(trouble))

    def _step(self, findings: Sequence[Finding], end: WalkEnd | None = None) -> Step:
        return Step(state=packed(self._state), findings=findings, end=end)

    async def _prepared(self) -> AsyncIterator[Sequence[Finding]]:
        if self._state.stage == "new":
            quads = await description(self._conversation, self._state)
            self._state.stage = "described"
            yield [Quads(quads)] if quads else []
        if self._state.stage == "described":
            await survey(self._conversation, self._state)
            self._state.stage = "surveyed"
            yield []

    async def _pages(self) -> AsyncIterator[Sequence[Finding]]:
        state = self._state
        while state.stack or state.later:
            if not state.stack:
                state.stack.append(state.later.pop())
            try:
                findings = await self._pager.advance()
            except Trouble as trouble:
                findings = await self._set_back(trouble)
            else:
                self._troubles = 0
            if findings:
                yield findings
            if self._limit_reached():
                return

    def _limit_reached(self) -> bool:
        state, limits = self._state, self._limits
        for name, value in (("most_graphs", state.graphs), ("most_statements", state.statements)):
            if value > getattr(limits, name):
                state.cut_short = f"{name} ({getattr(limits, name):,})"
        return bool(state.cut_short)

    async def _set_back(self, trouble: Trouble) -> list[Finding]:
        """Asks again, for less, or otherwise. Raises the trouble when nothing can help now."""
        self._troubles += 1
        if trouble.final:
            raise trouble
        if self._troubles >= (MOST_REFUSALS if trouble.lasting else MOST_TROUBLES):
            await self._alive(trouble)
            self._troubles = 0
            return self._another_way(trouble)
        if self._troubles > 1:
            floor = min(self._state.page, self._limits.least_page)
            self._state.page = max(floor, self._state.page // _SHRINK)
        return []

    async def _alive(self, trouble: Trouble) -> None:
        """Raises the trouble if the endpoint does not answer the smallest question either."""
        try:
            await self._conversation.patient(queries.ANY)
        except Trouble:
            raise trouble from None

    def _another_way(self, trouble: Trouble) -> list[Finding]:
        state, standing = self._state, self._standing
        if standing.descend():
            return []
        part = standing.part
        if part.way == "keys" and state.counting:
            state.counting = False
            return []
        other = otherwise(part, stable=state.labels != "unstable")
        if other is not None:
            standing.change(other)
            return []
        state.abandoned += 1
        standing.leave()
        if state.abandoned > self._limits.most_abandoned:
            raise trouble
        return [Problem(f"a part of the endpoint cannot be had: {trouble.reason}")]

    def _stopped(self, trouble: Trouble) -> WalkEnd:
        capture = trouble.capture
        outcome = Outcome.FAILED if capture is None or capture.outcome is Outcome.OK else capture.outcome
        status = None if capture is None else capture.status
        can_help = status is None or status >= 500 or (capture is not None and capture.retry)
        return WalkEnd(
            outcome=outcome,
            reason=f"{trouble.reason}; {self._so_far()}",
            retry=outcome is Outcome.FAILED and (can_help or self._state.pages > 0),
            retry_after_ms=None if capture is None else capture.retry_after_ms,
        )

    def _so_far(self) -> str:
        return f"{self._state.statements:,} statements copied in {self._state.requests:,} requests"

    async def _verdict(self) -> WalkEnd:
        """What can be said of completeness, and how it is known."""
        doubts = self._doubts()
        if not self._state.cut_short:
            doubts += await self._miscounts()
        state = self._state
        graphs = f"{state.graphs:,} named graph{'s' * (state.graphs != 1)}"
        what = f"{state.statements:,} statements of the default graph and {graphs}"
        how = "whole" if not doubts else "as far as it could be"
        union = {
            "said": "; the default graph is the union of the others, as the service description says",
            "seen": "; the default graph is the union of the others",
            "sampled": "; the default graph is taken for the union of the others, by a sample",
        }.get(state.union, "")
        said = "; ".join(doubts) if doubts else "the endpoint counts the same"
        return WalkEnd(
            outcome=Outcome.OK,
            reason=f"copied {how}: {what} in {state.requests:,} requests; {said}{union}{self._remarks()}",
            complete=not doubts,
        )

    def _doubts(self) -> list[str]:
        state = self._state
        said = [
            (bool(state.cut_short), f"stopped at {state.cut_short}"),
            (state.abandoned > 0, f"{state.abandoned} parts could not be had"),
            (self._uncounted, "the endpoint does not count, so that it is all cannot be shown"),
            (state.union == "sampled", "what only the default graph has may be missing"),
            (state.shuffled, "pages by number did not join: the order changes between requests"),
        ]
        return [doubt for holds, doubt in said if holds]

    @property
    def _uncounted(self) -> bool:
        """Whether there is no count to compare with: the total may be known though keys cannot be counted."""
        return not self._state.counting and self._state.default_count is None

    def _remarks(self) -> str:
        state = self._state
        remarks = ""
        if state.unreadable:
            remarks += f"; {state.unreadable:,} of them are no RDF and were left out"
        if state.relabelled:
            remarks += "; blank nodes have other labels in every answer and were kept apart by page"
        return remarks

    async def _miscounts(self) -> list[str]:
        """Where the endpoint counts otherwise than we do, now that all is copied."""
        state = self._state
        if self._uncounted:
            return []
        wrong = []
        default = state.statements - state.named
        if state.default_count is not None and state.default_count != default:
            wrong.append(
                f"the endpoint counts {state.default_count:,} in the default graph, where {default:,} came"
            )
        if state.graphs or state.named:
            try:
                named = await self._conversation.number(queries.count(Scope(named=True)))
            except Trouble:
                return [
                    *wrong,
                    "the endpoint does not count its named graphs, so that it is all cannot be shown",
                ]
            if named != state.named:
                wrong.append(f"the endpoint counts {named:,} in named graphs, where {state.named:,} came")
        return wrong
