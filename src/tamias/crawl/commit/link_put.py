"""Admission, scoring and storage of the links that visits found, in the database's thread.

The sitemaps of a host may add so many files and so many URLs to a crawl; known ones do not count.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Protocol

import msgspec

from tamias import plugins
from tamias.archive.sources.sites import ListedBy, count_listed, listed_so_far
from tamias.crawl.commit.bulk_copies import Coverage
from tamias.crawl.commit.segment_pool import SegmentPool
from tamias.crawl.plan.admit import Admission, Reference
from tamias.crawl.plan.policy import RunLimit
from tamias.crawl.revisit.timetable import VisitBudget
from tamias.crawl.store.progress import step
from tamias.crawl.store.visit import Visit
from tamias.database.connect import Database, Session
from tamias.database.threads import SessionThread
from tamias.frontier.due import WAITING
from tamias.frontier.keys import bucket_of, host_hash
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import PUT_BATCH
from tamias.model.cut import LISTED
from tamias.model.item import NEVER, WATCH, Item
from tamias.model.kind import SITEMAP, kind_of
from tamias.model.lease import Lease
from tamias.model.url import authority
from tamias.settings import Settings

MOST_INVITED = 100
"""Visits that the links of one host can earn another one."""
_MOST_PAIRS = 100_000


class CommitContext(msgspec.Struct, frozen=True, kw_only=True):
    """The shared objects of a process that commits visits: a worker, or the service for remote workers."""

    thread: SessionThread
    frontier: PostgresFrontier
    admission: Admission
    settings: Settings
    segments: SegmentPool
    coverage: Coverage
    database: Database
    data: Path
    number: int
    """The worker's own."""
    crawls: Sequence[int] = ()
    """The crawls that it works for."""

    @property
    def session(self) -> Session:
        """Return the session, for functions that run in the database's thread."""
        return self.thread.session

    def now(self) -> int:
        """The frontier's time."""
        return self.thread.session.time()

    def lease(
        self, frontier: PostgresFrontier, limit: RunLimit, budget: VisitBudget | None,
        hosts: int, per_host: int, seconds: float,
    ) -> list[Lease]:  # fmt: skip
        """Lease hosts within a limit and a budget, after a look at what must not be fetched any more."""
        self.admission.forgotten.refresh(self.session)
        lend = partial(budget.lease if budget else PostgresFrontier.lease, frontier, seconds=seconds)
        leases = limit.lease(lend, frontier.release, hosts, per_host)
        self.coverage.refresh()
        return leases


class Invitations:
    """Counts the URLs of each host that documents of other hosts named: they earn it visits."""

    def __init__(self) -> None:
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._news: Counter[str] = Counter()

    def note(self, source: str, items: Iterable[Item]) -> None:
        """Count the links from `source` to other hosts, up to a limit for each pair of hosts."""
        for item in items:
            if item.host != source and self._pairs[source, item.host] < MOST_INVITED:
                self._pairs[source, item.host] += 1
                self._news[item.host] += 1
        if len(self._pairs) > _MOST_PAIRS:
            self._pairs.clear()

    def take(self) -> Counter[str]:
        """Return the counts since the last call."""
        news, self._news = self._news, Counter()
        return news


class LinkSource(msgspec.Struct, frozen=True):
    """Links of one document, and what is known of the document."""

    reference: Reference
    url: str
    score: float | None = None
    quads: int | None = None
    host: str = ""
    """The host of the document, if it is known."""


class Scorer(Protocol):
    """Score new URLs before they are put; made from a session, a frontier, an admission and the settings."""

    def score(self, items: list[Item], found: Iterable[LinkSource]) -> list[Item]:
        """Return the items with their scores."""
        ...

    def keep(self) -> None:
        """Store what the last scores depend on, after the items were put."""
        ...


class LinkPut:
    """Puts links and items."""

    def __init__(self, context: CommitContext) -> None:
        settings = context.settings
        self._session = context.session
        self._frontier = context.frontier
        self._admission = context.admission
        self._coverage = context.coverage
        self._most = settings.seeds
        self._scorers: list[Scorer] = [
            make(context.session, context.frontier, context.admission, settings)
            for make in plugins.load_all("scorers").values()
        ]
        self._new_wait = settings.crawl.continuous and settings.crawl.budget is not None
        self.invitations = Invitations()

    def put_links(self, reference: Reference) -> int:
        """Puts links before their visit is committed; returns what kept others out (`tamias.model.cut`)."""
        return self._put_listed(reference) if reference.listed else self.put_found([(reference, None)])[0]

    def put_found(
        self, links: Sequence[tuple[Reference, Visit | None]], items: Iterable[Item] = ()
    ) -> list[int]:
        """Links and the visits that found them, if these are known. Returns for each what kept links out."""
        with step("admit"):
            seen: dict[str, Item] = {}  # many pages of a site have the same links
            found: list[Item] = []
            cuts = []
            for reference, visit in links:
                admitted, cut = self._admission.admit(self._coverage.without_own(reference), seen)
                if visit is not None:
                    self.invitations.note(visit.held.lease.host, admitted)
                found += admitted
                cuts.append(cut)
        with step("score"):
            for scorer in self._scorers:
                found = scorer.score(found, starmap(_describe_source, links))
        with step("put"):
            self.put([*found, *items])
        with step("score"):
            for scorer in self._scorers:
                scorer.keep()
        return cuts

    def put(self, items: Sequence[Item]) -> int:
        """Puts items as they are. Returns how many were new."""
        nearest: dict[tuple[int, str], Item] = {}
        for item in map(_waiting, items) if self._new_wait else items:
            other = nearest.get((item.crawl, item.key))
            # Of equals the last: redirects' targets come after links and are not to be visited again.
            if other is None or item.depth <= other.depth:
                nearest[item.crawl, item.key] = item
        unique = list(nearest.values())
        new = self._frontier.put(unique)
        self._admission.remember(unique)
        return new

    def _put_listed(self, reference: Reference) -> int:
        """The addresses of a sitemap, as many new ones as the sitemaps of its host may add to a crawl."""
        items, cut = self._admission.admit(reference)
        for scorer in self._scorers:
            items = scorer.score(items, [_describe_source(reference, None)])
        qid = host_hash(self._admission.queue(reference.base))
        bucket = bucket_of(qid, self._frontier.buckets)
        place = ListedBy(bucket, qid, reference.crawl, authority(reference.base))
        sitemaps, urls = listed_so_far(self._session, place)
        files = reference.kind == SITEMAP
        room = self._most.host_sitemaps - sitemaps if files else self._most.host_sitemap_urls - urls
        new = 0
        while items and new < room:
            size = min(PUT_BATCH, room - new)
            new += self.put(items[:size])
            items = items[size:]
        if new:
            count_listed(self._session, place, new if files else 0, 0 if files else new)
        for scorer in self._scorers:
            scorer.keep()
        return cut | (LISTED if items else 0)


def _waiting(item: Item) -> Item:
    """A new URL waits for its share of the budget; what others wait for does not."""
    if item.crawl == WATCH or item.due == NEVER or kind_of(item.tags) is not None:
        return item
    return msgspec.structs.replace(item, due=WAITING)


def _describe_source(reference: Reference, visit: Visit | None) -> LinkSource:
    """The links with what a strategy may want to know of the page."""
    if visit is None:
        return LinkSource(reference, reference.base)
    task, record, host = visit.task, visit.record, visit.held.lease.host
    if record is None:
        return LinkSource(reference, task.url, task.score, host=host)
    return LinkSource(reference, record.final_url, task.score, record.quads, host)
