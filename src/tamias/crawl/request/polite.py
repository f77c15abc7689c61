"""One polite request: robots.txt is asked, the turn is waited for, redirects stay within the queue."""

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.crawl.request.gate import Gate
from tamias.crawl.request.reach import given_up_words
from tamias.crawl.request.robots import AskedToWait, RobotsCache
from tamias.crawl.store.held_lease import HeldLease
from tamias.model.capture import Capture, Outcome, Request, Stop
from tamias.model.cut import PRIVATE, ROBOTS
from tamias.model.item import WATCH
from tamias.model.lease import Task


def asked_to_wait(url: str, wait: AskedToWait) -> Capture:
    """What that makes of an attempt on a URL: it was not asked for yet."""
    return msgspec.structs.replace(
        wait.capture, url=url, hops=(), reason=f"robots.txt: {wait.capture.reason}"
    )


class PoliteFetcher:
    """Asks in queues that are held. Never raises for what a server does; `NotNow` when the host must wait."""

    def __init__(self, gate: Gate, robots: RobotsCache, admission: Admission) -> None:
        self._gate = gate
        self.robots = robots
        self.reach = gate.reach
        self._admission = admission

    async def fetch(self, request: Request, task: Task, held: HeldLease) -> Capture:
        """One attempt, for the sake of a task whose host is held."""
        # A visit has asked for its own URL before anything else, and the gate asks again.
        if request.url != task.url and (refused := self.refused(request.url, held)) is not None:
            return refused
        if (state := self.reach.waiting(request.url, held)) is not None:
            early = self.unasked(request.url, Outcome.FAILED, given_up_words(state))
            return msgspec.structs.replace(early, retry=not state.given_up)
        try:
            refusal = await self.robots.refusal(request.url, held)
        except AskedToWait as wait:
            return asked_to_wait(request.url, wait)
        if refusal is not None:
            cut = self._forbidden_by(request.url)
            reason = refusal.removeprefix("robots.txt: ") if cut == PRIVATE else refusal
            return self.unasked(request.url, Outcome.REFUSED, reason, cut)
        capture = await self._gate.request(
            request,
            held,
            lambda target: self._follow(target, held),
            unwanted=lambda target: self._unwanted(target, task),
        )
        self.reach.note(request.url, held, capture)
        return capture

    async def close(self) -> None:
        """Gives up what is under way."""
        await self._gate.close()

    def refused(self, url: str, held: HeldLease, kind: str | None = None) -> Capture | None:
        """The attempt on a URL that the gate refuses, which ends before its host is asked for anything."""
        return self._gate.refusal(url, held, kind)

    def unasked(self, url: str, outcome: Outcome, reason: str, cut: int = 0) -> Capture:
        """An attempt that ended before any request."""
        return self._gate.unasked(url, outcome, reason, cut)

    def _forbidden_by(self, url: str) -> int:
        """What a refusal by robots.txt stands for: where we may not connect, we could not ask for it."""
        return PRIVATE if self.robots.out_of_reach(url) else ROBOTS

    def _unwanted(self, target: str, task: Task) -> Stop | None:
        refused_by = self._admission.refused_by(target, task.depth, scoped=task.crawl != WATCH)
        if refused_by is None:
            return None
        refusal, cut = refused_by
        return Stop(Outcome.SKIPPED, f"redirects to {target}, which is not wanted: {refusal}", cut)

    async def _follow(self, target: str, held: HeldLease) -> Stop | None:
        """A redirect within the queue is followed if robots.txt allows it."""
        try:
            refusal = await self.robots.refusal(target, held)
        except AskedToWait as wait:
            if wait.capture.retry_after_ms is None:
                return Stop(Outcome.OK, f"redirects to {target}, which is visited when it can be reached")
            held.blocked_until = wait.capture.ended_at + wait.capture.retry_after_ms
            return Stop(Outcome.FAILED, f"redirects to {target}; robots.txt there: {wait}")
        if refusal is None:
            return None
        reason = f"redirects to {target}, refused by {refusal}"
        return Stop(Outcome.REFUSED, reason, self._forbidden_by(target))
