"""A lease: one host, lent to one worker, with some of its due URLs; and the frontier in figures."""

import msgspec

from tamias.model.capture import Outcome
from tamias.model.cut import REOPENED


class Task(msgspec.Struct, frozen=True, gc=False):
    """A due URL of a leased host, with what was learnt on the last visit."""

    uid: int
    url: str
    crawl: int
    depth: int
    score: float
    status: Outcome = Outcome.NEW
    fails: int = 0
    deaths: int = 0
    """How often a worker died over it."""
    etag: str | None = None
    last_modified: str | None = None
    tags: tuple[str, ...] = ()
    cut: int = 0
    """What cut its links at the last visit: bits of `tamias.model.cut`."""

    @property
    def reopened(self) -> bool:
        """Return whether it was visited, and is to be read once more."""
        return bool(self.cut & REOPENED)


class Unreachable(msgspec.Struct, frozen=True, gc=False):
    """A scheme, host and port of a queue that could not be reached, and when it may be tried again."""

    authority: str
    since: int
    """When it was first tried in vain, in the frontier's milliseconds."""
    tries: int
    next_at: int
    reason: str
    given_up: bool = False
    """No URL waits for it any more; it is tried again at `next_at` if new ones come."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to talk to one host until `ends_at`, unless renewed.

    `ends_at` is the frontier's time; `token` proves the right in every later call.
    """

    host: str
    qid: int
    bucket: int
    token: int
    ends_at: int
    delay_ms: int
    tasks: tuple[Task, ...]
    visits: int = 0
    """First visits to URLs of the host so far, by all workers."""
    earned: float = 0.0
    """How many of these its documents and the links of other hosts have earned."""
    alike: bytes = b""
    """Its pages that are alike but for numbers: see `tamias.permit.traps`."""
    unreachable: tuple[Unreachable, ...] = ()
    """What of the host could not be reached lately."""


class Done(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The result of a task, and when its URL is due again (`NEVER`: not again)."""

    task: Task
    outcome: Outcome
    due: int
    fails: int = 0
    etag: str | None = None
    last_modified: str | None = None
    tags: tuple[str, ...] | None = None
    """The URL's tags from now on; None leaves them."""
    cut: int | None = None
    """What cut its links: bits of `tamias.model.cut`; None leaves what is known."""


ABANDONED = 2
"""Delays that a host waits after a request that was given up, or whose worker died: nobody knows when the
server is done with it."""


class Return(msgspec.Struct, frozen=True, kw_only=True):
    """A host's news at the end of a piece of work.

    With `release` the host is given back and may be leased again after its delay;
    without it the lease goes on and only the tasks in `done` are settled.
    """

    lease: Lease
    done: tuple[Done, ...] = ()
    release: bool = True
    delay_ms: int | None = None
    """The host's new delay, such as robots.txt's Crawl-delay; None leaves it."""
    blocked_until: int | None = None
    """The host asked for a pause until then (Retry-After); None leaves it."""
    touched: bool = True
    """Whether a request was sent since it was leased; if not, its delay does not begin again."""
    visits: int = 0
    """First visits to URLs of the host since it was leased; counted when it is given back."""
    earned: float = 0.0
    """What they have earned."""
    alike: bytes | None = None
    """The pages of the host that are alike, as counted now; None leaves what was counted."""
    unreachable: tuple[Unreachable, ...] = ()
    """What of the host cannot be reached: its URLs are not due before `next_at`, unless it is given up."""
    reached: tuple[str, ...] = ()
    """Authorities of the lease's `unreachable` that answered."""


class CrawlStats(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a crawl: URLs known, URLs still open, hosts, and when it goes on."""

    crawl: int
    name: str
    known: int
    open: int
    hosts: int
    leased: int
    """Hosts with work for this crawl that are leased at this moment."""
    next_at: int | None
    """When the next host of it can be leased, in milliseconds; None when nothing is open."""
    next_due: int | None
    """When its next URL is due, whether or not the host wants a pause first."""
    again: int = 0
    """How many URLs were opened once more after their visit."""


class FrontierStats(msgspec.Struct, frozen=True, kw_only=True):
    """The whole frontier at one moment, in its own time."""

    now: int
    hosts: int
    leased: int
    ready: int
    crawls: tuple[CrawlStats, ...]
