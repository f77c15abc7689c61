"""The messages between a worker and the service, in MessagePack. Both ends are Tamias."""

from typing import Any, TypeVar

import msgspec

from tamias.crawl.analysing.extractor import Extraction
from tamias.crawl.analysing.marker import DocumentPlace
from tamias.crawl.plan.admit import Reference
from tamias.model.capture import Capture
from tamias.model.item import Item
from tamias.model.lease import Lease, Task, Unreachable
from tamias.permit.robots import Rules
from tamias.settings import Settings

VERSION = 5
"""Of these messages. Another version is refused: workers and service are to be of one release."""
T = TypeVar("T")


class Greeting(msgspec.Struct, frozen=True):
    """A worker begins."""

    worker: int
    version: int = VERSION


class WirePolicy(msgspec.Struct, frozen=True):
    """What the crawl was told, so that every worker behaves alike."""

    settings: Settings
    seeds: tuple[str, ...]
    rules: tuple[tuple[str, str], ...]
    """Scraping rules: names and texts of their files."""
    digest: str
    """Another one when something else was told."""
    now: int
    """The frontier's time."""


class Lent(msgspec.Struct, frozen=True):
    """One URL of a host that is lent; the lease's own tasks are left out."""

    lease: Lease
    task: Task
    forgotten: dict[bytes, str] = {}
    """Digests of URLs near it that are not to be requested, with the reasons; of the first task only."""


class Renewal(msgspec.Struct, frozen=True):
    """Leases that are to go on."""

    leases: list[Lease]
    seconds: float


class Renewed(msgspec.Struct, frozen=True):
    """Those that do."""

    leases: list[Lease]
    digest: str
    """Of the policy in force."""


class Death(msgspec.Struct, frozen=True):
    """A worker died, and what it was analysing then."""

    worker: int
    analysed: list[DocumentPlace]


class RobotsAsked(msgspec.Struct, frozen=True):
    """Whose rules are wanted."""

    lease: Lease
    authority: str


class RobotsAnswer(msgspec.Struct, frozen=True):
    """Rules that were just fetched, and for how many seconds they hold."""

    lease: Lease
    authority: str
    rules: Rules
    status: int | None
    seconds: int


class ContextsAsked(msgspec.Struct, frozen=True):
    """Contexts that somebody may have tried since then."""

    addresses: list[str]
    since: int


class Site(msgspec.Struct, frozen=True):
    """A place in a crawl."""

    lease: Lease
    crawl: int
    authority: str
    depth: int


class DeliveredVisit(msgspec.Struct, frozen=True, kw_only=True):
    """One visit. Its quads travel beside it."""

    lease: Lease
    task: Task
    capture: Capture
    """Without its body's bytes."""
    found: Extraction
    references: list[Reference]
    """Its links; without those that the worker knows to be known, unless the crawl keeps all links."""
    items: list[Item]
    """To be put as they are."""
    put_off: bool
    is_context: bool
    context: bytes | None
    delay_ms: int
    blocked_until: int | None
    granted: str | None
    due: int | None = None
    """When it is tried again, because nobody could be reached."""
    news: dict[str, Unreachable | None] = {}
    """What of the host cannot be reached, or answered again."""


class Released(msgspec.Struct, frozen=True):
    """A host that is given back."""

    lease: Lease
    delay_ms: int
    blocked_until: int | None
    visits: int = 0
    earned: float = 0.0
    news: dict[str, Unreachable | None] = {}
    alike: bytes | None = None


def bare(lease: Lease) -> Lease:
    """The lease without its tasks."""
    return msgspec.structs.replace(lease, tasks=())


def packed(value: Any) -> bytes:
    """A value as it travels."""
    return msgspec.msgpack.encode(value)


def unpacked(data: bytes, kind: type[T]) -> T:
    """A value that came; `msgspec.MsgspecError` if it is of another kind."""
    return msgspec.msgpack.decode(data, type=kind)
