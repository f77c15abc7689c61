"""The messages between a worker and the service, in MessagePack. Both ends are Tamias."""

from typing import Any, TypeVar

import msgspec

from tamias.crawl.analysis.extractor import Extraction
from tamias.crawl.analysis.marker import DocumentPlace
from tamias.crawl.plan.admit import Reference
from tamias.model.capture import Capture
from tamias.model.item import Item
from tamias.model.lease import Lease, Task, Unreachable
from tamias.permit.robots import Rules
from tamias.settings import Settings

VERSION = 7
"""Of these messages. Another version is refused: workers and service are to be of one release."""
T = TypeVar("T")


class Greeting(msgspec.Struct, frozen=True):
    """A worker begins."""

    worker: int
    version: int = VERSION


class WirePolicy(msgspec.Struct, frozen=True):
    """The options of the crawl, so that all workers behave alike."""

    settings: Settings
    seeds: tuple[str, ...]
    rules: tuple[tuple[str, str], ...]
    """Scraping rules: names and texts of their files."""
    digest: str
    """Another one when something else was told."""
    now: int
    """The frontier's time."""
    run: int = 0
    """Which run of the crawl it is."""


class Lent(msgspec.Struct, frozen=True):
    """A URL of a leased host; the lease comes without its own tasks."""

    lease: Lease
    task: Task
    forgotten: dict[bytes, str] = {}
    """Digests of URLs near it that are not to be requested, with the reasons; of the first task only."""


class Renewed(msgspec.Struct, frozen=True):
    """The leases that were renewed."""

    leases: list[Lease]
    digest: str
    """Of the policy in force."""


_Site = tuple[Lease, int, str, int]
"""A lease, a crawl, an authority and a depth."""
CALLS: dict[str, Any] = {
    "Hello": Greeting,
    "Renew": tuple[list[Lease], float],
    "Mourn": tuple[int, list[DocumentPlace]],
    "GetRobots": tuple[Lease, str],
    "PutRobots": tuple[Lease, str, Rules, int | None, int],
    "GetContexts": tuple[list[str], int],
    "IsSiteOpen": _Site,
    "OpenSite": _Site,
    "PutItems": list[Item],
    "PutLinks": Reference,
}
"""The argument of each call that has one answer, or a tuple of its arguments."""


class DeliveredVisit(msgspec.Struct, frozen=True, kw_only=True):
    """A visit as it is delivered; its quads are sent beside it."""

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
    touched: bool = True


def bare(lease: Lease) -> Lease:
    """The lease without its tasks."""
    return msgspec.structs.replace(lease, tasks=())


def packed(value: Any) -> bytes:
    """A value as it travels."""
    return msgspec.msgpack.encode(value)


def unpacked(data: bytes, kind: type[T]) -> T:
    """A value that came; `msgspec.MsgspecError` if it is of another kind."""
    return msgspec.msgpack.decode(data, type=kind)
