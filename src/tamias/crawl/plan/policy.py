"""The row of a crawl: every option that says what the crawl may do, and whether anybody may work on it.

`tamias crawl` writes it. Every worker of any process reads it before it leases.
"""

import math
import time
from typing import Any

import msgspec

from tamias.crawl.plan.fetch_options import address_of
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.frontier.crawls import ACTIVE, SERVED
from tamias.frontier.lease_filter import Interest, LeaseFilter
from tamias.frontier.service import make_crawl
from tamias.model.errors import ConfigError, UsageError
from tamias.model.item import WATCH
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
