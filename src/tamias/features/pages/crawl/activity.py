"""Activity: attempts, hosts by what they wait for, planned visits; and the page of the frontier."""

from collections import Counter, defaultdict

from starlette.requests import Request

from tamias.archive.moments import rfc3339
from tamias.cli.console.options import queue_units
from tamias.features.pages.html.page import page, table_of
from tamias.features.pages.queries import (
    Record,
    records,
    records_of_buckets,
    rows,
    rows_of_buckets,
)
from tamias.features.service.api.frontier import crawl_states
from tamias.features.service.api.tags import count_tags
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
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
_STATES = ("hosts", "blocked", "fetching", "ready", "polite", "idle")


def time_slot(at: int, attempts: Counter[int]) -> Record:
    """Return the attempts of a time by how they ended: gone and skipped are neither fine nor trouble."""
    fine = attempts[Outcome.OK] + attempts[Outcome.UNCHANGED]
    trouble = attempts[Outcome.REFUSED] + attempts[Outcome.FAILED]
    other = attempts.total() - fine - trouble
    return {"at": rfc3339(at), "fine": fine, "other": other, "trouble": trouble}


def rates(db: ServiceSession) -> Record:
    """Attempts of the last day by quarter of an hour, and how many there are a second in the last minute."""
    now = db.session.now()
    first = now // SLOT_MS - SLOTS_SHOWN * _QUARTER + 1
    fresh = rows_of_buckets(db, "fresh_attempts", first=first, minute=now - 60_000)
    quarters: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for slot, outcome, n, *_ in [*rows(db, "attempts", first=first), *fresh]:
        quarters[(slot - first) // _QUARTER][outcome] += n
    return {
        "per_second": sum(row[3] for row in fresh) / 60,
        "bytes_per_second": sum(row[4] for row in fresh) / 60,
        "day": [
            time_slot((first + place * _QUARTER) * SLOT_MS, quarters[place]) for place in range(SLOTS_SHOWN)
        ],
    }


def waiting(db: ServiceSession) -> Record:
    """Count hosts, each by the one thing it waits for; those that have nothing left to do are idle."""
    found = rows_of_buckets(db, "readiness", now=db.session.now())
    counts = {name: sum(each) for name, each in zip(_STATES, zip(*found, strict=True), strict=True)}
    return {**counts, "unit": queue_units(db.settings.frontier.queue).capitalize()}


def daily(db: ServiceSession) -> list[Record]:
    """New versions of the last days, also of days without any."""
    today = db.session.now() // DAY_MS
    since = (today - DAYS + 1) * DAY_MS
    found = dict(rows(db, "daily", since=since, most=MOST_VERSIONS))
    cut = sum(found.values()) >= MOST_VERSIONS  # the oldest of them is not a whole day
    days = range(min(found) + 1 if cut else today - DAYS + 1, today + 1)
    return [{"day": rfc3339(day * DAY_MS)[:10], "versions": found.get(day, 0)} for day in days]


def planned(db: ServiceSession, datasets: int) -> list[int]:
    """Visits due in each of the next hours; an estimate where there are very many datasets."""
    percent = 100.0 if datasets <= SAMPLED_RESOURCES else 100.0 * SAMPLED_RESOURCES / datasets
    found = dict(rows(db, "planned", now=db.session.now(), percent=percent, hours=HOURS))
    return [round(found.get(hour, 0) * 100 / percent) for hour in range(HOURS)]


def attention(db: ServiceSession) -> list[Record]:
    """Return datasets whose latest visits failed."""
    return records(db, "attention", limit=MOST_INTROUBLE)


def troubles(db: ServiceSession) -> list[Record]:
    """Return hosts with failed attempts among the newest."""
    found = records_of_buckets(db, "troubles", most=LATEST_ATTEMPTS)
    return sorted(found, key=lambda each: (-each["urls"], each["host"]))[:10]


MOST_QUEUES = 100
MOST_BLOCKS = 100
MOST_TAGS = 50
_SECONDS = 3.0


@page(
    "/frontier",
    "frontier.html",
    table=table_of("queues", "host", "crawl", "known", "open", "state", "ready_at", "delay_seconds", "tags"),
)
async def frontier(_: Request, service: Service) -> Record:
    """The frontier as it was a moment ago."""
    return await service.lately("frontier", _SECONDS, _frontier)


def _frontier(db: ServiceSession) -> Record:
    now = db.session.now()
    queues = records_of_buckets(db, "queues", now=now, limit=MOST_QUEUES)
    return {
        "waiting": waiting(db),
        "crawls": crawl_states(db),
        "queues": sorted(queues, key=lambda each: -each["open"])[:MOST_QUEUES],
        "blocks": list(records_of_buckets(db, "blocks", now=now, limit=MOST_BLOCKS)),
        "lists": records(db, "lists"),
        "tags": count_tags(db)[:MOST_TAGS],
        "troubles": troubles(db),
    }
