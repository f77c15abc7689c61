"""The service that every route works with."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tamias.features.service.events.hub import EventHub
from tamias.features.service.http.secret import Secret
from tamias.features.service.http.traffic import RequestCounts
from tamias.features.service.queries.history import Histories
from tamias.features.service.queries.thread_pool import SessionPool
from tamias.features.service.queries.usage import Usages
from tamias.settings import Settings

if TYPE_CHECKING:
    from tamias.crawl.store.progress import CrawlSnapshot
    from tamias.features.service.sparql.endpoint import SparqlEndpoint


class Service:
    """A running service."""

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
        """Return the hub of events for clients that listen."""
        return EventHub(self.pool, self._crawl_now)

    def _crawl_now(self) -> "CrawlSnapshot | None":
        """`crawl` may be another function later."""
        return self.crawl()
