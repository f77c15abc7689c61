"""What the service promises workers, call by call: those without a database, and those with leases."""

import asyncio
import threading
from contextlib import closing

import grpc
import msgspec
import pytest
from frontier_client import Instance

from tamias.crawl.analysis.extractor import Extraction
from tamias.crawl.plan.policy import CrawlPolicy, write_policy
from tamias.crawl.store.held_lease import HeldLease
from tamias.database.connect import Database
from tamias.features.remote_workers.grpc.channel import CallFailed, ReconnectingChannel, ServiceTarget
from tamias.features.remote_workers.grpc.connection import message
from tamias.features.remote_workers.quad_spool import QuadSpool
from tamias.features.remote_workers.store import FrontierClient, Outdated, Parcel
from tamias.features.remote_workers.wire import DeliveredVisit
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Capture, Outcome, new_capture_id
from tamias.model.errors import ConfigError
from tamias.model.item import NEVER, Item
from tamias.model.kind import kind_tag
from tamias.model.lease import Done, Return
from tests.messages import unsaid

WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND query ~ 'FOR NO KEY UPDATE|put_(few|one)'"
)
SAYS = b'<http://a.example/> <http://a.example/says> "it" <http://a.example/> .\n'


@pytest.fixture
def far(instance, client):
    """`far(work)` runs a coroutine of a worker that said hello: it gets the service and the policy."""

    def run(work, worker=7):
        async def main():
            line = ReconnectingChannel(ServiceTarget(address=instance.address))
            try:
                service = FrontierClient(line, worker)
                return await work(service, await service.hello())
            finally:
                await line.close()

        return asyncio.run(main())

    return run


def visit(lease, tmp_path):
    """A parcel with one quad, as a worker packs it."""
    shelf = QuadSpool(tmp_path)
    with shelf.small_document() as document:
        document.write(SAYS)
    task, now = lease.tasks[0], 1_700_000_000_000
    brought = DeliveredVisit(
        lease=lease, task=task,
        capture=Capture(url=task.url, started_at=now, ended_at=now, outcome=Outcome.OK, reason="ok"),
        found=Extraction(quads=1), references=[], items=[], put_off=False, is_context=False, context=None,
        delay_ms=0, blocked_until=None, granted=None,
    )  # fmt: skip
    return Parcel(str(new_capture_id(now)), brought, shelf.take(document.extent))


async def lent(service, *words):
    """The leases, of what a service lends; nothing is forgotten here."""
    leases, forgotten = await service.lease(*words)
    assert forgotten == {}
    return leases


def figures(session):
    counted = "SELECT count(*), coalesce(sum(quads), 0)::int8 FROM capture"
    return session.transact(lambda cursor: cursor.execute(counted).fetchone())


def test_a_visit_that_is_delivered_twice_is_committed_once_and_answered_twice(
    client, far, frontier_session, tmp_path
):
    client.discover("http://a.example/")

    async def work(service, policy):
        (lease,) = await lent(service, 10, 10, 30, policy.digest)
        parcel = visit(lease, tmp_path)
        sent = [parcel.messages(again=again) for again in (False, True)]
        return [(await service.deliver(each))[parcel.id] for each in sent]

    before = figures(frontier_session)
    assert far(work) == [True, True]
    after = figures(frontier_session)
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)


def test_a_visit_whose_host_somebody_else_has_by_now_changes_nothing(client, far, frontier_session, tmp_path):
    client.discover("http://a.example/")

    async def work(service, policy):
        (lease,) = await lent(service, 10, 10, 30, policy.digest)
        frontier_session.transact(lambda cursor: cursor.execute("UPDATE host SET token = 1"))
        parcel = visit(lease, tmp_path)
        return await service.deliver(parcel.messages())

    before = figures(frontier_session)
    assert list(far(work).values()) == [False]
    assert figures(frontier_session) == before
    assert client.stats().size == 1


def test_a_host_that_is_given_back_is_lent_again(client, far):
    client.call("SetDelay", delay_ms=0)
    client.discover("http://a.example/")

    async def work(service, policy):
        (lease,) = await lent(service, 10, 10, 30, policy.digest)
        assert await lent(service, 10, 10, 30, policy.digest) == []
        held = HeldLease(lease, 0, 30)
        held.delay_ms = 0
        await service.deliver(Parcel("release", released=held).messages())
        return await lent(service, 10, 10, 30, policy.digest)

    assert [task.url for lease in far(work) for task in lease.tasks] == ["http://a.example/"]


@pytest.mark.parametrize("touched", [True, False])
def test_the_delay_of_a_host_begins_only_where_a_far_worker_sent_a_request(client, far, touched):
    client.discover("http://a.example/")

    async def work(service, policy):
        (lease,) = await lent(service, 10, 10, 30, policy.digest)
        held = HeldLease(lease, 0, 30)
        held.delay_ms, held.touched = 3_600_000, touched
        await service.deliver(Parcel("release", released=held).messages())
        return await lent(service, 10, 10, 30, policy.digest)

    assert len(far(work)) == (not touched)


def test_a_lease_that_is_renewed_in_time_is_lent_to_nobody_else(client, far):
    client.discover("http://a.example/")

    async def work(service, policy):
        (lease,) = await lent(service, 10, 10, 1, policy.digest)
        renewed = await service.renew([lease], 30)
        await asyncio.sleep(1.5)
        return lease.qid, renewed, await lent(service, 10, 10, 30, policy.digest)

    qid, renewed, lent_again = far(work)
    assert [each.qid for each in renewed.leases] == [qid]
    assert lent_again == []


def test_the_hosts_of_a_dead_worker_are_given_back_when_its_death_is_told(client, far):
    client.call("SetDelay", delay_ms=0)
    client.discover("http://a.example/")

    async def work(service, policy):
        await lent(service, 10, 10, 30, policy.digest)
        await service.report_death(7, [])
        return await lent(service, 10, 10, 30, policy.digest)

    assert len(far(work)) == 1


def test_addresses_that_are_harvested_through_and_what_is_under_watch_are_left_to_others(
    client, far, frontier_session
):
    frontier = PostgresFrontier(frontier_session, same_url=str.__eq__, delay_ms=0)
    frontier.put(
        [
            Item(url="http://a.example/sparql", key="s", host="a.example", tags=(kind_tag("sparql"),)),
            Item(url="http://b.example/", key="b", host="b.example", crawl=2),
            Item(url="http://c.example/", key="c", host="c.example"),
        ]
    )

    async def work(service, policy):
        return await lent(service, 10, 10, 30, policy.digest)

    assert [task.url for lease in far(work) for task in lease.tasks] == ["http://c.example/"]
    assert sorted(lease.host for lease in frontier.lease(10)) == ["a.example", "b.example"]


def test_a_worker_is_told_what_the_crawl_was_told_and_gets_nothing_once_that_is_old(
    client, far, frontier_session
):
    client.discover("http://a.example/")
    write_policy(
        frontier_session, CrawlPolicy({"fetch__delay": 2.5, "filters__scope": "host"}, ("http://a.example/",))
    )

    async def work(service, policy):
        write_policy(frontier_session, CrawlPolicy())
        with pytest.raises(Outdated):
            await lent(service, 10, 10, 30, policy.digest)
        anew = await service.hello()
        return policy, await lent(service, 10, 10, 30, anew.digest)

    policy, leases = far(work)
    assert (policy.settings.fetch.delay, policy.settings.filters.scope, policy.seeds) == (
        2.5, "host", ("http://a.example/",),
    )  # fmt: skip
    assert len(leases) == 1


def test_quads_that_are_cut_off_are_told_as_our_own_fault_and_the_service_goes_on(
    client, far, frontier_session, tmp_path
):
    client.discover("http://a.example/")

    async def work(service, policy):
        (lease,) = await lent(service, 10, 10, 30, policy.digest)
        parcel = visit(lease, tmp_path)
        half = [_halved(each) for each in parcel.messages()]
        return await service.deliver(half)

    assert list(far(work).values()) == [True]
    told = "SELECT count(*) FROM capture WHERE reason LIKE 'internal error:%cut off%'"
    assert frontier_session.transact(lambda cursor: cursor.execute(told).fetchone()) == (1,)


def test_a_visit_whose_id_is_none_is_refused_and_the_service_goes_on(client, far, tmp_path):
    client.discover("http://a.example/")

    async def work(service, policy):
        (lease,) = await lent(service, 10, 10, 30, policy.digest)
        parcel = visit(lease, tmp_path)
        with pytest.raises(CallFailed, match="is a UUID"):
            await service.deliver(msgspec.structs.replace(parcel, id="no id").messages())
        return await service.deliver(parcel.messages())

    assert list(far(work).values()) == [True]


def _halved(sent):
    parcel = message("tamias.Parcel").FromString(sent)
    parcel.quads = parcel.quads[: len(parcel.quads) // 2]
    return parcel.SerializeToString()


def test_a_call_that_makes_no_sense_is_answered_with_a_status(client):
    packed = message("tamias.Packed")
    call = client.channel.unary_unary("/tamias.Workers/Hello", packed.SerializeToString, packed.FromString)
    with pytest.raises(grpc.RpcError) as error:
        call(packed(value=b"\xc1 nonsense"), timeout=10)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_worker_without_the_token_ends_and_says_why(tamias, tmp_path):
    token = tmp_path / "token"
    token.write_text("open sesame", encoding="utf-8")
    instance = Instance(tamias.data, "--token-file", str(token))
    try:
        done = tamias.run("worker", "--frontier", instance.address, "--workers", "1")
    finally:
        instance.stop()
    assert (done.returncode, not unsaid(done.stderr)) == (ConfigError.exit_code, True)


@pytest.fixture
def frontier(client, frontier_data):
    with closing(Database(frontier_data)) as database, closing(database.session()) as session:
        yield PostgresFrontier(session, same_url=str.__eq__, delay_ms=0)


def some(count):
    return [
        Item(url=f"http://a.example/{n}", key=f"http://a.example/{n}", host="a.example") for n in range(count)
    ]


def test_a_limit_that_a_client_set_also_ends_what_is_lent_to_workers(client, frontier):
    frontier.put(some(3))
    client.call("SetCrawlLimit", key="a.example", limit=1)
    (lease,) = frontier.lease(1, per_host=1)
    done = Done(task=lease.tasks[0], outcome=Outcome.OK, due=NEVER)
    frontier.finish([Return(lease=lease, done=(done,))])
    assert frontier.lease(1) == []
    client.call("SetCrawlLimit", key="a.example", limit=0)
    assert len(frontier.lease(1)) == 1


def test_a_put_whose_queue_is_deleted_under_its_hands_makes_it_again(frontier, frontier_session):
    frontier.put(some(1))
    putting = threading.Thread(target=frontier.put, args=[some(4)])

    def delete(cursor):
        cursor.execute("SELECT FROM host FOR NO KEY UPDATE")
        putting.start()
        while cursor.execute(WAITING).fetchone()[0] == 0:
            cursor.execute("SELECT pg_stat_clear_snapshot(), pg_sleep(0.01)")
        cursor.execute("DELETE FROM url")
        cursor.execute("DELETE FROM queue")

    frontier_session.transact(delete)
    putting.join(30)
    orphans = "SELECT count(*) FROM url WHERE NOT EXISTS (SELECT FROM queue WHERE queue.qid = url.qid)"
    left = frontier_session.transact(lambda cursor: cursor.execute(orphans).fetchone()[0])
    assert left == 0
    assert sorted(task.url for lease in frontier.lease(1) for task in lease.tasks)[-3:] == [
        item.url for item in some(4)[1:]
    ]
