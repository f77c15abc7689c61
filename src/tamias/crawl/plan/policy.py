"""What a crawl was told when its seeds were named: kept with it, so that it goes on as it began."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.lease_filter import Interest, LeaseFilter
from tamias.frontier.service.state import WATCH, make_crawl
from tamias.model.errors import UsageError
from tamias.settings import Settings

CRAWL = 1
"""The crawl that has no name of its own."""
LONGEST_NAME = 255
_SQL = statements("tamias.crawl.plan", "crawl.sql")


class CrawlPolicy(msgspec.Struct, frozen=True):
    """Flags by the names of their settings, and the seeds as far as the scope needs them."""

    flags: dict[str, Any] = {}
    seeds: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    """Settings that decide what is fetched, as the latest run had them (`tamias.crawl.plan.widening`)."""


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
    """On what terms the workers of a crawl lease: its URLs, what is under watch with the first one."""
    asked = settings.frontier
    return LeaseFilter(
        crawls=(CRAWL, WATCH) if crawl in (CRAWL, WATCH) else (crawl,),
        interest=Interest(asked.require, asked.forbid) if asked.require or asked.forbid else None,
        round_ms=int(asked.round * 1000),
        per_address=asked.per_address,
    )


def read_policy(session: Session, crawl: int = CRAWL) -> CrawlPolicy:
    """What was told last."""
    return msgspec.convert(_value(session, "read_policy", {"crawl": crawl}), CrawlPolicy)


def read_policies(session: Session) -> dict[int, CrawlPolicy]:
    """Of all crawls but the archive's own, by their numbers."""
    rows = session.transact(lambda cursor: cursor.execute(_SQL["read_policies"].text).fetchall())
    return {number: msgspec.convert(policy, CrawlPolicy) for number, policy in rows if number != WATCH}


def write_policy(session: Session, policy: CrawlPolicy, crawl: int = CRAWL) -> None:
    """What holds from now on."""
    told = {"crawl": crawl, "policy": msgspec.json.encode(policy).decode()}

    def write(cursor: Cursor) -> None:
        cursor.execute(_SQL["write_policy"].text, told)

    session.transact(write)


def widened(policy: CrawlPolicy, flags: dict[str, Any], seeds: Sequence[str]) -> CrawlPolicy:
    """The policy of a crawl that gets more seeds: the flags named with them, and all seeds so far."""
    return CrawlPolicy(flags, tuple(dict.fromkeys([*policy.seeds, *seeds])), policy.options)


def count_failed(session: Session, crawl: int = CRAWL) -> int:
    """How many URLs failed for good."""
    return int(_value(session, "count_failed", {"crawl": crawl}))


def count_first_visits(session: Session, worker: int) -> int:
    """How many URLs a worker was the first to visit."""
    return int(_value(session, "count_first_visits", {"worker": str(worker)}))


def _value(session: Session, name: str, words: dict[str, Any]) -> Any:
    row = session.transact(lambda cursor: cursor.execute(_SQL[name].text, words).fetchone())
    assert row is not None
    return row[0]
