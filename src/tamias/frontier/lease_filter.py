"""The terms of leases: which crawls, which interest, which part, how often."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tamias.database.columns import Longs, Texts
from tamias.database.connect import Cursor
from tamias.frontier.queries import done_by, rows_of
from tamias.model.errors import UsageError
from tamias.model.kind import CONTEXT, PROBE, ROBOTS, kind_tag
from tamias.model.lease import Lease

NEEDED = frozenset({kind_tag(CONTEXT), kind_tag(ROBOTS)})
"""What documents and hosts wait for is lent whatever the interest."""
_SECTION = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_NO_MATTER = frozenset({kind_tag(PROBE)})
"""Tags that nobody has an interest in; they make no lane, since almost every host has such a URL."""
_LATER_MS = 500
"""After so long, a host whose address had too many others lent is looked at again."""


class Interest(msgspec.Struct, frozen=True):
    """The URLs that a client wants, by their tags."""

    require: tuple[str, ...] = ()
    """All of these."""
    forbid: tuple[str, ...] = ()
    """None of these."""

    def fits(self, tags: Iterable[str]) -> bool:
        """Return whether a URL with these tags is wanted.

        >>> Interest(("sitemap",), ("adult",)).fits(("sitemap", "at"))
        True
        """
        there = set(tags)
        return (there.issuperset(self.require) or not NEEDED.isdisjoint(there)) and there.isdisjoint(
            self.forbid
        )


class LeaseFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts that a frontier leases; by default all, as soon as their delay is over."""

    crawls: tuple[int, ...] | None = None
    """Only these crawls; None is all."""
    interest: Interest | None = None
    section: tuple[int, int] | None = None
    """Only hosts of these buckets, both ends included."""
    round_ms: int = 0
    """Least time from one lease of a host to the next."""
    per_address: int = 0
    """Most hosts of one address lent at once; 0 is no cap."""
    address_of: Callable[[str], str] | None = None
    """Gives the address of a URL's host where that has a cap."""

    def fits(self, crawl: int, tags: Iterable[str]) -> bool:
        """Return whether a URL may be lent at all."""
        if self.crawls is not None and crawl not in self.crawls:
            return False
        return self.interest is None or self.interest.fits(tags)


def lane_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """The set that decides the lane of a URL.

    >>> lane_tags(("b", "a", "b", "kind=probe"))
    ('a', 'b')
    """
    return tuple(sorted(set(tags) - _NO_MATTER))


def buckets_of(section: tuple[int, int] | None, buckets: int) -> range:
    """The buckets of a section. Raises `UsageError` where it is not a part of the frontier."""
    if section is None:
        return range(buckets)
    first, last = section
    if not 0 <= first <= last < buckets:
        raise UsageError(f"no buckets {first}-{last}: it has {buckets}, from 0 on (setting frontier.buckets)")
    return range(first, last + 1)


def parse_section(text: str) -> tuple[int, int]:
    """A section as users write it.

    >>> parse_section("0-7"), parse_section("3")
    ((0, 7), (3, 3))
    """
    found = _SECTION.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text}' is not a range of buckets; write it as 0-7")
    return int(found[1]), int(found[2] or found[1])


def of_one_address(lease: Lease, address_of: Callable[[str], str]) -> tuple[Lease, str]:
    """Return a lease with the tasks that share the address of its first, and that address."""
    places = [address_of(task.url) for task in lease.tasks]
    near = tuple(task for task, place in zip(lease.tasks, places, strict=True) if place == places[0])
    return msgspec.structs.replace(lease, tasks=near), places[0] if places else ""


def thin(buckets: int, now: int, found: list[tuple[Lease, str]], cap: int, cursor: Cursor) -> list[Lease]:
    """Return the hosts, just lent in one bucket, that their addresses bear; the others wait a little."""
    rows_of(cursor, "one_lease_at_a_time", {})
    mine: dict[str, Any] = {
        "bucket": found[0][0].bucket,
        "token": found[0][0].token,
        "qid": Longs([lease.qid for lease, _ in found]),
        "address": Texts([address for _, address in found]),
        "now": now,
    }
    done_by(cursor, "write_addresses", mine)
    lent = _lent(cursor, buckets, {**mine, "address": sorted({address for _, address in found})})
    too_many = set()
    for lease, address in found:
        lent[address] += 1
        if lent[address] > cap:
            too_many.add(lease.qid)
    if too_many:
        done_by(cursor, "put_back", {**mine, "qid": sorted(too_many), "later": now + _LATER_MS})
    return [lease for lease, _ in found if lease.qid not in too_many]


def _lent(cursor: Cursor, buckets: int, query: dict[str, Any]) -> Counter[str]:
    """Return how many hosts of addresses others have, in all buckets."""
    lent: Counter[str] = Counter()
    for bucket in range(buckets):
        lent.update(dict(rows_of(cursor, "count_lent", {**query, "bucket": bucket})))
    return lent
