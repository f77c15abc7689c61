"""Commit hooks: what else becomes true in the transaction of visits, and what must be durable before it."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from tamias.crawl.store.visit import Visit
from tamias.database.connect import Cursor
from tamias.model.capture import CaptureRecord
from tamias.model.lease import Lease, Task

T = TypeVar("T")


class CommitBatch:
    """The visits of one transaction, and the attempts that changed the current content of documents."""

    def __init__(
        self, visits: Sequence[Visit], changed: Sequence[tuple[Lease, Task, CaptureRecord]] = ()
    ) -> None:
        self.visits = visits
        self.changed = changed
        self._extras = [(visit, each) for visit in visits for each in visit.extras]

    def extras(self, kind: type[T]) -> list[tuple[Visit, T]]:
        """Return the extra records of a type, each with its visit."""
        return [(visit, each) for visit, each in self._extras if isinstance(each, kind)]


class CommitHook:
    """Takes part in commits; a subclass has those of the three moments that it needs.

    A stage of a visit adds plain records to `Visit.extras`, and the hook for their type writes them.
    """

    is_elsewhere = False
    """Whether `prepare` sends bytes to a store: it may take long, and gets a thread of its own."""
    is_for_every_visit = False
    """Whether `write` has something to write also for a visit without extra records."""
    waits_for: str | None = None
    """Why nothing can be prepared at the moment, in a sentence."""

    def prepare(self, visits: Sequence[Visit]) -> None:
        """Make durable what the rows of visits will name, before their links and their transaction."""

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Write rows, in the transaction that makes the visits true."""

    def after(self, visit: Visit, *, committed: bool) -> None:
        """Learn in the event loop what became of a visit; not told if the process dies first."""

    def close(self) -> None:
        """Let go of everything; for the database's thread, after the last commit."""


def hook_of(hooks: Iterable[CommitHook], kind: type[T]) -> T | None:
    """Return the hook of a type; None if it is off."""
    return next((each for each in hooks if isinstance(each, kind)), None)
