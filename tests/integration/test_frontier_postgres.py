"""What only the real frontier can get wrong: hashes, locks, wake-ups, dead workers."""

import threading
import time
from contextlib import ExitStack, closing

import pytest

from tamias.frontier import put
from tamias.frontier.keys import hash64
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Return


@pytest.fixture
def make(clean_database):
    """`make(**options)` is another frontier on the same tables."""
    with ExitStack() as sessions:

        def another(**options):
            session = sessions.enter_context(closing(clean_database.session()))
            return PostgresFrontier(session, **({"same_url": str.__eq__, "delay_ms": 0} | options))

        yield another


def exact():
    """A clock for tests that stop at the first lease of nothing.

    By the session's own, a host that is released is ready some milliseconds later: as many as the session
    may be wrong about the database's time.
    """
    return time.time_ns() // 1_000_000


def items(count, host="a"):
    return [Item(url=f"http://{host}/{n}", key=f"http://{host}/{n}", host=host) for n in range(count)]


def finish(frontier, lease):
    done = tuple(Done(task=task, outcome=Outcome.OK, due=NEVER) for task in lease.tasks)
    return frontier.finish([Return(lease=lease, done=done)])


def test_urls_whose_hashes_collide_are_all_kept_and_all_finished(make, monkeypatch):
    plain = {item.key for item in items(60)}
    monkeypatch.setattr(put, "hash64", lambda key: sum(key.encode()) % 3 if key in plain else hash64(key))
    frontier = make(clock=exact)
    first = frontier.put(items(60))
    second = frontier.put(items(60))
    assert (first, second) == (60, 0)
    seen = set()
    while leases := frontier.lease(1, per_host=7):
        seen.update(task.url for task in leases[0].tasks)
        finish(frontier, leases[0])
    assert seen == {item.url for item in items(60)}


def test_another_spelling_of_a_known_url_is_not_a_collision(make):
    frontier = make(same_url=lambda a, b: a.lower() == b.lower())
    frontier.put([Item(url="http://a/x", key="k", host="a")])
    assert frontier.put([Item(url="http://a/X", key="k", host="a")]) == 0
    assert len(frontier.lease(1)[0].tasks) == 1


def test_a_put_finds_out_that_its_queue_was_deleted(make, clean_database):
    frontier = make()
    frontier.put(items(3))
    with closing(clean_database.session()) as session:
        session.transact(lambda cursor: cursor.execute("DELETE FROM url"))
        session.transact(lambda cursor: cursor.execute("DELETE FROM queue"))
    assert frontier.put(items(5)) == 5


def test_a_put_during_a_finish_wakes_the_host(make, clean_database):
    """The finish computes the queue's next due time while the put is not yet committed."""
    giver, taker = make(), make()
    giver.put(items(1))
    (lease,) = taker.lease(1)
    inside, go_on = threading.Event(), threading.Event()

    def slow_record(_cursor, _held):
        inside.set()
        go_on.wait(10)

    finishing = threading.Thread(
        target=lambda: taker.finish(
            [Return(lease=lease, done=(Done(task=lease.tasks[0], outcome=Outcome.OK, due=NEVER),))],
            slow_record,
        )
    )
    finishing.start()
    inside.wait(10)
    putting = threading.Thread(target=lambda: giver.put(items(2)))
    putting.start()
    go_on.set()
    finishing.join(10)
    putting.join(10)
    assert [task.url for task in giver.lease(1)[0].tasks] == ["http://a/1"]
    assert giver.sweep() == 0


def test_a_sweep_wakes_a_host_that_sleeps_with_work_to_do(make, clean_database):
    frontier = make()
    frontier.put(items(2))
    with closing(clean_database.session()) as session:
        session.transact(lambda cursor: cursor.execute(f"UPDATE host SET ready_at = {NEVER}"))
        session.transact(lambda cursor: cursor.execute(f"UPDATE queue SET next_due = {NEVER}"))
    assert frontier.lease(1) == []
    assert frontier.sweep() == 1
    assert len(frontier.lease(1)[0].tasks) == 2


def test_the_leases_of_a_dead_worker_are_given_back_at_once(make):
    dead, living = make(worker=7), make(worker=8)
    living.put(items(3, "a") + items(3, "b"))
    dead.lease(1)
    living.lease(1)
    assert living.give_back([7]) == 1
    assert len(living.lease(5)) == 1


def test_eight_threads_never_hold_a_host_twice_and_lose_nothing(make):
    held, lock, twice, seen = set(), threading.Lock(), [], set()
    make().put([item for host in range(40) for item in items(25, f"h{host}")])

    def crawl(frontier):
        while leases := frontier.lease(3, per_host=5):
            for lease in leases:
                with lock:
                    twice.extend({lease.host} & held)
                    held.add(lease.host)
            frontier.put([item for lease in leases for item in items(30, lease.host)])
            for lease in leases:
                with lock:
                    held.discard(lease.host)
                    seen.update(task.url for task in lease.tasks)
                finish(frontier, lease)

    threads = [threading.Thread(target=crawl, args=[make(clock=exact)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    crawl(make(clock=exact))
    assert twice == []
    assert len(seen) == 40 * 30


def test_every_crawl_of_a_host_is_served_also_when_there_are_more_than_one_lease_takes(make):
    frontier = make()
    crawls = range(1, 8)
    frontier.put(
        [Item(url=f"http://a/{crawl}", key=f"http://a/{crawl}", host="a", crawl=crawl) for crawl in crawls]
    )
    served = set()
    for _ in crawls:
        for lease in frontier.lease(1):
            served.update(task.crawl for task in lease.tasks)
            finish(frontier, lease)
    assert served == set(crawls)


def test_a_url_that_becomes_due_later_is_served_whatever_the_class_its_host_had_at_the_last_finish(make):
    now = [1_800_000_000_000]
    frontier = make(clock=lambda: now[0])
    frontier.put([Item(url="http://a/1", key="1", host="a", score=0.01)])
    (lease,) = frontier.lease(1)
    frontier.put([Item(url="http://a/2", key="2", host="a", score=0.99, due=now[0] + 5000)])
    finish(frontier, lease)
    frontier.put([Item(url=f"http://b{n}/", key="x", host=f"b{n}", score=0.5) for n in range(20)])
    now[0] += 5000
    served = {lease.host for _ in range(21) for lease in frontier.lease(1)}
    assert "a" in served


def test_a_sweep_does_not_undo_a_wake_that_is_committed_while_it_runs(make, clean_database):
    frontier, sweeper = make(clock=exact), make(clock=exact)
    frontier.put(items(1))
    finish(frontier, frontier.lease(1)[0])
    with closing(clean_database.session()) as session:
        session.transact(lambda cursor: cursor.execute("UPDATE url SET due = 5"))
    threads = [
        threading.Thread(target=sweeper.sweep),
        threading.Thread(target=lambda: frontier.put(items(30))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    seen = set()
    while leases := frontier.lease(1):
        seen.update(task.url for task in leases[0].tasks)
        finish(frontier, leases[0])
    assert seen == {item.url for item in items(30)}


def test_hosts_that_are_blocked_again_and_again_lose_none_of_their_urls(make):
    now = [1_800_000_000_000]
    frontier = make(clock=lambda: now[0])
    frontier.put([item for host in range(10) for item in items(8, f"h{host}")])
    tries = {}
    for _ in range(2000):
        now[0] += 1000
        for lease in frontier.lease(3, per_host=2):
            task = lease.tasks[0]
            tries[task.url] = tries.get(task.url, 0) + 1
            again = tries[task.url] < 3
            due = now[0] + 7000 if again else NEVER
            done = Done(
                task=task, outcome=Outcome.FAILED if again else Outcome.OK, due=due, fails=tries[task.url]
            )
            frontier.finish(
                [Return(lease=lease, done=(done,), blocked_until=now[0] + 3000 if again else None)]
            )
        if len(tries) == 80 and min(tries.values()) == 3:
            break
    assert set(tries.values()) == {3}
    assert len(tries) == 80


def test_a_long_held_snapshot_of_somebody_else_hides_nothing_from_the_lease(make, clean_database):
    frontier = make(clock=exact)
    frontier.put([item for host in range(5) for item in items(40, f"h{host}")])
    with closing(clean_database.session()) as holder:
        rows = holder.rows(b"SELECT generate_series(1, 100000)", at_once=10)
        next(rows)
        seen = set()
        while leases := frontier.lease(2, per_host=3):
            for lease in leases:
                seen.update(task.url for task in lease.tasks)
                finish(frontier, lease)
        rows.close()
    assert len(seen) == 200


LATE_CLOCK = """
    WITH read AS MATERIALIZED (SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now)
    SELECT read.now FROM read CROSS JOIN LATERAL (SELECT pg_sleep(CASE WHEN read.now > 0 THEN 0.3 END)) AS way
"""


def test_the_delay_is_kept_also_by_a_worker_to_whom_the_database_s_time_came_late(make, monkeypatch):
    monkeypatch.setattr("tamias.database.connect._CLOCK", LATE_CLOCK)
    behind = make(delay_ms=1000)
    behind.put(items(2))
    (lease,) = behind.lease(1, per_host=1)
    monkeypatch.undo()
    exact = make()
    asked_until = exact.now()
    behind.release([lease])
    while not exact.lease(1):
        time.sleep(0.01)
    assert exact.now() - asked_until >= 1000


def test_the_host_of_a_dead_worker_waits_for_the_request_that_may_be_under_way(make):
    dead, alive = make(delay_ms=500, worker=7), make()
    dead.put(items(2))
    dead.lease(1, per_host=1)
    died = alive.now()
    alive.give_back([7])
    while not alive.lease(1):
        time.sleep(0.01)
    assert alive.now() - died >= 1000


def test_hosts_of_a_dead_worker_are_not_asked_in_step(make, clean_database):
    dead, alive = make(delay_ms=500, worker=7), make()
    dead.put([item for host in "abcd" for item in items(2, host)])
    assert len(dead.lease(4, per_host=1)) == 4
    assert alive.give_back([7]) == 4
    with closing(clean_database.session()) as session:
        ready = sorted(row[0] for row in session.fetch_all(b"SELECT ready_at FROM host"))
    assert [each - ready[0] for each in ready] == [0, 125, 250, 375]
