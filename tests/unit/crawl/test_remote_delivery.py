"""What a worker without a database delivers, and what the service makes of it."""

import asyncio
import io
from contextlib import contextmanager

import msgspec
import pytest
import zstandard

from tamias.crawl.analysis.extractor import Extraction
from tamias.crawl.plan.admit import Reference
from tamias.crawl.store.held_lease import HeldLease
from tamias.features.remote_workers import quad_spool, store
from tamias.features.remote_workers.grpc.channel import (
    CallFailed,
    HungUp,
    NotReached,
    ReconnectingChannel,
    ServiceTarget,
)
from tamias.features.remote_workers.grpc.connection import message
from tamias.features.remote_workers.quad_spool import PIECE, Damaged, QuadReceiver, QuadSpool
from tamias.features.remote_workers.store import DeliveryQueue, FrontierClient
from tamias.features.remote_workers.wire import DeliveredVisit, packed
from tamias.model.capture import Capture, Extent, Outcome
from tamias.model.item import Item
from tamias.model.kind import PROBE, kind_tag
from tamias.model.lease import Lease, Task
from tamias.sinks.segments.naming import Naming
from tests.messages import unsaid

NOWHERE = ServiceTarget(address="localhost:1")

LEASE = Lease(host="a", qid=1, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())
QUAD = b"<http://a/> <http://a/b> <http://a/c> <http://a/> .\n"
_PARCEL = message("tamias.Parcel")


def visit(url="http://a/", tags=()):
    task = Task(uid=1, url=url, crawl=1, depth=0, score=1.0, fails=0, tags=tags)
    capture = Capture(url=url, started_at=1, ended_at=2, outcome=Outcome.OK, reason="200 OK")
    return DeliveredVisit(
        lease=LEASE, task=task, capture=capture, found=Extraction(quads=2), references=[], items=[],
        put_off=False, is_context=False, context=None, delay_ms=0, blocked_until=None, granted=None,
    )  # fmt: skip


class Service:
    """A service that answers each delivery with the next of some answers: receipts, or an error."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.delivered = []
        self.waited = 0

    async def deliver(self, messages):
        parcels = [_PARCEL.FromString(each) for each in messages]
        ids = [each.id for each in parcels if each.last]
        self.delivered.append((len(ids), sum(each.again for each in parcels)))
        answer = self._answers.pop(0) if self._answers else True
        if isinstance(answer, Exception):
            raise answer
        return {} if answer is None else dict.fromkeys(ids, answer)

    async def wait(self, _pause):
        self.waited += 1
        if self.waited > 3:
            raise HungUp("the worker is ending")


def delivered(service, *visits, released=()):
    """What is remembered and given back when these visits were delivered, and the tally."""
    remembered, given_back = [], []

    async def main():
        queue = DeliveryQueue(service, remembered.extend)
        for each in visits:
            await queue.add(each, None, [Item(url=each.task.url, key="k", host="a")])
        for held in released:
            queue.release(held)
        queue.end()
        await asyncio.wait_for(queue.run(lambda held, late: given_back.extend(held)), 10)
        return queue.tally

    tally = asyncio.run(main())
    return [item.url for item in remembered], given_back, tally


def test_visits_and_hosts_go_in_one_delivery_and_count_when_they_are_committed():
    held = HeldLease(LEASE, 0.0, 30.0)
    probe = visit("http://a/void", (kind_tag(PROBE),))
    service = Service(True)
    remembered, given_back, tally = delivered(service, visit(), probe, released=[held])
    assert service.delivered == [(3, 0)]
    assert remembered == ["http://a/", "http://a/void"]
    assert given_back == [held]
    assert (tally.visited, tally.quads, tally.outcomes) == (1, 2, {"ok": 1})


def test_a_visit_that_came_too_late_does_not_count():
    remembered, _, tally = delivered(Service(False), visit())
    assert (remembered, tally.visited) == ([], 0)


def test_a_delivery_that_was_not_answered_is_repeated_and_says_so():
    service = Service(NotReached("away"), None, True)
    _, _, tally = delivered(service, visit())
    assert service.delivered == [(1, 0), (1, 1), (1, 1)]
    assert tally.visited == 1


def test_of_a_delivery_that_is_refused_only_the_visit_at_fault_is_lost(caplog):
    refused = CallFailed(3, "not a visit")
    service = Service(refused, refused, True)
    remembered, _, tally = delivered(service, visit("http://a/bad"), visit("http://a/good"))
    assert (remembered, tally.visited) == (["http://a/good"], 1)
    assert not unsaid(caplog.text)


def test_what_waits_for_a_node_of_the_database_holds_up_no_other_host(monkeypatch):
    monkeypatch.setattr(store, "AGAIN_SECONDS", 0.2)
    other = msgspec.structs.replace(LEASE, host="b", qid=2)
    away, seen = True, []

    class HalfAway(Service):
        async def deliver(self, messages):
            parcels = [_PARCEL.FromString(each) for each in messages]
            ids = [each.id for each in parcels if each.last]
            seen.append([of[each] for each in ids])
            return {each: True for each in ids if of[each] != "a" or not away}

    of, given_back = {}, []

    async def main():
        nonlocal away
        queue = DeliveryQueue(HalfAway(), lambda items: None)
        running = asyncio.create_task(queue.run(lambda held, late: given_back.extend(held)))
        for lease, name in ((LEASE, "a"), (other, "b"), (other, "b"), (LEASE, "a"), (other, "b")):
            await queue.add(msgspec.structs.replace(visit(), lease=lease), None, [])
            of[queue._waiting[-1].id] = name
            for _ in range(6000):
                if queue.tally.visited == sum(each == "b" for each in of.values()):
                    break
                await asyncio.sleep(0.01)
        assert queue.tally.visited == 3
        queue.release(HeldLease(LEASE, 0.0, 1.0))
        of[queue._waiting[-1].id] = "a"
        await asyncio.sleep(0.3)
        assert not given_back
        away = False
        await asyncio.sleep(0.4)
        queue.end()
        await asyncio.wait_for(running, 10)
        return queue.tally

    assert asyncio.run(main()).visited == 5
    assert [held.lease for held in given_back] == [LEASE]
    assert seen[-1] == ["a", "a", "a"]  # in their order


def test_who_is_told_to_end_does_not_wait_for_a_service_that_is_away():
    service = Service(*[NotReached("away")] * 10)
    _, _, tally = delivered(service, visit())
    assert (service.waited, tally.visited) == (4, 0)


def test_visits_wait_when_too_many_are_waiting(monkeypatch):
    monkeypatch.setattr(store, "MOST_WAITING", 1)

    async def main():
        queue = DeliveryQueue(Service(), lambda _items: None)
        await queue.add(visit(), None, [])
        adding = asyncio.create_task(queue.add(visit(), None, []))
        await asyncio.sleep(0.05)
        was_waiting = not adding.done()
        running = asyncio.create_task(queue.run(lambda _held, _late: None))
        await asyncio.wait_for(adding, 5)
        queue.end()
        await running
        return was_waiting, queue.tally.visited

    assert asyncio.run(main()) == (True, 2)


def test_two_answers_to_one_question_are_none():
    class Twice(ReconnectingChannel):
        async def call(self, _path, _messages):
            return [message("tamias.Packed")(value=packed(True)).SerializeToString()] * 2

    with pytest.raises(NotReached, match="2 answers"):
        asyncio.run(FrontierClient(Twice(NOWHERE), 1).put_links(Reference((), "http://a/", 1, 1)))


def test_a_lease_that_is_refused_for_another_reason_than_the_policy_is_told():
    class Refusing(ReconnectingChannel):
        async def try_once(self, _path, _messages, _seconds):
            raise CallFailed(5, "there is no crawl 'x'")

    with pytest.raises(CallFailed, match="no crawl"):
        asyncio.run(FrontierClient(Refusing(NOWHERE), 1).lease(1, 1, 1.0, "digest"))


class Segments:
    """Segments in memory, which know how each document came."""

    def __init__(self):
        self.one_large_at_a_time = asyncio.Lock()
        self.kept = []

    def small_document(self):
        return self._document("small")

    def large_document(self):
        return self._document("large")

    @contextmanager
    def _document(self, size):
        document = Document()
        yield document
        self.kept.append((size, bytes(document.data)))


class Document:
    def __init__(self):
        self.data = bytearray()

    def write(self, chunk):
        self.data += chunk

    @property
    def extent(self):
        return Extent(1, 0, len(self.data), len(self.data))


def received(data, most=1 << 30):
    async def main():
        segments = Segments()
        extent = await QuadReceiver(segments, most).receive(io.BytesIO(data), Naming("http://a/", ""))
        return extent, segments.kept

    return asyncio.run(main())


def compressed(data):
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def spooled(folder, size, chunks):
    """The pieces in which the spool gives a document away."""

    async def main():
        spool = QuadSpool(folder)
        with getattr(spool, size)() as document:
            for chunk in chunks:
                document.write(chunk)
        packet = spool.take(document.extent)
        pieces = list(packet.pieces())
        packet.discard()
        return pieces

    return asyncio.run(main())


@pytest.mark.parametrize("size", ["small_document", "large_document"])
def test_what_is_spooled_is_received_as_it_was(tmp_path, size):
    lines = [b"<http://a/%d> <http://a/b> <http://a/c> <http://a/> .\n" % number for number in range(9000)]
    noise = [b"".join(lines[start : start + 1000]) for start in range(0, 9000, 1000)]
    pieces = spooled(tmp_path, size, noise)
    assert all(len(piece) <= PIECE for piece in pieces)
    assert received(b"".join(pieces))[1] == [("small", b"".join(noise))]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", ["small_document", "large_document"])
def test_nothing_stays_of_a_document_that_was_not_read_to_its_end(tmp_path, size):
    async def main():
        spool = QuadSpool(tmp_path)
        with pytest.raises(ZeroDivisionError), getattr(spool, size)() as document:
            document.write(QUAD * (1 // 0))
        with getattr(spool, size)():
            pass
        return spool.take(None)

    assert asyncio.run(main()) is None
    assert list(tmp_path.iterdir()) == []


def test_a_document_without_quads_takes_no_place():
    assert received(b"") == ((None, 0), [])


def test_a_document_that_unpacks_to_much_is_written_as_a_large_one(monkeypatch):
    monkeypatch.setattr(quad_spool, "SMALL_PLAIN", 1000)
    assert received(compressed(QUAD * 100))[1] == [("large", QUAD * 100)]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (compressed(QUAD * 1000), "more than 1000 bytes"),
        (compressed(QUAD)[:-6], "cut off"),
        (b"no zstd at all", "cannot be unpacked"),
        (compressed(QUAD[:-1]), "last line"),
    ],
)
def test_what_is_not_what_it_says_is_not_taken(data, why):
    with pytest.raises(Damaged, match=why):
        received(data, most=1000)
