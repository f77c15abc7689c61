"""The port between a worker and where it stands: a database, or a frontier service elsewhere.

All that a visit asks for or brings passes it. `commit/database_store.py` carries it out, and a store of the
feature `remote_workers`.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from tamias.crawl.plan.admit import Reference
from tamias.crawl.plan.run_limit import RunLimit
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.progress import Tally
from tamias.crawl.store.visit import CommitHook, Visit
from tamias.model.item import Item
from tamias.model.lease import Lease, Task
from tamias.permit.availability import KnownRobots
from tamias.permit.robots import Rules
from tamias.protocols import DocumentSink


class QuadStore(Protocol):
    """The place where the quads of documents are written while they are read."""

    one_large_at_a_time: asyncio.Lock
    """To be held, in the event loop, by whoever writes a large document without a sandbox."""

    def small_document(self) -> AbstractContextManager[DocumentSink]:
        """Open a small document, in the event loop's thread."""
        ...

    def large_document(self) -> AbstractContextManager[DocumentSink]:
        """Open a large document, in a thread that can wait."""
        ...


After = Callable[[Sequence[HeldLease], Sequence[Task]], None]
"""Called in the event loop after a commit: hosts given back, and tasks whose visits came too late for it."""


class WorkerStore(Protocol):
    """Lends hosts, answers what visits ask, and commits what they bring.

    Whatever is asked may be asked twice: every write is idempotent. Only `lease` and `renew` return when
    nobody answers; the others wait.
    """

    number: int
    """The worker's own."""
    limit: RunLimit

    @property
    def hooks(self) -> Sequence[CommitHook]:
        """The hooks of its commits that are on."""
        ...

    @property
    def quads(self) -> QuadStore:
        """Return the store for the quads of documents."""
        ...

    @property
    def tally(self) -> Tally:
        """Return the totals of what was committed."""
        ...

    @property
    def waits_for(self) -> str | None:
        """Return a sentence that says why nothing is leased at the moment."""
        ...

    def now(self) -> int:
        """The frontier's time."""
        ...

    async def open(self) -> None:
        """Recover what earlier workers left, before the first lease."""
        ...

    async def lease(self, hosts: int, per_host: int, seconds: float) -> list[Lease]:
        """Hosts with due URLs; none when there are none, or nobody answers."""
        ...

    async def renew(self, leases: Iterable[Lease], seconds: float) -> list[Lease] | None:
        """The leases that go on; those left out are lost. None: nobody answered, so they run to their end."""
        ...

    def release(self, held: HeldLease) -> None:
        """Gives a host back with the next commit."""
        ...

    async def put(self, items: list[Item]) -> None:
        """Makes items known."""
        ...

    async def put_links(self, reference: Reference) -> int:
        """Makes links known that the filters admit; returns what kept others out (`tamias.model.cut`)."""
        ...

    async def read_robots(self, lease: Lease, authority: str) -> KnownRobots | None:
        """The robots.txt rules of an authority, unless they are unknown or too old."""
        ...

    async def write_robots(
        self, lease: Lease, authority: str, rules: Rules, status: int | None, seconds: int
    ) -> KnownRobots:
        """Keeps them for all workers, for so many seconds."""
        ...

    async def read_contexts(self, addresses: list[str], since: int) -> dict[str, bytes | None]:
        """JSON-LD contexts that somebody asked for since then; None for those that could not be had."""
        ...

    async def is_site_open(self, lease: Lease, crawl: int, authority: str, depth: int) -> bool:
        """Tell if the sitemaps of a place were put in this crawl, from this depth or a lesser one."""
        ...

    async def open_site(self, lease: Lease, crawl: int, authority: str, depth: int) -> None:
        """Note that the sitemaps of a place are being put."""
        ...

    async def commit(self, visit: Visit) -> None:
        """Hands a visit over; waits when too many are waiting."""
        ...

    async def run(self, after: After) -> None:
        """Commits what is handed over until `end`, and then what has been handed over by then."""
        ...

    async def maintain(self) -> None:
        """Store counts and recover what dead workers left, every few seconds."""
        ...

    def stop(self) -> None:
        """The worker is told to end: nobody waits long for an answer any more."""
        ...

    def end(self) -> None:
        """Lets `run` come to its end."""
        ...

    async def close(self) -> None:
        """Release everything, after `run`."""
        ...
