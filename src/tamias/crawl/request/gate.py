"""The gate: the only way to ask for an address that the Web told us.

Every request passes it, and every hop of a redirect, whatever it is for: a page, robots.txt, a sitemap, a
JSON-LD context, a well-known place, a harvester's question. It asks block lists and `exclude`, stays in the
queue that is held, waits for the queue's turn, and the fetchers behind it ask the address guard.
"""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.crawl.plan.fetch_options import address_of, http_options
from tamias.crawl.request.reach import Reach
from tamias.crawl.store.held_lease import HeldLease
from tamias.model.capture import Capture, Outcome, Request, Stop
from tamias.model.cut import FILTER
from tamias.model.kind import ROBOTS
from tamias.model.lease import ABANDONED
from tamias.permit.addresses import forbidden
from tamias.permit.delay import retry_after_ms
from tamias.plugins import load_all
from tamias.protocols import Fetcher, Follow, RefuseResponse
from tamias.settings import Settings


class Gate:
    """Sends requests in queues that are held. Never raises for what a server does; `NotNow` if early."""

    def __init__(self, settings: Settings, spool: Path, admission: Admission, now: Callable[[], int]) -> None:
        self._fetchers = _fetchers(settings, spool, now)
        self._admission = admission
        self._now = now
        self._refusals: list[RefuseResponse] = list(load_all("responses").values())
        self._address_of = address_of(settings) if settings.frontier.per_address else None
        self.reach = Reach(settings, now)
        """Who can be reached."""

    async def request(
        self,
        request: Request,
        held: HeldLease,
        follow: Follow,
        kind: str | None = None,
        unwanted: Callable[[str], Stop | None] = lambda _target: None,
    ) -> Capture:
        """Make one attempt; `unwanted` and `follow` decide which redirects are followed."""
        refused = self.refusal(request.url, held, kind)
        if refused is not None:
            return refused

        async def hop(target: str) -> Stop | None:
            held.note_request()
            stop = self._stop(target, kind) or unwanted(target) or self._outside(target, held)
            stop = stop or await follow(target)
            if stop is None and held.must_wait:
                stop = Stop(Outcome.OK, f"redirects to {target}, which is visited in its turn")
            if stop is None:
                await held.turn()
            return stop

        await held.turn()
        try:
            fetcher = self._fetchers[_scheme(request.url)]
            capture = await self.reach.ask(request.url, held, lambda: fetcher.fetch(request, hop))
            return capture if kind == ROBOTS else self._judge(capture)
        except asyncio.CancelledError:
            # The server may still be at work on it: the delay begins when it has ended.
            held.blocked_until = max(held.blocked_until or 0, self._now() + ABANDONED * held.delay_ms)
            raise
        finally:
            held.note_request()

    def _judge(self, capture: Capture) -> Capture:
        """Refuse a response that is no document, such as a challenge page; its body is kept as an error's."""
        reason = next(filter(None, (refuse(capture) for refuse in self._refusals)), None)
        if reason is None:
            return capture
        body = capture.body or capture.error_body
        if body is not None and body.path is not None:  # too large to be a page that asks for something
            Path(body.path).unlink(missing_ok=True)
            body = None
        return msgspec.structs.replace(
            capture, outcome=Outcome.REFUSED, reason=reason, body=None, error_body=body, retry=False
        )

    def refusal(self, url: str, held: HeldLease, kind: str | None = None) -> Capture | None:
        """The attempt on an address that may not be asked for in this queue, if so."""
        reason = self._admission.blocked(url, kind)
        if reason is not None:
            return self.unasked(url, Outcome.REFUSED, reason, FILTER)
        if _scheme(url) not in self._fetchers:
            return self.unasked(url, Outcome.SKIPPED, f"no fetcher for {_scheme(url)} addresses")
        if not self._is_held(url, held):
            queue = self._admission.queue(url)
            reason = f"{url} is of the queue {queue}, not of {held.lease.host}"
            return self.unasked(url, Outcome.SKIPPED, reason)
        return None

    def unasked(self, url: str, outcome: Outcome, reason: str, cut: int = 0) -> Capture:
        """An attempt that ended before any request."""
        now = self._now()
        return Capture(url=url, started_at=now, ended_at=now, outcome=outcome, reason=reason, cut=cut)

    async def close(self) -> None:
        """Gives up what is under way."""
        for fetcher in set(self._fetchers.values()):
            await fetcher.close()

    def _stop(self, target: str, kind: str | None) -> Stop | None:
        reason = self._admission.blocked(target, kind)
        if reason is None:
            return None
        return Stop(Outcome.SKIPPED, f"redirects to {target}, which is not wanted: {reason}", FILTER)

    def _outside(self, target: str, held: HeldLease) -> Stop | None:
        """A redirect that leads out of the queue is for another queue."""
        if self._is_held(target, held):
            return None
        return Stop(Outcome.OK, f"redirects to {target}, which is visited in its own queue")

    def _is_held(self, url: str, held: HeldLease) -> bool:
        """Clients of the frontier may have named the queue: then its own URLs say what it holds.

        Where addresses have a cap, the lease is for the address of its tasks.
        """
        where = self._address_of
        if where is not None and held.tasks and where(url) != where(held.tasks[0].url):
            return False
        queue = self._admission.queue(url)
        return queue == held.lease.host or any(
            queue == self._admission.queue(task.url) for task in held.tasks
        )


def leads_out(capture: Capture) -> str | None:
    """Return the target of a redirect that was not followed because it belongs to another queue."""
    if capture.outcome is not Outcome.OK or not capture.hops:
        return None
    return capture.hops[-1].location


def _fetchers(settings: Settings, spool: Path, now: Callable[[], int]) -> dict[str, Fetcher]:
    """A fetcher for each scheme that an installed part can fetch."""
    options = http_options(settings, spool)
    guard: Callable[[str], str | None] = (
        (lambda _address: None) if settings.permit.allow_private else forbidden
    )
    made = [
        part(options, forbidden=guard, now=now, retry_after=retry_after_ms)
        for part in load_all("fetchers").values()
    ]
    return {scheme: fetcher for fetcher in made for scheme in fetcher.schemes}


@lru_cache(maxsize=4096)
def _scheme(url: str) -> str:
    return url.partition(":")[0].lower()
