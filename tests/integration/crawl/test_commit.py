"""Commits on a real database: of groups, of late news, and of news that cannot be written."""

import asyncio
import time
from contextlib import closing

import msgspec
import pytest

from tamias.archive.captures import all_captures
from tamias.archive.file_store import FileStore
from tamias.crawl.commit.bulk_copies import Coverage
from tamias.crawl.commit.committer import GATHER_SECONDS, MANY_VISITS, Committer
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.commit.segment_pool import SegmentPool
from tamias.crawl.plan.admit import Admission, Reference
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.visit import CommitHook, Visit
from tamias.database.threads import SessionThread
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Capture, CaptureRecord, Outcome, new_capture_id
from tamias.model.item import NEVER
from tamias.model.lease import Done
from tamias.settings import resolve

HOSTS = ("a.example", "b.example", "c.example")


def visit(held, **record):
    (task,) = held.lease.tasks
    attempt = {
        "url": task.url,
        "started_at": 1,
        "ended_at": 2,
        "outcome": Outcome.OK,
        "reason": "200 OK",
    }
    told = {
        **attempt,
        "id": str(new_capture_id(1)),
        "crawl": 1,
        "depth": 0,
        "final_url": task.url,
        "worker": "1",
        "agent": "t",
    }
    done = Done(task=task, outcome=Outcome.OK, due=NEVER)
    links = Reference((f"/from/{held.lease.host}",), task.url, 1, 1)
    row = CaptureRecord(**told | record)
    return Visit(task, held, Capture(**attempt), references=[links], done=done, record=row)


class Remark(msgspec.Struct, frozen=True):
    text: str


class RecordingHook(CommitHook):
    """Records its moments; refuses to write a remark that says so."""

    def __init__(self, session):
        self.moments = []
        self._session = session

    def prepare(self, visits):
        self.moments.append(("prepare", len(visits), self._count()))

    def write(self, cursor, batch):
        remarks = [(visit.task.url, each.text) for visit, each in batch.extras(Remark)]
        if any(text == "refuse" for _, text in remarks):
            raise ValueError("refused")
        self.moments.append(("write", remarks))

    def after(self, visit, *, committed):
        self.moments.append(("after", visit.task.url, committed, self._count()))

    def _count(self):
        return len(list(all_captures(self._session)))


class Bench:
    """A committer with three leased hosts, and what it told after its commits."""

    def __init__(self, database, session, folder):
        self.session = session
        self.late = []
        settings = resolve(environment={}).settings
        self.frontier = PostgresFrontier(session, same_url=str.__eq__, worker=1, delay_ms=0)
        self.admission = admission = Admission(settings, ())
        self.put(HOSTS)
        thread = SessionThread(session)
        context = CommitContext(
            thread=thread,
            frontier=self.frontier,
            admission=admission,
            settings=settings,
            segments=SegmentPool(FileStore(folder), 1, thread),
            coverage=Coverage(thread, FileStore(folder)),
            database=database,
            data=folder,
            number=1,
        )
        self.hook = RecordingHook(session)
        self.committer = Committer(context, [self.hook])

    def after(self, _released, late):
        self.late += late

    def put(self, hosts):
        self.frontier.put([self.admission.item(f"http://{host}/", 0, 1) for host in hosts])

    def lease(self):
        return [HeldLease(lease, time.monotonic(), 30.0) for lease in self.frontier.lease(10)]

    def commit(self, *visits):
        async def run():
            for each in visits:
                await self.committer.add(each)
            self.committer.end()
            await self.committer.run(self.after)

        asyncio.run(run())

    def captured(self):
        return {record.url: record for record in all_captures(self.session)}

    def open(self):
        return self.frontier.figures().crawls[0].open


@pytest.fixture
def bench(clean_database, tmp_path):
    with closing(clean_database.session()) as session:
        session.transact(lambda cursor: cursor.execute("TRUNCATE capture, current_document"))
        yield Bench(clean_database, session, tmp_path)


def test_visits_and_their_links_become_true_together(bench):
    bench.commit(*map(visit, bench.lease()))
    assert {record.outcome for record in bench.captured().values()} == {Outcome.OK}
    assert (bench.committer.tally.visited, bench.open()) == (3, 3)


def test_what_cannot_be_written_is_told_as_our_fault_and_the_rest_is_kept(bench, caplog):
    first, *others = bench.lease()
    poison = visit(first, depth=10**9)
    bench.commit(poison, *map(visit, others))
    told = bench.captured()
    assert len(told) == 3
    assert told[poison.record.url].outcome is Outcome.FAILED
    assert told[poison.record.url].reason.startswith("internal error: ")
    assert bench.committer.tally.outcomes == {"failed": 1, "ok": 2}
    assert bench.open() == 3
    assert "a commit failed" in caplog.text


def test_a_visit_whose_lease_was_lost_is_dropped(bench):
    lost, *others = bench.lease()
    lost.give_up()
    bench.commit(*map(visit, [lost, *others]))
    assert bench.late == list(lost.lease.tasks)
    assert len(bench.captured()) == 2


def test_of_two_leases_of_one_host_only_the_newer_counts(bench):
    old = bench.lease()
    bench.session.transact(lambda cursor: cursor.execute("UPDATE host SET ready_at = 0"))
    new = bench.lease()
    bench.commit(*[visit(held, reason="too late") for held in old], *map(visit, new))
    assert len(bench.late) == len(old)
    assert {record.reason for record in bench.captured().values()} == {"200 OK"}
    assert (len(bench.captured()), bench.open()) == (3, 3)


def test_a_repeated_attempt_is_not_counted_as_done(bench):
    (one, *_) = bench.lease()
    again = msgspec.structs.replace(visit(one).done, due=NEVER - 1, outcome=Outcome.FAILED)
    bench.commit(msgspec.structs.replace(visit(one), done=again))
    assert (bench.committer.tally.visited, bench.committer.tally.put_off) == (0, 1)


@pytest.mark.parametrize(
    ("at_first", "released", "rounds"),
    [(MANY_VISITS - 1, 0, 0), (MANY_VISITS, 0, 2), (MANY_VISITS, 1, 2), (MANY_VISITS, MANY_VISITS, 1)],
)
def test_visits_gather_only_while_many_come_and_few_hosts_wait(
    bench, monkeypatch, at_first, released, rounds
):
    """As many as at first come in the first round, and one less in the next."""
    bench.put(f"{number}.example" for number in range(2 * MANY_VISITS))
    slept, committed = [], asyncio.Event()
    sleep = asyncio.sleep

    async def run():
        held = bench.lease()
        coming = [held[:at_first], held[at_first : 2 * at_first], held[2 * at_first : 3 * at_first - 1]]

        async def come(seconds=None):
            if seconds is not None:
                slept.append(seconds)
                await sleep(0)
            for each in coming.pop(0) if coming else ():
                await bench.committer.add(visit(each))

        await come()
        for each in held[:released]:
            bench.committer.release(each)
        monkeypatch.setattr(asyncio, "sleep", come)
        running = asyncio.create_task(bench.committer.run(lambda *_: committed.set()))
        await committed.wait()
        bench.committer.end()
        await running

    asyncio.run(run())
    assert slept == [GATHER_SECONDS] * rounds
