"""What a supervisor tells the workers that it starts."""

import msgspec

from tamias.crawl.plan.policy import CRAWL
from tamias.settings import Settings


class WorkerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor tells a worker."""

    data: str
    db: str | None
    settings: Settings
    seeds: tuple[str, ...] = ()
    crawl: int = CRAWL
    share: int | None = None
    """URLs it may visit at most."""
    sinks: tuple[int, ...] = ()
    """Numbers of the sinks outside, which are told of every document."""
    warc: bool = False
    archive: bool = False
    """Whether all that is crawled is kept as versions, not only what is under watch."""
