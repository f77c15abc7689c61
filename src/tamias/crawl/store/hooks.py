"""Commit hooks: what else becomes true in the transaction of visits, and what must be durable before it."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from tamias.crawl.store.visit import Visit
from tamias.database.connect import Cursor
from tamias.model.capture import Capture, CaptureRecord, Request
from tamias.model.lease import Lease, Task

T = TypeVar("T")


class CommitBatch:
    """The visits of one transaction, and the attempts that changed the current content of documents."""

    def __init__(
        self, visits: Sequence[Visit], changed: Sequence[tuple[Lease, Task, CaptureRecord]] = ()
    ) -> None:
        self.visits = visits
        self.changed = changed
        self._extras = [(visit, each) for visit in visits for each in (*visit.written, *visit.extras)]

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
    keeps_responses = False
    """Whether it is given each response, also a refused one, before that is read."""
    waits_for: str | None = None
    """Why nothing can be prepared at the moment, in a sentence."""

    def keep_response(self, capture: Capture, request: Request) -> Sequence[msgspec.Struct]:
        """Store a response as it came, in a thread of its own; return the records of where it stands."""
        return ()

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
