"""The registry of remote workers: it sends them the policy and opens a committer for it."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import msgspec

from tamias.crawl.commit.database_store import worker_number
from tamias.crawl.commit.deliver import near_sinks
from tamias.crawl.plan.policy import CrawlPolicy, read_run
from tamias.database.connect import Database, Session
from tamias.features.remote_workers.committer import RemoteCommitter
from tamias.features.remote_workers.wire import VERSION, Greeting, Renewed, WirePolicy
from tamias.frontier.lease_filter import LeaseFilter
from tamias.model.errors import UsageError
from tamias.model.lease import Lease
from tamias.settings import ArchiveSettings, ServeSettings, Settings

Ask = Callable[[Callable[[Session], WirePolicy]], Awaitable[WirePolicy]]
"""Runs a function with a session, in a thread that may wait for the database."""


class WorkerRegistry:
    """Has a committer for each crawl from its first hello on, and a new one when its policy changes."""

    def __init__(
        self, database: Database, data: Path, own: Settings, ask: Ask, lease_filter: LeaseFilter
    ) -> None:
        """`own`: settings of this machine; `lease_filter`: which section is served, with what interest."""
        self._lease_filter = lease_filter
        self._database = database
        self._data = data
        self._own = own
        self._ask = ask
        self._committers: dict[int, RemoteCommitter] = {}
        self._rows: dict[int, tuple[tuple[CrawlPolicy, int], WirePolicy]] = {}
        self._number: int | None = None
        self._changing = asyncio.Lock()

    async def hello(self, crawl: int, greeting: Greeting) -> WirePolicy:
        """Return the current policy of the crawl. Raises `UsageError` for another release."""
        if greeting.version != VERSION:
            raise UsageError(
                f"this service speaks version {VERSION} with workers, not {greeting.version}: "
                "use the same release for both"
            )
        policy = await self._ask(partial(self._policy, crawl))
        if near := near_sinks().intersection(policy.settings.crawl.sinks):
            raise UsageError(
                f"the crawl writes to {' and '.join(sorted(near))}, which needs bodies, and this worker "
                "sends none; use 'tamias worker --db'"
            )
        await self._opened(crawl, policy)
        return _elsewhere(policy)

    async def committer(self, crawl: int) -> RemoteCommitter:
        """Return the committer of a crawl, also for workers that greeted an earlier service."""
        known = self._committers.get(crawl)
        if known is None or known.broken:
            await self._opened(crawl, await self._ask(partial(self._policy, crawl)))
        return self._committers[crawl]

    async def digest(self, crawl: int) -> str:
        """Return the digest of the crawl's current policy."""
        return (await self._ask(partial(self._policy, crawl))).digest

    async def renew(self, crawl: int, leases: list[Lease], seconds: float) -> Renewed:
        """The leases that go on; with the digest of what the crawl is told now."""
        renewed = await (await self.committer(crawl)).renew(leases, seconds)
        return Renewed(renewed, await self.digest(crawl))

    async def close(self) -> None:
        """Commits what was delivered, and ends."""
        for committer in self._committers.values():
            await committer.close()

    async def _opened(self, crawl: int, policy: WirePolicy) -> None:
        async with self._changing:
            before = self._committers.get(crawl)
            if before is not None and not before.broken and before.policy.digest == policy.digest:
                return
            if self._number is None:
                self._number = worker_number(self._database)
            committer = RemoteCommitter(
                self._database,
                self._data,
                crawl,
                policy,
                number=self._number,
                lease_filter=self._lease_filter,
            )
            await committer.open()
            self._committers[crawl] = committer
            if before is not None:
                await before.close()

    def _policy(self, crawl: int, session: Session) -> WirePolicy:
        row = read_run(session, crawl)
        before = self._rows.get(crawl)
        if before is not None and before[0] == row:
            return msgspec.structs.replace(before[1], now=session.now())
        policy = self._made(*row, session.now())
        self._rows[crawl] = row, policy
        return policy

    def _made(self, policy: CrawlPolicy, run: int, now: int) -> WirePolicy:
        settings = msgspec.structs.replace(
            policy.settings(self._own),
            archive=ArchiveSettings(),
            serve=ServeSettings(),
            features={},
        )
        rules = tuple(
            (path.name, path.read_text(encoding="utf-8"))
            for place in settings.analyse.rules
            for path in _files(Path(place))
        )
        seeds = () if settings.filters.scope == "any" else policy.seeds
        digest = sha256(msgspec.json.encode((settings, seeds, rules, run))).hexdigest()
        return WirePolicy(settings, seeds, rules, digest, now, run)


def _elsewhere(policy: WirePolicy) -> WirePolicy:
    """Return the policy without files of this machine, which the service itself reads."""
    settings = policy.settings
    filters = msgspec.structs.replace(settings.filters, blocklists=())
    fetch = msgspec.structs.replace(settings.fetch, credentials=())
    return msgspec.structs.replace(
        policy, settings=msgspec.structs.replace(settings, filters=filters, fetch=fetch)
    )


def _files(place: Path) -> list[Path]:
    return sorted(each for each in place.rglob("*") if each.is_file()) if place.is_dir() else [place]
