"""What a supervisor tells the workers that it starts."""

from enum import StrEnum

import msgspec

from tamias.crawl.plan.policy import CRAWL
from tamias.settings import Settings


class Until(StrEnum):
    """How long a supervisor goes on, and for whom its workers work."""

    DONE = "done"
    """Until the crawl has nothing left: its user runs it."""
    SERVED = "served"
    """The same, for a crawl that was handed over to the service: while its user does not stop it."""
    VISITED = "visited"
    """Until no watched resource is due."""
    STOPPED = "stopped"
    """Until somebody says stop: they help with a crawl of others."""

    @property
    def is_help(self) -> bool:
        """Whether the crawl is somebody else's: it cannot allow more than the workers themselves do."""
        return self is Until.STOPPED


class WorkerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor tells a worker. The rest stands in the row of the crawl."""

    data: str
    db: str | None
    settings: Settings
    """Of the machine; the row of the crawl comes before them."""
    crawl: int = CRAWL
    until: Until = Until.DONE
    share: int | None = None
    """URLs it may visit at most."""
