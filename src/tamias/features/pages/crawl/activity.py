"""Activity: attempts of the last day, hosts by what they wait for, new versions, planned visits."""

import msgspec

from tamias.archive.moments import of_row, rfc3339
from tamias.features.pages.queries import rows, rows_of_buckets
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.stats.figures import DAY_MS, SAMPLED_RESOURCES, SLOT_MS
from tamias.model.capture import Outcome

DAYS = 30
HOURS = 48
SLOTS_SHOWN = 96
"""Of a quarter of an hour each."""
_QUARTER = 3
MOST_VERSIONS = 400_000
LATEST_ATTEMPTS = 5_000
MOST_INTROUBLE = 20
FINE = (Outcome.OK, Outcome.UNCHANGED)
TROUBLE = (Outcome.REFUSED, Outcome.FAILED)


class TimeSlot(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts of a short time, such as a quarter of an hour."""

    at: str
    fine: int
    """That brought a body, or word that it is the same."""
    other: int
    """Gone, skipped."""
    trouble: int
    """Refused, failed."""


class AttemptRates(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts now and in the last day."""

    per_second: float
    """In the last minute."""
    bytes_per_second: float
    day: list[TimeSlot]


class HostStates(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts by what they wait for."""

    hosts: int
    fetching: int
    """A worker holds them."""
    blocked: int
    """Left in peace for a time."""
    ready: int
    """Could be asked at once."""
    polite: int
    """Something is due later, or the pause between two requests is not over."""

    @property
    def idle(self) -> int:
        """Return how many hosts have nothing left to do."""
        return max(0, self.hosts - self.fetching - self.blocked - self.ready - self.polite)


class Daily(msgspec.Struct, frozen=True):
    """New versions of a day."""

    day: str
    versions: int


class HostTrouble(msgspec.Struct, frozen=True):
    """A host with URLs whose latest attempt was refused or failed."""

    host: str
    urls: int
    last: str
    reason: str


class DatasetTrouble(msgspec.Struct, frozen=True):
    """A watched resource whose latest visit brought nothing."""

    resource: str
    url: str
    title: str | None
    state: str
    last: str | None
    fails: int
    """Visits in a row without a usable answer."""
    trouble: str


def stack(value: TimeSlot | Daily | int) -> tuple[int, ...]:
    """Return the parts of a column of a chart."""
    match value:
        case TimeSlot():
            return value.fine, value.other, value.trouble
        case Daily():
            return (value.versions,)
        case _:
            return (value,)


def hover(value: TimeSlot | Daily) -> str:
    """Return the text of a column when it is pointed at."""
    if isinstance(value, Daily):
        return f"{value.day}: {value.versions}"
    when = f"{value.at[:10]} {value.at[11:19]}"
    return f"{when}: {value.fine} succeeded, {value.other} gone or skipped, {value.trouble} failed or refused"


def rates(db: ServiceSession) -> AttemptRates:
    """Attempts by quarter of an hour; the last minute by itself."""
    now = db.session.now()
    last = now // SLOT_MS
    first = last - SLOTS_SHOWN * _QUARTER + 1
    counts: dict[tuple[int, int], int] = {}
    minute = [0, 0]
    for slot, outcome, n in rows(db, "attempts", first=first):
        counts[slot, outcome] = counts.get((slot, outcome), 0) + n
    for slot, outcome, n, in_minute, octets in _fresh(db, now, first):
        counts[slot, outcome] = counts.get((slot, outcome), 0) + n
        minute = [minute[0] + in_minute, minute[1] + octets]
    quarters = [_quarter(counts, start) for start in range(first, last + 1, _QUARTER)]
    return AttemptRates(per_second=minute[0] / 60, bytes_per_second=minute[1] / 60, day=quarters)


def waiting(db: ServiceSession) -> HostStates:
    """Count hosts by what they wait for."""
    found = rows_of_buckets(db, "readiness", now=db.session.now())
    hosts, fetching, blocked, ready, polite = (sum(each) for each in zip(*found, strict=True))
    return HostStates(hosts=hosts, fetching=fetching, blocked=blocked, ready=ready, polite=polite)


def daily(db: ServiceSession) -> list[Daily]:
    """New versions of the last days, also of days without any."""
    today = db.session.now() // DAY_MS
    since = (today - DAYS + 1) * DAY_MS
    found = dict(rows(db, "daily", since=since, most=MOST_VERSIONS))
    cut = sum(found.values()) >= MOST_VERSIONS  # the oldest of them is not a whole day
    days = range(min(found) + 1 if cut else today - DAYS + 1, today + 1)
    return [Daily(rfc3339(day * DAY_MS)[:10], found.get(day, 0)) for day in days]


def planned(db: ServiceSession, datasets: int) -> list[int]:
    """Visits due in each of the next hours; an estimate where there are very many datasets."""
    percent = 100.0 if datasets <= SAMPLED_RESOURCES else 100.0 * SAMPLED_RESOURCES / datasets
    values = {"now": db.session.now(), "percent": percent, "hours": HOURS}
    found = dict(rows(db, "planned", **values))
    return [round(found.get(hour, 0) * 100 / percent) for hour in range(HOURS)]


def attention(db: ServiceSession) -> list[DatasetTrouble]:
    """Return datasets whose latest visits failed."""
    return [of_row(DatasetTrouble, row) for row in rows(db, "attention", limit=MOST_INTROUBLE)]


def troubles(db: ServiceSession) -> list[HostTrouble]:
    """Return hosts with failed attempts among the newest."""
    found = rows_of_buckets(db, "troubles", most=LATEST_ATTEMPTS)
    hosts = [of_row(HostTrouble, row) for row in found]
    return sorted(hosts, key=lambda each: (-each.urls, each.host))[:10]


def _fresh(db: ServiceSession, now: int, first: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for bucket in range(db.frontier.buckets):
        [(counted,)] = rows(db, "counted_until", bucket=bucket)
        values = {"bucket": bucket, "slot": max(first, counted + 1), "minute": now - 60_000}
        found += rows(db, "fresh_attempts", **values)
    return found


def _quarter(counts: dict[tuple[int, int], int], start: int) -> TimeSlot:
    def total(outcomes: tuple[Outcome, ...]) -> int:
        slots = range(start, start + _QUARTER)
        return sum(counts.get((slot, outcome), 0) for slot in slots for outcome in outcomes)

    every = total(tuple(Outcome))
    fine, trouble = total(FINE), total(TROUBLE)
    return TimeSlot(at=rfc3339(start * SLOT_MS), fine=fine, trouble=trouble, other=every - fine - trouble)
