"""What every store of a worker promises, asked of the one on a database and of the one at a service."""

import asyncio
import sys
import time
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tamias.archive.captures import all_captures
from tamias.archive.file_store import segments_of
from tamias.crawl.analysis.extractor import Extraction
from tamias.crawl.commit.database_store import DatabaseStore, worker_number
from tamias.crawl.plan.admit import Admission, Reference
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.visit import Visit
from tamias.database.connect import Database
from tamias.features.remote_workers.grpc.channel import CallFailed, ReconnectingChannel, ServiceTarget
from tamias.features.remote_workers.store import FrontierClient, RemoteStore
from tamias.model.capture import Body, Capture, Hop, Outcome
from tamias.model.cut import FILTER
from tamias.model.item import Item
from tamias.model.kind import CONTEXT, kind_key, kind_tag
from tamias.permit.robots import RobotsVerdict, Rules
from tamias.settings import FetchSettings, Settings
from tamias.sinks.segments.segment_files import SegmentReader

sys.path.insert(0, str(Path(__file__).parents[1] / "integration" / "urlfrontier"))

from frontier_client import Instance

URL = "http://a.example/"
SAYS = b'<http://a.example/> <http://a.example/says> "it" <http://a.example/> .\n'
TABLES = "host, queue, url, robots, context, site, capture, current_document"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def instance(data):
    running = Instance(data)
    yield running
    running.stop()


@pytest.fixture
def database(instance, data):
    with closing(Database(data)) as database:
        yield database


@pytest.fixture
def session(database):
    with closing(database.session()) as session:
        session.transact(lambda cursor: cursor.execute(f"TRUNCATE {TABLES}"))
        session.transact(lambda cursor: cursor.execute("UPDATE service SET active = true, delay_ms = 0"))
        yield session


class Worker:
    """A worker of a store: leases hosts, hands visits over, and waits for their commit."""

    def __init__(self, store):
        self.store = store
        self._committed = asyncio.Event()

    def after(self, released, _late):
        if released:
            self._committed.set()

    async def lease(self):
        begun, held = time.monotonic(), []
        for lease in await self.store.lease(10, 10, 30.0):
            held.append(HeldLease(lease, begun, 30.0))
            held[-1].delay_ms = 0
        return held

    async def commit(self, held, *results):
        """Commits a result for each task of the lease, and gives the host back."""
        for task, brought in zip(held.lease.tasks, results, strict=True):
            await self.store.commit(Visit(task, held, **brought))
        self._committed.clear()
        self.store.release(held)
        await asyncio.wait_for(self._committed.wait(), 20)


@pytest.fixture(params=["database", "service"])
def working(request, instance, database, session, data, tmp_path):
    """`working(work)` runs a coroutine with a worker of the store."""

    @asynccontextmanager
    async def on_database():
        settings = Settings(fetch=FetchSettings(delay=0))
        admission = Admission(settings, ())
        yield DatabaseStore(database, data, admission, number=worker_number(database))

    @asynccontextmanager
    async def at_service():
        client = FrontierClient(ReconnectingChannel(ServiceTarget(address=instance.address)), 7)
        policy = await client.hello()
        admission = Admission(policy.settings, policy.seeds)
        yield RemoteStore(client, policy, admission, tmp_path)

    async def run(work):
        async with on_database() if request.param == "database" else at_service() as store:
            worker = Worker(store)
            await store.open()
            committing = asyncio.create_task(store.run(worker.after))
            try:
                return await work(worker)
            finally:
                store.stop()
                store.end()
                await committing
                await store.close()

    return lambda work: asyncio.run(run(work))


def item(url=URL, kind=None, **changes):
    tags = () if kind is None else (kind_tag(kind),)
    key = kind_key(url, kind)
    return Item(**{"url": url, "key": key, "host": url.split("/")[2], "crawl": 1, "tags": tags, **changes})


def fetched(url=URL, outcome=Outcome.OK, **changes):
    hop = Hop(url=url, status=200, headers=(), address="192.0.2.1")
    told = {"url": url, "started_at": 1_700_000_000_000, "ended_at": 1_700_000_000_100, "hops": (hop,)}
    return Capture(**told | {"outcome": outcome, "reason": "200 OK"} | changes)


def result(capture, **brought):
    """What a visit brings, whatever its task."""
    return {"capture": capture, **brought}


async def leased(worker, *items):
    """The only host that is ready once these are put."""
    await worker.store.put(list(items) or [item()])
    (held,) = await worker.lease()
    return held


def urls(leases):
    return sorted(task.url for held in leases for task in held.lease.tasks)


def test_what_is_put_is_lent_once_and_again_when_its_host_was_given_back(working):
    async def work(worker):
        held = await leased(worker)
        nobody = await worker.lease()
        late = result(fetched(), put_off=True, due=1)
        await worker.commit(held, late)
        return urls([held]), nobody, urls(await worker.lease())

    assert working(work) == ([URL], [], [URL])


def test_a_lease_is_renewed_until_somebody_else_has_the_host(working, session):
    async def work(worker):
        held = await leased(worker)
        (renewed,) = await worker.store.renew([held.lease], 60.0)
        session.transact(lambda cursor: cursor.execute("UPDATE host SET token = 1"))
        return held.lease, renewed, await worker.store.renew([renewed], 60.0)

    before, renewed, lost = working(work)
    assert (renewed.qid, renewed.token) == (before.qid, before.token)
    assert renewed.ends_at > before.ends_at
    assert lost == []


def test_robots_rules_are_kept_for_everybody_as_they_were_written(working):
    rules = Rules(
        blanket=RobotsVerdict(False, "closed"), sitemaps=("http://a.example/s.xml",), crawl_delay=2.5
    )

    async def work(worker):
        held = await leased(worker)
        unknown = await worker.store.read_robots(held.lease, "http://a.example")
        written = await worker.store.write_robots(held.lease, "http://a.example", rules, 200, 3600)
        return unknown, written, await worker.store.read_robots(held.lease, "http://a.example")

    unknown, written, read = working(work)
    assert unknown is None
    assert read == written
    assert read.rules == rules


def test_rules_that_are_too_old_are_unknown(working):
    async def work(worker):
        held = await leased(worker)
        await worker.store.write_robots(held.lease, "http://a.example", Rules(), 200, 0)
        return await worker.store.read_robots(held.lease, "http://a.example")

    assert working(work) is None


def test_a_site_is_open_for_what_is_as_deep_as_it_was_opened_or_deeper(working):
    async def work(worker):
        lease = (await leased(worker)).lease
        asked = [await worker.store.is_site_open(lease, 1, "http://a.example", 5)]
        await worker.store.open_site(lease, 1, "http://a.example", 1)
        asked += [await worker.store.is_site_open(lease, 1, "http://a.example", depth) for depth in (0, 1, 2)]
        return asked

    assert working(work) == [False, False, True, True]


def test_a_site_is_not_open_for_a_crawl_that_nobody_was_lent(working):
    async def work(worker):
        lease = (await leased(worker)).lease
        await worker.store.open_site(lease, 1, "http://a.example", 1)
        try:
            return await worker.store.is_site_open(lease, 3, "http://a.example", 2)
        except CallFailed as refusal:
            return "the crawl 3" not in str(refusal)

    assert working(work) is False


def test_a_context_is_there_for_everybody_once_its_visit_is_committed(working):
    there, missing, untried = ("http://a.example/c", "http://a.example/m", "http://a.example/u")

    async def work(worker):
        held = await leased(worker, item(there, CONTEXT), item(missing, CONTEXT))
        bodies = {there: b"{}", missing: None}
        results = [
            result(fetched(task.url), is_context=True, context=bodies[task.url]) for task in held.lease.tasks
        ]
        await worker.commit(held, *results)
        return await worker.store.read_contexts([there, missing, untried], 0)

    assert working(work) == {there: b"{}", missing: None}


def test_links_are_known_when_they_were_put_and_what_kept_others_out_is_told(working):
    async def work(worker):
        sound = Reference(("/page", "http://b.example/"), URL, 1, 1)
        refused = Reference(("/" + "long" * 2000,), URL, 1, 1)
        cuts = [await worker.store.put_links(each) for each in (sound, refused)]
        return cuts, urls(await worker.lease())

    assert working(work) == ([0, FILTER], ["http://a.example/page", "http://b.example/"])


@pytest.mark.parametrize("size", ["small_document", "large_document"])
def test_a_visit_becomes_true_with_its_quads_its_links_and_its_record(working, session, data, size):
    async def work(worker):
        held = await leased(worker)
        with getattr(worker.store.quads, size)() as document:
            document.write(SAYS)
            extent = document.extent
        found = Extraction(quads=1, links=1, read=True, media_type="text/turtle", extent=extent)
        links = [Reference((f"/{size}",), URL, 1, 1)]  # the service remembers what it put for another test
        body = Body(size=len(SAYS), sha256="0" * 64, data=SAYS)
        await worker.commit(held, result(fetched(body=body), found=found, references=links))
        return held.lease.token, urls(await worker.lease()), worker.store.tally

    token, next_urls, tally = working(work)
    (record,) = all_captures(session)
    with SegmentReader(segments_of(session, data)) as reader:
        assert b"".join(reader.read(record.extent)) == SAYS
    assert (record.outcome, record.reason, record.quads, record.links) == (Outcome.OK, "200 OK", 1, 1)
    assert (record.url, record.final_url, record.found_type, record.bytes) == (
        URL, URL, "text/turtle", len(SAYS),
    )  # fmt: skip
    assert record.worker == str(token >> 32)
    assert next_urls == [f"http://a.example/{size}"]
    assert (tally.visited, tally.quads, tally.outcomes) == (1, 1, {"ok": 1})


def test_what_is_put_off_is_due_again_without_a_record_and_keeps_its_validators(working, session):
    async def work(worker):
        await worker.store.put([item()])
        session.transact(lambda cursor: cursor.execute("UPDATE url SET etag = 'tag'"))
        (held,) = await worker.lease()
        await worker.commit(held, result(fetched(), put_off=True, due=1))
        (again,) = await worker.lease()
        (task,) = again.lease.tasks
        return task.fails, task.etag

    assert working(work) == (0, "tag")
    assert list(all_captures(session)) == []


def test_a_host_that_asks_for_a_pause_is_blocked_for_that_long(working):
    async def work(worker):
        held = await leased(worker)
        before = worker.store.now()
        busy = fetched(outcome=Outcome.FAILED, retry=True, retry_after_ms=60_000)
        await worker.commit(held, result(busy))
        return held.blocked_until - before, await worker.lease()

    pause, ready = working(work)
    assert 60_000 <= pause < 90_000
    assert ready == []


def test_a_visit_whose_host_somebody_else_has_by_now_changes_nothing(working, session):
    async def work(worker):
        held = await leased(worker)
        session.transact(lambda cursor: cursor.execute("UPDATE host SET token = 1"))
        await worker.commit(held, result(fetched()))
        return worker.store.tally.visited

    assert working(work) == 0
    assert list(all_captures(session)) == []
