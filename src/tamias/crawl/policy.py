"""What a crawl was told when its seeds were named: kept with it, so that it goes on as it began."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

CRAWL = 1
_SQL = statements("tamias.crawl", "crawl.sql")


class Policy(msgspec.Struct, frozen=True):
    """Flags by the names of their settings, and the seeds as far as the scope needs them."""

    flags: dict[str, Any] = {}
    seeds: tuple[str, ...] = ()


def read_policy(session: Session) -> Policy:
    """What was told last."""
    return msgspec.convert(_value(session, "read_policy", {"crawl": CRAWL}), Policy)


def write_policy(session: Session, policy: Policy) -> None:
    """What holds from now on."""
    told = {"crawl": CRAWL, "policy": msgspec.json.encode(policy).decode()}

    def write(cursor: Cursor) -> None:
        cursor.execute(_SQL["write_policy"].text, told)

    session.transact(write)


def widened(policy: Policy, flags: dict[str, Any], seeds: Sequence[str]) -> Policy:
    """The policy of a crawl that gets more seeds: the flags named with them, and all seeds so far."""
    return Policy(flags, tuple(dict.fromkeys([*policy.seeds, *seeds])))


def count_failed(session: Session) -> int:
    """How many URLs failed for good."""
    return int(_value(session, "count_failed", {"crawl": CRAWL}))


def count_first_visits(session: Session, worker: int) -> int:
    """How many URLs a worker was the first to visit."""
    return int(_value(session, "count_first_visits", {"worker": str(worker)}))


def _value(session: Session, name: str, words: dict[str, Any]) -> Any:
    row = session.transact(lambda cursor: cursor.execute(_SQL[name].text, words).fetchone())
    assert row is not None
    return row[0]
