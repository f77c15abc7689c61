"""The budget of a continuous crawl over a frontier in several parts: granted once, wherever it is spent."""

from contextlib import closing

import msgspec
import pytest

from tamias.crawl.plan.admit import Admission
from tamias.crawl.revisit.timetable import VisitBudget, budget_of
from tamias.database.connect import Database
from tamias.features.continuous.schedule import Continuing
from tamias.frontier.due import WAITING
from tamias.frontier.lease_filter import LeaseFilter
from tamias.frontier.postgres import PostgresFrontier
from tamias.settings import Settings

BUCKETS = 4
HOUR_MS = 3_600_000
PER_DAY = 24 * 40.0
SETTINGS = msgspec.structs.replace(
    Settings(),
    crawl=msgspec.structs.replace(Settings().crawl, continuous=True, budget=PER_DAY, new_share=0.25),
)


@pytest.fixture
def clock(tamias):
    """`clock.now` can be moved on; the frontier beside it is of four parts; `clock.waiting()` are URLs."""

    class Clock:
        now = 1_700_000_000_000

    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        session.transact(lambda cursor: cursor.execute(f"UPDATE meta SET buckets = {BUCKETS}"))
        found = Clock()
        found.session = session
        found.frontier = PostgresFrontier(session, same_url=str.__eq__, clock=lambda: found.now, delay_ms=0)
        admission = Admission(SETTINGS, ())
        items = [admission.item(f"http://h{number % 50}.example/{number}", 1, 1) for number in range(500)]
        found.frontier.put([
            msgspec.structs.replace(item, due=WAITING, score=1 - number / 1000)
            for number, item in enumerate(items)
        ])  # fmt: skip
        waiting = "SELECT bucket, url FROM url WHERE due = %s"
        found.waiting = lambda: session.transact(lambda c: c.execute(waiting, [WAITING]).fetchall())
        yield found


def leased(clock, budget):
    """The URLs that can be leased now, bucket by bucket."""
    found = []
    while leases := budget.lease(clock.frontier, 20, 10, 600.0):
        found += [(lease.bucket, task.url) for lease in leases for task in lease.tasks]
    return found


def test_new_urls_of_all_parts_are_released_the_best_first_and_an_hour_s_visits_are_spent_once(clock):
    continuing = Continuing(clock.session, clock.frontier, SETTINGS, 1, plan_ms=HOUR_MS)
    continuing.step()
    clock.now += HOUR_MS
    continuing.step()
    left = {url for _, url in clock.waiting()}
    released = [number for number in range(500) if f"http://h{number % 50}.example/{number}" not in left]
    assert 10 <= len(released) <= 40
    assert released == list(range(len(released)))
    found = leased(clock, VisitBudget(clock.session, 1, PER_DAY))
    assert sorted(url for _, url in found) == sorted(f"http://h{n % 50}.example/{n}" for n in released)
    assert len({bucket for bucket, _ in found}) == BUCKETS


def test_all_who_lease_for_a_crawl_near_and_far_share_its_budget(clock):
    admission = Admission(SETTINGS, ())
    clock.frontier.put([admission.item(f"http://g{n % 50}.example/{n}", 1, 1) for n in range(500)])
    lending = [
        budget_of(clock.session, SETTINGS, LeaseFilter(crawls=frozenset({1}))),
        budget_of(clock.session, SETTINGS, LeaseFilter(crawls=frozenset({1, 2}))),
    ]
    first = [leased(clock, each) for each in lending]
    clock.now += HOUR_MS
    second = [leased(clock, each) for each in reversed(lending)]
    made = [len(each) for each in first + second]
    assert PER_DAY / 24 <= made[0] <= PER_DAY / 24 + 10
    assert made[1] == 0
    assert made[2] + made[3] <= PER_DAY / 24 + 10
    assert made[3] == 0
