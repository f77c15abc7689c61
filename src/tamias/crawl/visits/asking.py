"""One polite request: robots.txt is asked, the turn is waited for, redirects stay within the queue."""

from collections.abc import Callable

import msgspec

from tamias.crawl.admit import Admission
from tamias.crawl.visits.pace import LONGEST_TURN, Held
from tamias.crawl.visits.robots import AskedToWait, RobotsDesk
from tamias.model.capture import Capture, Request, Stop
from tamias.model.cut import FILTER, PRIVATE, ROBOTS
from tamias.model.lease import Task
from tamias.model.outcome import Outcome
from tamias.protocols import Fetcher


def asked_to_wait(url: str, wait: AskedToWait) -> Capture:
    """What that makes of an attempt on a URL: it was not asked for yet."""
    return msgspec.structs.replace(
        wait.capture, url=url, hops=(), reason=f"robots.txt: {wait.capture.reason}"
    )


class Asker:
    """Asks in queues that are held. Never raises for what a server does; `NotNow` when the host must wait."""

    def __init__(
        self,
        fetchers: dict[str, Fetcher],
        robots: RobotsDesk,
        admission: Admission,
        now: Callable[[], int],
    ) -> None:
        self._fetchers = fetchers
        self._robots = robots
        self._admission = admission
        self._now = now

    async def ask(self, request: Request, task: Task, held: Held) -> Capture:
        """One attempt, for the sake of a task whose host is held."""
        if (blocked := self.blocked(request.url)) is not None:
            return blocked
        scheme = request.url.partition(":")[0]
        fetcher = self._fetchers.get(scheme)
        if fetcher is None:
            return self.unasked(request.url, Outcome.SKIPPED, f"no fetcher for {scheme} addresses")
        try:
            refusal = await self._robots.refusal(request.url, held)
        except AskedToWait as wait:
            return asked_to_wait(request.url, wait)
        if refusal is not None:
            return self.unasked(request.url, Outcome.REFUSED, refusal, self._forbidden_by(request.url))
        await held.turn()
        try:
            return await fetcher.fetch(request, lambda target: self._follow(target, task, held))
        finally:
            held.asked()

    async def ask_here(self, request: Request, task: Task, held: Held) -> Capture:
        """The same, but refused unless the address is of the queue that is held."""
        queue = self._admission.queue(request.url)
        if queue != held.lease.host:
            reason = f"{request.url} is of the queue {queue}, not of {held.lease.host}"
            return self.unasked(request.url, Outcome.SKIPPED, reason)
        return await self.ask(request, task, held)

    def blocked(self, url: str) -> Capture | None:
        """The attempt on a URL that a block list names, which ends before its host is asked for anything."""
        reason = self._admission.blocked(url)
        return None if reason is None else self.unasked(url, Outcome.REFUSED, reason, FILTER)

    def unasked(self, url: str, outcome: Outcome, reason: str, cut: int = 0) -> Capture:
        """An attempt that ended before any request."""
        now = self._now()
        return Capture(url=url, started_at=now, ended_at=now, outcome=outcome, reason=reason, cut=cut)

    def _forbidden_by(self, url: str) -> int:
        """What a refusal by robots.txt stands for: where we may not connect, we could not ask for it."""
        return PRIVATE if self._robots.out_of_reach(url) else ROBOTS

    async def _follow(self, target: str, task: Task, held: Held) -> Stop | None:
        """Within its own queue a redirect is followed; one that leads out is a link for another queue."""
        held.asked()
        refusal = self._admission.refusal(target, task.depth)
        if refusal is not None:
            cut = self._admission.cut(target, task.depth)
            return Stop(Outcome.SKIPPED, f"redirects to {target}, which is not wanted: {refusal}", cut)
        if self._admission.queue(target) != held.lease.host:
            return Stop(Outcome.OK, f"redirects to {target}, which is visited in its own queue")
        try:
            refusal = await self._robots.refusal(target, held)
        except AskedToWait as wait:
            held.blocked_until = self._now() + (wait.capture.retry_after_ms or 0)
            return Stop(Outcome.FAILED, f"redirects to {target}; robots.txt there: {wait}")
        if refusal is not None:
            reason = f"redirects to {target}, refused by {refusal}"
            return Stop(Outcome.REFUSED, reason, self._forbidden_by(target))
        if held.wait > LONGEST_TURN:
            return Stop(Outcome.OK, f"redirects to {target}, which is visited in its turn")
        await held.turn()
        return None
