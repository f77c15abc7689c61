"""The gate for a verb without a frontier: nobody else asks, so queues need no lease, only turns."""

import time
from pathlib import Path

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.crawl.plan.fetch_options import address_of
from tamias.crawl.request.gate import Gate, leads_out
from tamias.crawl.request.robots import TOO_MANY, few_hops, forbidden_by, robots_request, rules_in
from tamias.crawl.store.held_lease import HeldLease
from tamias.model.capture import Capture, Outcome, Request, Stop
from tamias.model.kind import ROBOTS
from tamias.model.lease import Lease
from tamias.model.url import authority, host
from tamias.permit.addresses import forbidden, is_address
from tamias.permit.availability import MOST_REDIRECTS, robots_address
from tamias.permit.delay import host_delay_ms
from tamias.permit.robots import Rules
from tamias.protocols import Follow
from tamias.settings import Settings

_KEEPS_METHOD = (307, 308)


class LoneClient:
    """A client that makes one polite request at a time and follows redirects across queues."""

    def __init__(self, settings: Settings, spool: Path, admission: Admission) -> None:
        self._settings = settings
        self._admission = admission
        self._gate = Gate(settings, spool, admission, lambda: time.time_ns() // 1_000_000)
        self._held: dict[str, HeldLease] = {}
        self._rules: dict[str, Rules] = {}
        self._address_of = address_of(settings)

    async def ask(self, request: Request) -> Capture:
        """Asks robots.txt, then the address. Never raises for what a server does."""
        refusal = await self.refusal(request.url)
        if refusal is not None:
            return self._gate.unasked(request.url, Outcome.REFUSED, refusal)
        return await self._request(request, self._follow, self._settings.fetch.max_redirects)

    async def refusal(self, url: str) -> str | None:
        """Return why the address may not be requested, with the line of robots.txt if that is why."""
        held = self._queue(url)
        if (refused := self._gate.refusal(url, held)) is not None:
            return refused.reason
        if not self._settings.permit.robots or not url.startswith(("http://", "https://")):
            return None
        place = authority(url)
        if place not in self._rules:
            request = robots_request(robots_address(url))
            found = rules_in(await self._request(request, few_hops(), MOST_REDIRECTS, ROBOTS))
            self._rules[place] = found if found.leads_to is None else TOO_MANY
        rules = self._rules[place]
        held.delay_ms = max(held.delay_ms, host_delay_ms(0, rules.crawl_delay, obey_robots=True))
        return forbidden_by(rules, url)

    def address_refusal(self, url: str) -> str | None:
        """Return why its address would not be connected to, without a request: for a dry run.

        Requests are guarded when they connect, whatever the name's address is by then.
        """
        name = host(url).strip("[]")
        address = self._address_of(url).strip("[]")
        if not is_address(address):
            return f"name does not resolve: {name}"
        return None if self._settings.permit.allow_private else forbidden(address)

    async def close(self) -> None:
        """Gives up what is under way."""
        await self._gate.close()

    async def _request(
        self, request: Request, follow: Follow, queues: int, kind: str | None = None
    ) -> Capture:
        """Make a request that may be redirected through at most `queues` further queues."""
        capture = await self._gate.request(request, self._queue(request.url), follow, kind)
        target = leads_out(capture)
        if target is None or queues <= 0 or await follow(target) is not None:
            return capture
        body = request.body if capture.status in _KEEPS_METHOD else None
        return await self._request(
            msgspec.structs.replace(request, url=target, body=body), follow, queues - 1, kind
        )

    async def _follow(self, target: str) -> Stop | None:
        refusal = await self.refusal(target)
        return None if refusal is None else Stop(Outcome.REFUSED, f"redirects to {target}: {refusal}")

    def _queue(self, url: str) -> HeldLease:
        name = self._admission.queue(url)
        if name not in self._held:
            delay = host_delay_ms(self._settings.fetch.delay, None, obey_robots=False)
            lease = Lease(host=name, qid=0, bucket=0, token=0, ends_at=0, delay_ms=delay, tasks=())
            self._held[name] = HeldLease(lease, time.monotonic(), float("inf"), patience=float("inf"))
        return self._held[name]
