"""What a worker works at: where hosts come from and where visits go. A database, or a service elsewhere."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tamias.crawl.commit.committer import Tally
from tamias.crawl.held_lease import HeldLease
from tamias.crawl.request.reach import Reach
from tamias.crawl.visit.visitor import Allowance
from tamias.model.lease import Lease

After = Callable[[Sequence[HeldLease]], None]
"""Told, in the event loop, which hosts were just given back."""


class WorkerStore(Protocol):
    """Lends hosts, has them visited, and makes true what the visits brought."""

    number: int
    """The worker's own."""
    allowance: Allowance
    """How many URLs may still be visited."""
    reach: Reach
    """Who can be reached."""

    @property
    def tally(self) -> Tally:
        """What was committed so far."""
        ...

    def parked(self) -> int:
        """How many documents are still being read whose hosts were given back."""
        ...

    async def open(self) -> None:
        """Before the first lease: puts right what earlier workers left."""
        ...

    async def commit(self, after: After) -> None:
        """Commits what visits bring until `end`, and then what has been handed over by then."""
        ...

    async def lease(self, hosts: int, per_host: int, seconds: float) -> list[Lease]:
        """Hosts with due URLs; none when there are none, or nobody answers."""
        ...

    async def renew(self, leases: Iterable[Lease], seconds: float) -> list[Lease] | None:
        """The leases that go on; those left out are lost. None: nobody answered, so they run to their end."""
        ...

    async def repair(self) -> None:
        """Now and then: puts right what dead workers left."""
        ...

    async def count(self) -> None:
        """Every few seconds: writes down what is only counted, such as what block lists kept out."""
        ...

    async def work(self, held: HeldLease) -> None:
        """Visits the URLs of a host and gives it back."""
        ...

    def release(self, held: HeldLease) -> None:
        """Gives a host back with the next commit."""
        ...

    def stop(self) -> None:
        """The worker is told to end: if it dies from here on, no document is to blame."""
        ...

    def end(self) -> None:
        """Lets `commit` come to its end."""
        ...

    async def close(self) -> None:
        """After `commit`: lets go of everything."""
        ...
