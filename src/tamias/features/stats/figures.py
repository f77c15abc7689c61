"""The corpus in figures: collections, hosts, sizes, attempts, storage, types, times and traffic.

Counts are kept by triggers, attempts of the last day in slots; nothing here reads a whole large table.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import ceil
from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session, read_buckets
from tamias.database.sql import statements
from tamias.model.capture import Outcome

_SQL = statements("tamias.features.stats", "figures.sql")

DAY_MS = 86_400_000
SLOT_MS = 300_000
GRACE_MS = 600_000
"""How long after its end a slot is counted: an attempt that takes longer may be missing in it."""
FOLD_AT = 5_000
SAMPLED_RESOURCES = 20_000
LATEST_VERSIONS = 10_000
SIZE_STEP = 1.05
SHARES = (0.10, 0.25, 0.50, 0.75, 0.85, 0.95, 0.99)

StatTable = tuple[str, list[str], list[list[Any]]]
"""The name of a table, its columns and its rows."""
Counts = dict[str, dict[str, tuple[int, int]]]
"""By kind of thing and key: how many, and their bytes."""


class Basic(msgspec.Struct, frozen=True):
    """The archive in six numbers (`stats/basic`)."""

    datasets: int
    versions: int
    hosts: int
    sources: int
    bytes: int
    """Of all versions, as they came."""
    stored_bytes: int
    """What they take on disk."""


class HostCount(msgspec.Struct, frozen=True):
    """The number of datasets of a host."""

    host: str
    datasets: int


class PortalCount(msgspec.Struct, frozen=True):
    """The number of files and datasets that a portal lists."""

    portal: str
    files: int
    datasets: int


class SizeQuantile(msgspec.Struct, frozen=True):
    """A quantile of the sizes of versions, exact to 5 %."""

    share: float
    below: int


class TypeCount(msgspec.Struct, frozen=True):
    """Versions that were found to be of one media type."""

    media_type: str
    """Empty where none was found."""
    versions: int
    bytes: int


class States(msgspec.Struct, frozen=True):
    """Datasets by state, and those due for a visit; estimates where there are very many."""

    active: int
    gone: int
    stopped: int
    due: int
    archived: int
    """Of those that are gone, the ones with a version."""
    exact: bool


class Attempts(msgspec.Struct, frozen=True):
    """Attempts of one outcome in the last day."""

    outcome: str
    attempts: int
    bytes: int
    seconds: float
    """From the request to the last byte of the response, in the mean of all attempts."""
    saving_seconds: float | None
    """To analyse and store what came, in the mean of those where something did."""


class BodyTraffic(msgspec.Struct, frozen=True):
    """Bytes of bodies that came in the last day, each second."""

    mean: float
    busiest: float
    """In the busiest five minutes."""


class Storage(msgspec.Struct, frozen=True):
    """The amount of data, and the space it takes."""

    mean_size: float
    bytes: int
    stored_bytes: int
    ratio: float | None
    blobs: int


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of an archive at one moment."""

    at: int
    basic: Basic
    hosts: tuple[HostCount, ...]
    sizes: tuple[SizeQuantile, ...]
    states: States
    attempts: tuple[Attempts, ...]
    """Of the last day, by outcome."""
    storage: Storage
    types: tuple[TypeCount, ...]
    latest_types: tuple[TypeCount, ...]
    """Of the last day; of its newest 10,000 versions, if there were more."""
    seconds: float | None
    """The response time of an attempt of the last day that brought a body, in the mean."""
    saving_seconds: float | None
    """How long it took to analyse and store what such an attempt brought, in the mean."""
    traffic: BodyTraffic


def basic_figures(session: Session) -> Basic:
    """The six numbers of `stats/basic`."""
    return session.transact(lambda cursor: _basic(_hosts(cursor, 0)[0], _tallies(cursor)))


def read_figures(session: Session, *, top: int = 10) -> Figures:
    """Return all figures, with so many hosts and types at most. A few milliseconds, whatever the size."""
    now = session.now()
    if session.fetch_all(_SQL["news"], {"most": FOLD_AT})[0][0] >= FOLD_AT:
        session.execute(_SQL["fold"])
    session.transact(lambda cursor: _count_attempts(cursor, now))
    return session.transact(lambda cursor: _figures(cursor, now, top))


def read_portals(session: Session, *, top: int = 10) -> tuple[PortalCount, ...]:
    """Return the portals that list most files. It counts all sources, so ask for it less often."""
    return tuple(PortalCount(*row) for row in session.fetch_all(_SQL["portals"], {"top": top}))


def content_tables(figures: Figures, portals: Sequence[PortalCount]) -> list[StatTable]:
    """Return the tables of what is in the archive: each its name, its columns and its rows."""
    types = [[each.media_type or "unknown", each.versions, each.bytes] for each in figures.types]
    sizes = [[f"{each.share:.0%}", each.below] for each in figures.sizes]
    return [
        ("Types", ["Type", "Versions", "Bytes"], types),
        ("Sizes", ["Share of versions", "Bytes at most"], sizes),
        ("Hosts", ["Host", "Datasets"], [[each.host, each.datasets] for each in figures.hosts]),
        ("Portals", ["Portal", "Files", "Datasets"], [[*msgspec.structs.astuple(each)] for each in portals]),
    ]


def quantiles(histogram: dict[int, int], shares: tuple[float, ...] = SHARES) -> tuple[SizeQuantile, ...]:
    """Sizes below which shares of all lie; by buckets of 5 % (bucket b: below 1.05^b - 1).

    >>> quantiles({10: 1, 100: 1}, (0.5, 0.99))
    (SizeQuantile(share=0.5, below=1), SizeQuantile(share=0.99, below=131))
    """
    buckets = sorted(histogram)
    sums = list(accumulate(histogram[bucket] for bucket in buckets))
    found = []
    for share in shares if sums and sums[-1] > 0 else ():
        place = next(bucket for bucket, upto in zip(buckets, sums, strict=True) if upto >= share * sums[-1])
        found.append(SizeQuantile(share, max(1, ceil(SIZE_STEP**place - 1))))
    return tuple(found)


def _figures(cursor: Cursor, now: int, top: int) -> Figures:
    (datasets, _), hosts = whole = _hosts(cursor, top)
    counts = _tallies(cursor)
    basic = _basic(whole[0], counts)
    sizes = {int(bucket): n for bucket, (n, _) in counts.get("size", {}).items()}
    attempts = _attempts(cursor, now)
    brought = [each for each in attempts if each.outcome == Outcome.OK.word]
    latest = {"since": now - DAY_MS, "most": LATEST_VERSIONS}
    return Figures(
        at=now,
        basic=basic,
        hosts=hosts,
        sizes=quantiles(sizes),
        states=_states(cursor, now, datasets),
        attempts=attempts,
        storage=Storage(
            mean_size=basic.bytes / basic.versions if basic.versions else 0.0,
            bytes=basic.bytes,
            stored_bytes=basic.stored_bytes,
            ratio=basic.bytes / basic.stored_bytes if basic.stored_bytes else None,
            blobs=counts.get("blob", {}).get("", (0, 0))[0],
        ),
        types=_types([(name, *pair) for name, pair in counts.get("type", {}).items()], top),
        latest_types=_types(cursor.execute(_SQL["latest_types"].text, latest).fetchall(), top),
        seconds=brought[0].seconds if brought else None,
        saving_seconds=brought[0].saving_seconds if brought else None,
        traffic=_traffic(cursor, now, attempts),
    )


def _tallies(cursor: Cursor) -> Counts:
    counts: Counts = {}
    for what, key, n, size in cursor.execute(_SQL["tallies"].text):
        counts.setdefault(what, {})[key] = (n, size)
    return counts


def _hosts(cursor: Cursor, top: int) -> tuple[tuple[int, int], tuple[HostCount, ...]]:
    """Resources and hosts, and the greatest hosts."""
    first, *rest = cursor.execute(_SQL["hosts"].text, {"top": top}).fetchall()
    return (first[1], first[2]), tuple(HostCount(host, n) for host, n, _ in rest)


def _basic(whole: tuple[int, int], counts: Counts) -> Basic:
    types = counts.get("type", {}).values()
    return Basic(
        datasets=whole[0],
        versions=sum(n for n, _ in types),
        hosts=whole[1],
        sources=counts.get("source", {}).get("", (0, 0))[0],
        bytes=sum(size for _, size in types),
        stored_bytes=counts.get("blob", {}).get("", (0, 0))[1],
    )


def _types(rows: list[tuple[Any, ...]], top: int) -> tuple[TypeCount, ...]:
    counted = sorted((TypeCount(*row) for row in rows), key=lambda each: (-each.versions, each.media_type))
    return tuple(counted[:top])


def _states(cursor: Cursor, now: int, datasets: int) -> States:
    percent = 100.0 if datasets <= SAMPLED_RESOURCES else 100.0 * SAMPLED_RESOURCES / datasets
    rows = cursor.execute(_SQL["states"].text, {"now": now, "percent": percent}).fetchall()
    seen = {state: (n, due) for state, n, due, _ in rows}
    exact = percent == 100.0
    factor = 1.0 if exact else datasets / max(1, sum(n for n, _ in seen.values()))
    n = {state: round(factor * seen.get(state, (0, 0))[0]) for state in ("active", "gone", "stopped")}
    due = sum(due for state, (_, due) in seen.items() if state != "stopped")
    archived = sum(stored for state, *_, stored in rows if state == "gone")
    due, archived = round(factor * due), round(factor * archived)
    return States(n["active"], n["gone"], n["stopped"], due, archived, exact)


def _attempts(cursor: Cursor, now: int) -> tuple[Attempts, ...]:
    day = _day(now)
    rows = cursor.execute(_SQL["attempts"].text, day).fetchall()
    for bucket in range(read_buckets(cursor)):
        values = {"bucket": bucket, "last": day["last"]}
        rows += cursor.execute(_SQL["fresh_attempts"].text, values).fetchall()
    sums: dict[int, list[int]] = {}
    for outcome, *counted in rows:
        before = sums.get(outcome, [0] * len(counted))
        sums[outcome] = [old + more for old, more in zip(before, counted, strict=True)]
    return tuple(
        Attempts(
            Outcome(outcome).word,
            n,
            size,
            duration / n / 1000,
            saving / measured / 1000 if measured else None,
        )
        for outcome, (n, size, duration, saving, measured) in sorted(sums.items())
    )


def _traffic(cursor: Cursor, now: int, attempts: tuple[Attempts, ...]) -> BodyTraffic:
    row = cursor.execute(_SQL["busiest"].text, _day(now)).fetchone()
    assert row is not None
    return BodyTraffic(sum(each.bytes for each in attempts) / (DAY_MS / 1000), row[0] / (SLOT_MS / 1000))


def _count_attempts(cursor: Cursor, now: int) -> None:
    for bucket in range(read_buckets(cursor)):
        values = {"bucket": bucket, **_day(now)}
        cursor.execute(_SQL["count_attempts"].text, values)
        cursor.execute(_SQL["forget_attempts"].text, {"bucket": bucket, "first": values["first"]})


def _day(now: int) -> dict[str, int]:
    """The first slot of a day and the last one that is counted as over."""
    return {"first": (now - DAY_MS) // SLOT_MS + 1, "last": (now - GRACE_MS) // SLOT_MS - 1}
