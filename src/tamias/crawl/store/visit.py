"""The visit of a URL, from fetch to commit, the hooks of its commit, and the port that all of it passes.

The port is between a worker and where it stands: a database (`commit/database_store.py`), or a frontier
service elsewhere (the feature `remote_workers`).
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

import msgspec

from tamias.archive.sources.sites import Covered
from tamias.archive.versions.judgement import AttemptMeaning, Judgement
from tamias.archive.versions.resources import Watched
from tamias.crawl.analysis.extractor import Extraction
from tamias.crawl.plan.admit import Reference
from tamias.crawl.plan.policy import RunLimit
from tamias.crawl.revisit.timetable import PlannedVisit
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.progress import Tally
from tamias.database.connect import Cursor
from tamias.model.capture import Capture, CaptureRecord, Outcome, Request
from tamias.model.item import Item
from tamias.model.lease import Done, Lease, Task
from tamias.permit.availability import KnownRobots
from tamias.permit.robots import Rules
from tamias.protocols import DocumentSink
from tamias.schedule.visit import NextVisit, Seen

UNTRIED = Capture(url="", started_at=0, ended_at=0, outcome=Outcome.NEW, reason="")
"""The capture of a visit that has just begun."""

SEEN: dict[AttemptMeaning, Seen] = {
    AttemptMeaning.CHANGED: "changed",
    AttemptMeaning.NOISE: "noise",
    AttemptMeaning.UNCHANGED: "unchanged",
    AttemptMeaning.SUSPECT: "failed",
    AttemptMeaning.GONE: "gone",
    AttemptMeaning.FAILED: "failed",
}


class JudgedResponse(msgspec.Struct, kw_only=True):
    """A response that the archive has judged."""

    watched: Watched
    judgement: Judgement
    next: NextVisit


class Visit(msgspec.Struct, eq=False):
    """A task of a host that is held, what came of it, and, once it is settled, what is to be written."""

    task: Task
    held: HeldLease
    capture: Capture = UNTRIED
    """Without its body once the visit is settled."""
    found: Extraction = msgspec.field(default_factory=Extraction)
    references: list[Reference] = msgspec.field(default_factory=list)
    items: list[Item] = msgspec.field(default_factory=list)
    """To be put as they are, such as where redirects led: known from now on, and not to be visited again."""
    extras: list[msgspec.Struct] = msgspec.field(default_factory=list)
    """Plain records of what else it found: hooks write them in the same transaction (`store/hooks.py`)."""
    written: list[msgspec.Struct] = msgspec.field(default_factory=list)
    """Where hooks have stored its responses: records that stay when it fails."""
    archived: JudgedResponse | None = None
    """What the archive makes of it."""
    put_off: bool = False
    """Nothing happened; the address is to be looked at again soon, or when it is `due`."""
    covering: Covered | None = None
    """The dataset that it should be part of."""
    due: int | None = None
    """When it is tried again, because nobody could be reached."""
    next_due: int | None = None
    """When a source is harvested again; None: as `schedule.harvests` says."""
    is_context: bool = False
    """Whether the body is kept for documents that name the address; `context` is that, None if it is none."""
    context: bytes | None = None
    at_once: bool = True
    """Whether it is read by now. If not, reading may take so long that its host is given back meanwhile."""
    parked_until: int | None = None
    """Set when that happened: until then nobody else visits the URL, in the frontier's time."""
    capture_id: str | None = None
    """Where it has one already."""
    done: Done | None = None
    """For the frontier: set when the visit is settled."""
    record: CaptureRecord | None = None
    """The row of the attempt, set with it. None when nothing was tried: the task is only put off."""
    planned: PlannedVisit | None = None
    """When it is visited again, in a crawl that goes on."""

    @property
    def settled(self) -> Done:
        """Return the result for the frontier; only for a visit that is settled."""
        assert self.done is not None
        return self.done

    def fail(self, capture: Capture) -> None:
        """Leave only this attempt, which ended by a fault of ours, and where its responses were written."""
        written = self.written
        self.drop_findings()
        self.capture, self.due, self.written = capture, None, written

    def drop_findings(self) -> None:
        """Drop everything that was found."""
        self.found, self.archived, self.record = Extraction(), None, None
        self.references, self.items, self.extras, self.written = [], [], [], []
        self.is_context, self.context = False, None


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
