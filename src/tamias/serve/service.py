"""What every route works with."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tamias.serve.events.hub import EventHub
from tamias.serve.http.secret import Secret
from tamias.serve.http.traffic import RequestCounts
from tamias.serve.queries.history import Histories
from tamias.serve.queries.thread_pool import SessionPool
from tamias.serve.replay.usage import Usages
from tamias.settings import Settings

if TYPE_CHECKING:
    from tamias.crawl.worker.supervisor import CrawlSnapshot
    from tamias.serve.sparql.endpoint import SparqlEndpoint


class Service:
    """One running service."""

    def __init__(
        self,
        data: Path,
        settings: Settings,
        pool: SessionPool,
        secret: Secret,
        crawl: "Callable[[], CrawlSnapshot | None]" = lambda: None,
        sparql: "SparqlEndpoint | None" = None,
    ) -> None:
        self.data = data
        self.settings = settings
        self.pool = pool
        self.secret = secret
        self.crawl = crawl
        """How the crawl beside it stands; None where there is none."""
        self.sparql = sparql
        self.histories = Histories(pool, frozenset(settings.filters.session_names))
        self.usages = Usages(pool)
        self.traffic = RequestCounts()

    @cached_property
    def events(self) -> EventHub:
        """What happens, for those who listen."""
        return EventHub(self.pool, self._crawl_now)

    def _crawl_now(self) -> "CrawlSnapshot | None":
        """`crawl` may be another function later."""
        return self.crawl()
