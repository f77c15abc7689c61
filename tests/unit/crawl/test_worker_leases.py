"""How often a worker asks for hosts: each time it costs a transaction."""

import asyncio

import pytest

from tamias.crawl.plan.policy import RunLimit
from tamias.crawl.request.gate import Reach
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.progress import Tally
from tamias.crawl.worker.worker import MOST_LEASED, Worker
from tamias.model.lease import Lease
from tamias.settings import FetchSettings, Settings


def lease(qid):
    return Lease(host=str(qid), qid=qid, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())


class Store:
    """A store that lends so many hosts at each call."""

    number = 1
    tally = Tally()
    waits_for = None

    def __init__(self, *lent):
        self.asked = []
        self._lent = list(lent)
        self._ended = asyncio.Event()

    async def open(self):
        pass

    async def run(self, after):
        self.after = after
        await self._ended.wait()

    async def lease(self, hosts, per_host, seconds):
        self.asked.append(hosts)
        count = self._lent.pop(0) if self._lent else 0
        first = 1000 * len(self.asked)
        return [lease(qid) for qid in range(first, first + count)]

    limit = RunLimit()

    async def maintain(self):
        pass

    def release(self, held):
        pass

    def stop(self):
        pass

    def end(self):
        self._ended.set()

    async def close(self):
        pass


class NothingParked:
    """The visits that wait for the sandbox: none."""

    trouble = None

    def __len__(self):
        return 0

    async def renew(self):
        pass


class EndlessVisits:
    """A visitor whose work on a host has no end."""

    def __init__(self):
        self.parking = NothingParked()
        self.reach = Reach(Settings(), lambda: 0)

    async def work(self, held):
        await asyncio.Event().wait()

    def stop(self):
        pass

    async def close(self):
        pass


@pytest.fixture(autouse=True)
def nobody_looks_again(monkeypatch):
    """A worker that waits looks again now and then, which is not what is counted here."""
    monkeypatch.setattr("tamias.crawl.worker.worker.IDLE_SECONDS", 3600.0)


async def a_while():
    """Until nothing happens any more."""
    for _ in range(100):
        await asyncio.sleep(0)


def asked_of(*lent, given_back=()):
    """How many hosts a worker with room for 250 asks for, call by call."""

    async def run():
        store = Store(*lent)
        worker = Worker(Settings(fetch=FetchSettings(concurrency=250)), store, EndlessVisits())
        running = asyncio.create_task(worker.run(lambda _progress: None))
        await a_while()
        if given_back:
            store.after(given_back, ())
        await a_while()
        worker.stop()
        await running
        return store.asked

    return asyncio.run(run())


def test_a_worker_that_got_all_it_asked_for_asks_again():
    assert asked_of(MOST_LEASED, MOST_LEASED) == [MOST_LEASED, MOST_LEASED, 50]


def test_a_worker_that_got_less_than_it_asked_for_waits_for_news():
    assert asked_of(30) == [MOST_LEASED]


def test_hosts_without_a_delay_are_asked_for_once_when_they_were_given_back():
    assert asked_of(30, given_back=[HeldLease(lease(1), 0.0, 30.0)]) == [MOST_LEASED, MOST_LEASED]
