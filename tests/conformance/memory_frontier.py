"""The frontier in memory: a small twin of the real one, for unit tests of what stands on it."""

import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from tamias.frontier.keys import hash64
from tamias.frontier.lease_filter import LeaseFilter
from tamias.model.capture import Outcome
from tamias.model.cut import BY_DEPTH, REOPENED
from tamias.model.item import NEVER, WATCH, Item, priority_class
from tamias.model.kind import kind_of
from tamias.model.lease import CrawlStats, Done, FrontierStats, Lease, Return, Task, Unreachable
from tamias.protocols import Record


class _Host(msgspec.Struct):
    key: str
    qid: int
    delay_ms: int
    not_before: int = 0
    blocked_until: int = 0
    token: int | None = None
    lease_end: int = 0
    address: str | None = None
    unreachable: dict[str, Unreachable] = msgspec.field(default_factory=dict)
    urls: dict[tuple[int, str], "_Url"] = msgspec.field(default_factory=dict)

    def due_at(self) -> int:
        return min((url.due for url in self.urls.values()), default=NEVER)

    def ready_at(self) -> int:
        if self.token is not None:
            return self.lease_end + self.delay_ms
        return max(self.not_before, self.blocked_until, self.due_at())

    def is_lent(self, now: int) -> bool:
        return self.token is not None and self.lease_end >= now


class _Url(msgspec.Struct):
    task: Task
    due: int


class MemoryFrontier:
    """Do as `PostgresFrontier` for one process and nothing beyond its life."""

    def __init__(
        self,
        *,
        delay_ms: int = 1000,
        clock: Callable[[], int] | None = None,
        lease_filter: LeaseFilter | None = None,
    ) -> None:
        self._delay_ms = delay_ms
        self._lease_filter = lease_filter or LeaseFilter()
        self._hosts: dict[str, _Host] = {}
        self._tokens = 0
        self._again: dict[int, int] = {}
        self.now: Callable[[], int] = clock or (lambda: time.time_ns() // 1_000_000)

    def put(self, items: Sequence[Item]) -> int:
        return sum(self._put(item) for item in items)

    def lease(self, hosts: int, per_host: int = 10, seconds: float = 30.0) -> list[Lease]:
        now = self.now()
        ready = [host for host in self._hosts.values() if host.ready_at() <= now and self._wanted(host, now)]
        ready.sort(key=lambda host: (-_best_class(host, now), host.ready_at()))
        leases: list[Lease] = []
        for host in ready:
            wanted = self._of_one_address(self._wanted(host, now))
            if len(leases) < hosts and not self._crowded(host, wanted[0].task.url, now):
                self._tokens += 1
                host.token, host.lease_end = self._tokens, now + int(seconds * 1000)
                host.not_before = max(host.not_before, now + self._lease_filter.round_ms)
                leases.append(_lease(host, wanted, per_host))
        return leases

    def renew(self, leases: Iterable[Lease], seconds: float = 30.0) -> list[Lease]:
        renewed = []
        for lease in leases:
            host = self._hosts[lease.host]
            if host.token == lease.token and host.lease_end >= self.now():
                host.lease_end = self.now() + int(seconds * 1000)
                renewed.append(msgspec.structs.replace(lease, ends_at=host.lease_end))
        return renewed

    def finish(self, returns: Sequence[Return], record: Record | None = None) -> frozenset[int]:
        valid = [each for each in returns if self._hosts[each.lease.host].token == each.lease.token]
        held = frozenset(each.lease.qid for each in valid)
        if record is not None:
            record(None, held)
        for each in valid:
            self._settle(each)
        return held

    def release(self, leases: Iterable[Lease]) -> None:
        self.finish([Return(lease=lease) for lease in leases])

    def resume_deferred(self) -> int:
        now = self.now()
        later = [
            (host, place)
            for host in self._hosts.values()
            for place in host.unreachable.values()
            if not place.given_up and place.next_at > now
        ]
        for host, place in later:
            for url in host.urls.values():
                url.due = now if url.due == place.next_at else url.due
            host.unreachable[place.authority] = msgspec.structs.replace(place, next_at=now)
        return len({host.key for host, _ in later})

    def sweep(self) -> int:
        return 0

    def figures(self) -> FrontierStats:
        now = self.now()
        hosts = list(self._hosts.values())
        crawls = sorted({crawl for host in hosts for crawl, _ in host.urls} | {1})
        return FrontierStats(
            now=now,
            hosts=len(hosts),
            leased=sum(host.token is not None and host.lease_end >= now for host in hosts),
            ready=sum(host.ready_at() <= now for host in hosts),
            crawls=tuple(
                _crawl(crawl, hosts, now, self._lease_filter, self._again.get(crawl, 0)) for crawl in crawls
            ),
        )

    def _wanted(self, host: _Host, now: int) -> list[_Url]:
        return [url for url in _due(host, now) if self._lease_filter.fits(url.task.crawl, url.task.tags)]

    def _of_one_address(self, urls: list[_Url]) -> list[_Url]:
        where = self._lease_filter.address_of
        return [url for url in urls if where is None or where(url.task.url) == where(urls[0].task.url)]

    def _crowded(self, host: _Host, url: str, now: int) -> bool:
        if self._lease_filter.address_of is None:
            return False
        host.address = self._lease_filter.address_of(url)
        others = [each for each in self._hosts.values() if each.address == host.address and each.is_lent(now)]
        return len(others) >= self._lease_filter.per_address

    def _put(self, item: Item) -> bool:
        host = self._hosts.setdefault(item.host, _Host(item.host, hash64(item.host), self._delay_ms))
        if (known := host.urls.get((item.crawl, item.key))) is not None:
            self._shorten(known, item)
            return False
        task = Task(
            uid=hash64(item.key),
            url=item.url,
            crawl=item.crawl,
            depth=item.depth,
            score=item.score,
            tags=item.tags,
            cut=item.cut,
        )
        host.urls[item.crawl, item.key] = _Url(task, self.now() if item.due is None else item.due)
        return True

    def _shorten(self, known: _Url, item: Item) -> None:
        """As `lower_depths` in frontier.sql."""
        task = known.task
        if item.depth >= task.depth:
            return
        score = max(task.score, item.score) if task.status is Outcome.NEW else task.score
        known.task = msgspec.structs.replace(task, depth=item.depth, score=score)
        if known.due == NEVER and task.cut & BY_DEPTH:
            self._reopen(known)

    def _reopen(self, url: _Url) -> None:
        crawl = url.task.crawl
        url.task = msgspec.structs.replace(url.task, cut=url.task.cut | REOPENED)
        url.due = self.now()
        self._again[crawl] = self._again.get(crawl, 0) + 1

    def _settle(self, each: Return) -> None:
        host = self._hosts[each.lease.host]
        by_uid = {(url.task.crawl, url.task.uid): url for url in host.urls.values()}
        for done in each.done:
            url = by_uid[done.task.crawl, done.task.uid]
            depth = url.task.depth
            url.task, url.due = _visited(done, url.task), done.due
            if done.due == NEVER and depth < done.task.depth and (done.cut is None or done.cut & BY_DEPTH):
                self._reopen(url)
        for authority in each.reached:
            host.unreachable.pop(authority, None)
        for place in each.unreachable:
            host.unreachable[place.authority] = place
            _defer(host, place)
        if each.release:
            host.token = None
            host.delay_ms = host.delay_ms if each.delay_ms is None else each.delay_ms
            if each.touched:
                host.not_before = max(host.not_before, self.now() + host.delay_ms)
            host.blocked_until = max(host.blocked_until, each.blocked_until or 0)


def _defer(host: _Host, place: Unreachable) -> None:
    """URLs of the place wait for its next try; when it is given up, what was never requested fails."""
    for url in host.urls.values():
        if not url.task.url.startswith(place.authority + "/"):
            continue
        if not place.given_up:
            url.due = max(url.due, place.next_at)
        elif url.due < NEVER and url.task.depth and url.task.crawl != WATCH and _is_new(url.task):
            url.due = NEVER
            url.task = msgspec.structs.replace(url.task, status=Outcome.FAILED)


def _is_new(task: Task) -> bool:
    return task.status is Outcome.NEW and not task.fails and kind_of(task.tags) is None


def _visited(done: Done, known: Task) -> Task:
    return msgspec.structs.replace(
        known,
        status=done.outcome,
        fails=done.fails,
        etag=done.etag,
        last_modified=done.last_modified,
        tags=known.tags if done.tags is None else done.tags,
        cut=known.cut if done.cut is None else done.cut,
    )


def _due(host: _Host, now: int) -> list[_Url]:
    return [url for url in host.urls.values() if url.due <= now]


def _best_class(host: _Host, now: int) -> int:
    return max((priority_class(url.task.score) for url in _due(host, now)), default=0)


def _lease(host: _Host, wanted: list[_Url], per_host: int) -> Lease:
    early = sorted(wanted, key=lambda url: url.due)[:20]
    best = sorted(early, key=lambda url: (-url.task.score, url.due))[:per_host]
    assert host.token is not None
    return Lease(
        host=host.key, qid=host.qid, bucket=0, token=host.token, ends_at=host.lease_end,
        delay_ms=host.delay_ms, tasks=tuple(url.task for url in best),
        unreachable=tuple(host.unreachable.values()),
    )  # fmt: skip


def _crawl(crawl: int, hosts: list[_Host], now: int, lease_filter: LeaseFilter, again: int) -> CrawlStats:
    def fits(url: _Url) -> bool:
        return url.task.crawl == crawl and (
            lease_filter.interest is None or lease_filter.interest.fits(url.task.tags)
        )

    mine = [(host, [url for url in host.urls.values() if fits(url)]) for host in hosts]
    mine = [(host, urls) for host, urls in mine if urls]
    waiting = [(host, [url for url in urls if url.due < NEVER]) for host, urls in mine]
    waiting = [(host, urls) for host, urls in waiting if urls]
    return CrawlStats(
        crawl=crawl,
        name="default" if crawl == 1 else str(crawl),
        known=sum(len(urls) for _, urls in mine),
        open=sum(len(urls) for _, urls in waiting),
        hosts=len(mine),
        leased=sum(host.token is not None and host.lease_end >= now for host, _ in waiting),
        next_at=min(
            (max(host.ready_at(), min(url.due for url in urls)) for host, urls in waiting), default=None
        ),
        next_due=min((url.due for _, urls in waiting for url in urls), default=None),
        again=again,
    )
