"""The visit of a URL, from fetch to commit: each step adds its findings to the same object."""

import msgspec

from tamias.archive.sources.sites import Covered
from tamias.crawl.analysis.extractor import Extraction
from tamias.crawl.plan.admit import Reference
from tamias.crawl.revisit.archiver import ArchiveResult
from tamias.crawl.revisit.timetable import PlannedVisit
from tamias.crawl.store.held_lease import HeldLease
from tamias.model.capture import Capture, CaptureRecord, Outcome
from tamias.model.item import Item
from tamias.model.lease import Done, Task

UNTRIED = Capture(url="", started_at=0, ended_at=0, outcome=Outcome.NEW, reason="")
"""The capture of a visit that has just begun."""


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
    archived: ArchiveResult | None = None
    """What the archive makes of it."""
    put_off: bool = False
    """Nothing happened; the address is to be looked at again soon, or when it is `due`."""
    covering: Covered | None = None
    """The dataset that it should be part of."""
    due: int | None = None
    """When it is tried again, because nobody could be reached."""
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
