"""The row of a crawl: every option that says what the crawl may do, and whether anybody may work on it.

`tamias crawl` writes it. Every worker of any process reads it before it leases. The limit on the URLs of a
run is one for all workers, near and far: a URL is taken from it when it is leased, and given back if its
visit comes to nothing.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

import msgspec

from tamias.crawl.plan.fetch_options import address_of
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.crawls import ACTIVE, SERVED
from tamias.frontier.lease_filter import Interest, LeaseFilter
from tamias.frontier.service import make_crawl
from tamias.model.errors import ConfigError, UsageError
from tamias.model.item import WATCH
from tamias.model.kind import AUXILIARY, kind_of
from tamias.model.lease import Lease, Task
from tamias.settings import Settings, all_settings, feature_tables

CRAWL = 1
"""The crawl that has no name of its own."""
LONGEST_NAME = 255
MACHINE = frozenset({
    *("archive", "serve"),
    *("crawl.workers", "crawl.room", "fetch.concurrency", "fetch.credentials"),
    *("fetch.proxy", "fetch.proxy_login", "fetch.proxy_resolves"),
    *("frontier.buckets", "frontier.lease", "frontier.known_links", "frontier.buffer"),
    *("sandbox.use", "sandbox.processes", "filters.blocklist_cache"),
})  # fmt: skip
"""Tables and settings that belong to the machine of a worker, not to the crawl."""
RUN = {"crawl.max_urls", "crawl.max_time", "crawl.max_wait"}
"""Settings of the crawl that a later run does not inherit."""
_SQL = statements("tamias.crawl.plan", "crawl.sql")

Options = dict[str, Any]
"""Settings by their full names."""


class CrawlPolicy(msgspec.Struct, frozen=True):
    """Options of a crawl."""

    flags: dict[str, Any] = {}
    """What users named on the command line, as `fetch__delay`: it comes before files and the environment."""
    seeds: tuple[str, ...] = ()
    """The seeds as far as the scope needs them."""
    options: Options = {}
    """All settings of the crawl as the latest run had them."""
    before: Options = {}
    """Settings that the latest run widened, as long as what they had kept out is not open again."""
    in_service: bool = False
    """Whether `tamias serve` works on it."""

    def values(self) -> Options:
        """Return all settings that the row holds. One of an earlier version may hold some as flags only."""
        return self.options | {key.replace("__", "."): value for key, value in self.flags.items()}

    def settings(self, own: Settings) -> Settings:
        """Return the settings of a worker: its own for its machine, those of the row for the crawl."""
        tags = own.frontier.require, own.frontier.forbid
        settings = overlay(own, options_of(overlay(own, self.values())))
        frontier = msgspec.structs.replace(
            settings.frontier,
            require=tuple(dict.fromkeys([*settings.frontier.require, *tags[0]])),
            forbid=tuple(dict.fromkeys([*settings.frontier.forbid, *tags[1]])),
        )
        return msgspec.structs.replace(settings, frontier=frontier)


class CrawlRow:
    """The row of a crawl as one process reads it, again and again."""

    def __init__(self, session: Session, crawl: int) -> None:
        self._session = session
        self._crawl = crawl
        self._digest, self.state = self._mark()
        self.policy, self.run = read_run(session, crawl)
        self._ends = time.monotonic() + (self.policy.options.get("crawl.max_time") or math.inf)

    def has_changed(self) -> bool:
        """Read the state again; return whether the options are no longer those of `policy`."""
        digest, self.state = self._mark()
        return digest != self._digest

    def settings(self, own: Settings, *, bounded: bool) -> Settings:
        """Return the settings that hold for workers with these settings of their own.

        Raises `ConfigError` if they are `bounded` by their own, and only the crawl allows private addresses.
        """
        settings = self.policy.settings(own)
        if bounded:
            check_bounds(settings, own)
        return settings

    def near(self, settings: Settings) -> tuple[str, ...]:
        """Return the seeds that the crawl must stay near to."""
        return () if settings.filters.scope == "any" else self.policy.seeds

    @property
    def is_active(self) -> bool:
        """Return whether others than the run that its user started may work on it now."""
        return self.state in (ACTIVE, SERVED) and time.monotonic() < self._ends

    def _mark(self) -> tuple[str, str]:
        return _row(self._session, "read_mark", {"crawl": self._crawl}) or ("", "deleted")


def crawl_of(session: Session, name: str | None) -> int:
    """The number of a crawl by its name, made where there is none. `UsageError` for what is no name."""
    if name is None:
        return CRAWL
    if not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        raise UsageError(f"the name of a crawl has 1 to {LONGEST_NAME} characters, all of them printable")
    named = make_crawl(session, name)
    if named.crawl == WATCH:
        raise UsageError("the crawl 'watch' is the archive's own: 'tamias add' adds resources to it")
    if named.own_politeness:
        raise UsageError(
            f"the crawl '{name}' belongs to clients of the frontier and has a politeness of its own; "
            "choose another name, or let 'tamias frontier --shared-politeness' make the crawl"
        )
    return named.crawl


def terms_of(settings: Settings, crawl: int = CRAWL) -> LeaseFilter:
    """Return the terms on which the workers of a crawl lease."""
    wanted = settings.frontier
    return LeaseFilter(
        crawls=(crawl,),
        interest=Interest(wanted.require, wanted.forbid) if wanted.require or wanted.forbid else None,
        round_ms=int(wanted.round * 1000),
        per_address=wanted.per_address,
        address_of=address_of(settings) if wanted.per_address else None,
    )


def overlay(settings: Settings, values: Options) -> Settings:
    """Return the settings with some values replaced. Names that no setting has are ignored."""
    tables: dict[str, Options] = {}
    for key, value in values.items():
        table, _, name = key.partition(".")
        if hasattr(getattr(settings, table, None), name):
            tables.setdefault(table, msgspec.structs.asdict(getattr(settings, table)))[name] = value
    changed = {name: msgspec.convert(new, type(getattr(settings, name))) for name, new in tables.items()}
    return msgspec.structs.replace(settings, **changed)


def check_bounds(settings: Settings, own: Settings) -> None:
    """Raise `ConfigError` if a crawl allows private addresses and the worker itself does not."""
    if settings.permit.allow_private and not own.permit.allow_private:
        raise ConfigError(
            "the crawl may send requests to private addresses; those that this worker can reach are yours: "
            "use --allow-private to allow it"
        )


def options_of(settings: Settings) -> Options:
    """Return all settings that belong to a crawl."""
    return {
        each.key: settings.value(each)
        for each in all_settings()
        if not MACHINE.intersection((each.table, each.key)) and each.table not in feature_tables()
    }


def read_policy(session: Session, crawl: int = CRAWL) -> CrawlPolicy:
    """Return what the row says; nothing if there is no such crawl."""
    return read_run(session, crawl)[0]


def read_run(session: Session, crawl: int) -> tuple[CrawlPolicy, int]:
    """Return what the row says, and how often its user has let it go on."""
    policy, run = _row(session, "read_policy", {"crawl": crawl}) or ({}, 0)
    return msgspec.convert(policy, CrawlPolicy), run


def write_policy(session: Session, policy: CrawlPolicy, crawl: int = CRAWL) -> None:
    """Write what holds from now on, in every process."""
    new = {"crawl": crawl, "policy": msgspec.json.encode(policy).decode()}
    session.transact(lambda cursor: cursor.execute(_SQL["write_policy"].text, new))


def handed_over(session: Session, buckets: int) -> frozenset[int]:
    """Return the crawls that `tamias serve` is to work on and that have URLs left to visit."""
    rows = session.transact(lambda cursor: cursor.execute(_SQL["handed_over"].text).fetchall())
    return frozenset(crawl for (crawl,) in rows if _has_open(session, crawl, buckets))


def count_failed(session: Session, crawl: int = CRAWL) -> int:
    """Return how many URLs failed for good."""
    return _value(session, "count_failed", {"crawl": crawl})


def has_page(session: Session, crawl: int, since: int) -> bool:
    """Return whether a crawl has read an HTML page since a time."""
    return _value(session, "has_page", {"crawl": crawl, "since": since}) > 0


def count_first_visits(session: Session, worker: int) -> int:
    """Return how many URLs a worker was the first to visit."""
    return _value(session, "count_first_visits", {"worker": str(worker)})


def _has_open(session: Session, crawl: int, buckets: int) -> bool:
    places = [("has_open", {"bucket": each, "crawl": crawl}) for each in range(buckets)]
    return any(_value(session, *place) for place in [*places, ("has_inserted", {"crawl": crawl})])


def _value(session: Session, name: str, words: dict[str, Any]) -> int:
    return int(_row(session, name, words)[0])


def _row(session: Session, name: str, words: dict[str, Any]) -> Any:
    return session.transact(lambda cursor: cursor.execute(_SQL[name].text, words).fetchone())


class RunShare(msgspec.Struct, frozen=True):
    """Share of a worker in a run."""

    session: Session
    crawl: int
    run: int
    worker: int

    def change(self, most: int, wanted: Callable[[int, int], int]) -> tuple[int, int]:
        """Change what the worker has taken, by a function of that and of what is left.

        Returns by how much it changed, and what is left then. Nothing changes once a later run has begun.
        """

        def work(cursor: Cursor) -> tuple[int, int]:
            cursor.execute(_SQL["make_shares"].text, {"crawl": self.crawl})
            row = cursor.execute(_SQL["lock_shares"].text, {"crawl": self.crawl}).fetchone()
            assert row is not None
            if row[0] > self.run:
                return 0, 0
            shares: dict[str, int] = row[1] if row[0] == self.run else {}
            left, before = most - sum(shares.values()), shares.get(str(self.worker), 0)
            change = max(wanted(before, left), -before)
            if change:
                text = msgspec.json.encode({**shares, str(self.worker): before + change}).decode()
                new = {"crawl": self.crawl, "run": self.run, "shares": text}
                cursor.execute(_SQL["write_shares"].text, new)
            return change, left - change

        return self.session.transact(work)


class RunLimit:
    """Leases no more than may be visited. One for each process."""

    def __init__(
        self,
        share: RunShare | None = None,
        most: int | None = None,
        may_lease: Callable[[], bool] = lambda: True,
    ) -> None:
        """Limit the run to `most` URLs (None: no limit); `may_lease` tells if the crawl goes on."""
        self._share = share if most is not None else None
        self._most = most or 0
        self._may_lease = may_lease
        self._returned: deque[None] = deque()
        self._is_used_up = False
        self.may_visit = True
        """Whether the crawl went on when that was last looked at."""

    @property
    def used_up(self) -> bool:
        """Return whether no visit may begin any more. May be read in any thread."""
        return self._is_used_up and not self._returned

    def lease(
        self,
        lend: Callable[[int, int], list[Lease]],
        release: Callable[[Iterable[Lease]], None],
        hosts: int,
        per_host: int,
    ) -> list[Lease]:
        """Lease at most so many hosts, with no more URLs than may be visited."""
        self.may_visit = self._may_lease()
        if self._share is None or not self.may_visit:
            return lend(hosts, per_host) if self.may_visit else []
        left = self._give_back_all(self._share)
        self._is_used_up = left <= 0
        found = lend(min(hosts, left), min(per_host, left)) if left > 0 else []
        wanted = sum(counts(task) for lease in found for task in lease.tasks)
        paid, _ = self._share.change(self._most, lambda _, left: max(0, min(wanted, left)))
        leases: list[Lease] = []
        for lease in found:
            unpaid = [index for index, task in enumerate(lease.tasks) if counts(task)][paid:]
            tasks = lease.tasks[: unpaid[0]] if unpaid else lease.tasks
            paid -= sum(map(counts, tasks))
            leases.append(msgspec.structs.replace(lease, tasks=tasks))
        release([lease for lease in leases if not lease.tasks])
        return [lease for lease in leases if lease.tasks]

    def give_back(self, task: Task) -> None:
        """Note that the visit of a leased URL came to nothing. May be called in any thread."""
        if self._share is not None and counts(task):
            self._returned.append(None)

    def close(self) -> None:
        """Let others have what was not visited."""
        if self._share is not None:
            self._give_back_all(self._share)

    def _give_back_all(self, share: RunShare) -> int:
        """Return what is left of the limit then."""
        count = sum(1 for _ in range(len(self._returned)) if self._returned.pop() is None)
        return share.change(self._most, lambda _taken, _left: -count)[1]


def counts(task: Task) -> bool:
    """Return whether a visit counts. A repeated attempt does not: its URL has been counted."""
    return task.fails == 0 and not task.reopened and kind_of(task.tags) not in AUXILIARY


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
