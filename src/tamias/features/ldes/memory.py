"""The memory of the harvest of an event stream: its state, and the bookmark between harvests.

Of a page that cannot change only its digest is kept; of the others their validators and members' digests.
"""

from datetime import datetime
from hashlib import blake2b

import msgspec

from tamias.features.ldes.page import Lead

MOST_DIGESTS = 50_000
"""Members remembered of pages that may still change; those of the pages met first are forgotten first.

A member that is forgotten comes again, which is repetition, but no loss.
"""
MOST_SETTLED = 200_000
MOST_LEFT = 10_000
MOST_WAITING = 20_000
"""Pages waiting to be asked for."""


class OpenPage(msgspec.Struct, array_like=True):
    """A page that may still change, as it was last seen."""

    etag: str | None = None
    last_modified: str | None = None
    members: list[bytes] = msgspec.field(default_factory=list)
    lead: Lead | None = None


class Bookmark(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The bookmark that one harvest leaves for the next."""

    open: dict[str, OpenPage] = {}
    settled: list[bytes] = []
    """Digests of the addresses of pages that will not change."""
    latest: datetime | None = None
    """The date of the latest member."""
    dated_by: str | None = None
    left: list[Lead] = []
    """Pages that were not read."""


class StreamTally(msgspec.Struct, array_like=True):
    """Figures of a harvest, for people."""

    requested: int = 0
    members: int = 0
    known: int = 0
    unchanged: int = 0
    gone: int = 0
    passed_over: int = 0
    in_part: int = 0
    """Pages that could not be read to their end, or led to more than can be kept waiting."""
    retention: bool = False
    trouble: str | None = None
    """Why the last of the pages that could not be had was not."""
    trouble_outcome: int = 0


class StreamState(msgspec.Struct, kw_only=True):
    """The state of a harvest."""

    todo: list[Lead]
    met: set[bytes]
    """Digests of the addresses of all pages that were asked for, are still to be, or are settled."""
    settled: set[bytes]
    open: dict[str, OpenPage] = msgspec.field(default_factory=dict)
    latest: datetime | None = None
    dated_by: str | None = None
    left: list[Lead] = msgspec.field(default_factory=list)
    tally: StreamTally = msgspec.field(default_factory=StreamTally)

    def meet(self, lead: Lead) -> bool:
        """Add a page to the harvest, unless it is known; return False when there is no room for it."""
        digest = page_digest(lead.url)
        if digest in self.met:
            return True
        if len(self.todo) >= MOST_WAITING:
            return False
        self.met.add(digest)
        self.todo.append(lead)
        return True

    def bookmark(self, before: Bookmark) -> Bookmark:
        """Return the bookmark. Pages whose members are all of the past are settled, too."""
        left = [*self.left, *self.todo][:MOST_LEFT]
        still_open = {lead.url: before.open[lead.url] for lead in left if lead.url in before.open}
        past = {url for url, page in self.open.items() if page.lead and page.lead.is_before(self.latest)}
        settled = self.settled | {page_digest(url) for url in past}
        return Bookmark(
            open={url: page for url, page in (still_open | self.open).items() if url not in past},
            settled=sorted(settled)[:MOST_SETTLED],
            latest=self.latest,
            dated_by=self.dated_by,
            left=left,
        )

    def forget(self) -> None:
        """Forget members beyond the limit."""
        count = sum(len(page.members) for page in self.open.values())
        for page in self.open.values():
            if count <= MOST_DIGESTS:
                return
            count -= len(page.members)
            page.members = []


def page_digest(url: str) -> bytes:
    """Return a digest of a page's address in eight bytes."""
    return blake2b(url.encode(), digest_size=8).digest()


def read_bookmark(data: bytes | None) -> Bookmark:
    """Return the bookmark of the last harvest; an empty one where there is none that can be read."""
    try:
        return msgspec.msgpack.decode(data, type=Bookmark) if data else Bookmark()
    except msgspec.DecodeError:
        return Bookmark()


def begun(root: str, before: Bookmark) -> StreamState:
    """Begin a harvest: what may have changed, what was left, and the first page if there is nothing else."""
    state = StreamState(todo=[], met=set(before.settled), settled=set(before.settled))
    state.latest, state.dated_by = before.latest, before.dated_by
    for lead in (*(page.lead or Lead(url) for url, page in before.open.items()), *before.left):
        state.meet(lead)
    if not state.todo:
        state.met.discard(page_digest(root))
        state.meet(Lead(root))
    return state


def resumed(data: bytes | None) -> StreamState | None:
    """Return the state of a harvest that was under way; None where there is none that can be read."""
    try:
        return msgspec.msgpack.decode(data, type=StreamState) if data else None
    except msgspec.DecodeError:
        return None
