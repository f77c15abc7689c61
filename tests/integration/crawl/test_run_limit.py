"""A limit on URLs: exact, however often one of them has to be tried, and one for all workers of a run."""

from contextlib import closing

import pytest

from tamias.crawl.plan.policy import RunLimit, RunShare
from tamias.model.lease import Lease, Task

FIRST, SECOND = 1, 2
"""Two workers."""


@pytest.fixture
def session(clean_database):
    with closing(clean_database.session()) as session:
        session.transact(lambda cursor: cursor.execute("DELETE FROM visit_share"))
        yield session


def task(uid=1, fails=0):
    return Task(uid=uid, url=f"http://example.org/{uid}", crawl=1, depth=0, score=1.0, fails=fails)


def lent(hosts, per_host, fails=0):
    return [
        Lease(bucket=0, qid=host, token=1, host="h", ends_at=0, delay_ms=0, tasks=tuple(
            task(host * 100 + uid, fails) for uid in range(per_host)))
        for host in range(hosts)
    ]  # fmt: skip


def limit_of(session, run, most, worker):
    return RunLimit(RunShare(session, 1, run, worker), most)


def leased(limit, hosts=1, per_host=10, fails=0):
    """How many URLs are leased, and how many hosts are given back at once."""
    released = []
    found = limit.lease(lambda *most: lent(*most, fails=fails), released.extend, hosts, per_host)
    return sum(len(lease.tasks) for lease in found), len(released)


def test_no_limit_is_never_used_up(session):
    free = RunLimit()
    assert [leased(free, 10) for _ in range(3)] == [(100, 0)] * 3
    assert not free.used_up


@pytest.mark.parametrize("urls", [1, 5, 25])
def test_all_workers_together_lease_as_many_as_the_run_may_visit(session, urls):
    limits = [limit_of(session, 1, urls, worker) for worker in (FIRST, SECOND)]
    found = [leased(limit)[0] for _ in range(3) for limit in limits]
    assert (sum(found), [limit.used_up for limit in limits]) == (urls, [True, True])


def test_a_repeated_attempt_is_free_while_anything_is_allowed(session):
    limit = limit_of(session, 1, 1, FIRST)
    assert [leased(limit, fails=1)[0] for _ in range(2)] == [1, 1]
    assert [leased(limit)[0], leased(limit, fails=1)[0]] == [1, 0]


def test_a_visit_that_came_to_nothing_is_left_for_others(session):
    first, second = (limit_of(session, 1, 1, worker) for worker in (FIRST, SECOND))
    assert (leased(first)[0], leased(second)[0]) == (1, 0)
    first.give_back(task())
    assert not first.used_up
    first.close()
    assert (leased(first)[0], leased(second)[0]) == (1, 0)


def test_what_a_dead_worker_did_not_visit_is_left_for_others(session):
    first, second = (limit_of(session, 1, 10, worker) for worker in (FIRST, SECOND))
    assert leased(first)[0] == 10
    RunShare(session, 1, 1, FIRST).change(10, lambda taken, _left: min(0, 4 - taken))
    assert leased(second)[0] == 6


def test_the_next_run_begins_anew_and_nobody_takes_for_the_run_before(session):
    before, after = (limit_of(session, run, 3, FIRST) for run in (1, 2))
    assert leased(before)[0] == 3
    assert leased(after)[0] == 3
    before.give_back(task())
    before.close()
    assert (leased(before)[0], leased(after)[0]) == (0, 0)
