"""Between what visits found and the frontier: links are admitted, scored and put. For the database's thread.

The sitemaps of a host may add so many files and so many URLs to a crawl; known ones do not count.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import starmap

import msgspec

from tamias.archive.sources.sites import ListedBy, count_listed, listed_so_far
from tamias.crawl.commit.bulk_copies import Coverage
from tamias.crawl.commit.segment_pool import SegmentPool
from tamias.crawl.plan.admit import Admission, Reference
from tamias.crawl.store.steps import step
from tamias.crawl.store.visit import Visit
from tamias.crawl.store.worker_store import Sinks
from tamias.crawl.strategy.links import Sourced
from tamias.crawl.strategy.strategist import Strategist
from tamias.database.connect import Session
from tamias.database.threads import SessionThread
from tamias.frontier.due.waiting import WAITING
from tamias.frontier.keys import bucket_of, host_hash
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import PUT_BATCH
from tamias.frontier.service.state import WATCH
from tamias.model.cut import LISTED
from tamias.model.item import NEVER, Item
from tamias.model.kind import SITEMAP, kind_of
from tamias.model.url import authority
from tamias.settings import Settings

MOST_INVITED = 100
"""Visits that the links of one host can earn another one."""
_MOST_PAIRS = 100_000


class CommitContext(msgspec.Struct, frozen=True, kw_only=True):
    """One for each process that commits visits: a worker, or the service that others deliver to."""

    thread: SessionThread
    frontier: PostgresFrontier
    admission: Admission
    settings: Settings
    segments: SegmentPool
    coverage: Coverage
    sinks: Sinks = Sinks()

    @property
    def session(self) -> Session:
        """For the thread's own functions."""
        return self.thread.session

    def now(self) -> int:
        """The frontier's time."""
        return self.thread.session.time()


class Invitations:
    """Counts the URLs of each host that documents of other hosts named: they earn it visits."""

    def __init__(self) -> None:
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._news: Counter[str] = Counter()

    def note(self, source: str, items: Iterable[Item]) -> None:
        """What a document of `source` named. Two hosts cannot earn each other more than so much."""
        for item in items:
            if item.host != source and self._pairs[source, item.host] < MOST_INVITED:
                self._pairs[source, item.host] += 1
                self._news[item.host] += 1
        if len(self._pairs) > _MOST_PAIRS:
            self._pairs.clear()

    def take(self) -> Counter[str]:
        """What was counted since this was last asked."""
        news, self._news = self._news, Counter()
        return news


class LinkPut:
    """Puts links and items."""

    def __init__(self, context: CommitContext) -> None:
        settings = context.settings
        self._session = context.session
        self._frontier = context.frontier
        self._admission = context.admission
        self._coverage = context.coverage
        self._most = settings.seeds
        self._strategist = Strategist(
            context.session, context.frontier, context.admission, settings.strategy, not_of=[WATCH]
        )
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
            admitted = [self._admission.admit(self._coverage.without_own(each), seen) for each, _ in links]
            found = [item for items, _ in admitted for item in items]
            for (_, visit), (items_of, _) in zip(links, admitted, strict=True):
                if visit is not None:
                    self.invitations.note(visit.held.lease.host, items_of)
        with step("score"):
            found = self._strategist.scored(found, starmap(_sourced, links))
        with step("put"):
            self.put([*found, *items])
        with step("score"):
            self._strategist.keep()
        return [cut for _, cut in admitted]

    def put(self, items: Sequence[Item]) -> int:
        """Puts items as they are. Returns how many were new."""
        nearest: dict[tuple[int, str], Item] = {}
        for item in map(_waiting, items) if self._new_wait else items:
            other = nearest.get((item.crawl, item.key))
            # Of equals the last: redirects' targets come after links and are not to be visited again.
            if other is None or item.depth <= other.depth:
                nearest[item.crawl, item.key] = item
        unique, new = list(nearest.values()), 0
        for start in range(0, len(unique), PUT_BATCH):
            batch = unique[start : start + PUT_BATCH]
            new += self._frontier.put(batch).new
            self._admission.remember(batch)
        return new

    def _put_listed(self, reference: Reference) -> int:
        """The addresses of a sitemap, as many new ones as the sitemaps of its host may add to a crawl."""
        items, cut = self._admission.admit(reference)
        items = self._strategist.scored(items, [_sourced(reference, None)])
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
        self._strategist.keep()
        return cut | (LISTED if items else 0)


def _waiting(item: Item) -> Item:
    """A new URL waits for its share of the budget; what others wait for does not."""
    if item.crawl == WATCH or item.due == NEVER or kind_of(item.tags) is not None:
        return item
    return msgspec.structs.replace(item, due=WAITING)


def _sourced(reference: Reference, visit: Visit | None) -> Sourced:
    """The links with what a strategy may want to know of the page."""
    if visit is None:
        return Sourced(reference, reference.base)
    task, record, host = visit.task, visit.record, visit.held.lease.host
    if record is None:
        return Sourced(reference, task.url, task.score, host=host)
    return Sourced(reference, record.final_url, task.score, record.quads, host)
