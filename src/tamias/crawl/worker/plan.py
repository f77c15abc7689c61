"""Plans that a supervisor gives to its workers."""

from enum import StrEnum

import msgspec

from tamias.crawl.plan.policy import CRAWL
from tamias.frontier.service.state import WATCH
from tamias.settings import Settings


class Until(StrEnum):
    """Time for which a supervisor goes on, and for whom its workers work."""

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
        """Return whether the crawl is somebody else's: it cannot allow more than the workers do."""
        return self is Until.STOPPED


class WorkerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of a worker. The rest is in the row of the crawl."""

    data: str
    db: str | None
    settings: Settings
    """Of the machine; the row of the crawl comes before them."""
    crawl: int = CRAWL
    until: Until = Until.DONE


def run_limit(settings: Settings, crawl: int, until: Until) -> int | None:
    """Return how many URLs a run may visit; whoever helps with what is watched has no limit."""
    return None if until.is_help and crawl == WATCH else settings.crawl.max_urls
