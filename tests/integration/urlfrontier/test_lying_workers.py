"""A far worker that lies: nothing of it is stored, and `check` finds an archive that is sound."""

import time
from contextlib import closing

import grpc
import msgspec
import pytest
import zstandard
from frontier_client import Client, Instance

from tamias.archive.tombstones import order
from tamias.crawl.analysis.extractor import Extraction
from tamias.crawl.plan.admit import Reference
from tamias.database.connect import Database
from tamias.features.remote_workers import wire
from tamias.features.remote_workers.grpc.connection import message
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Capture, Hop, Outcome, new_capture_id
from tamias.model.item import Item
from tamias.model.lease import Unreachable
from tamias.model.resource import resource_id
from tamias.permit.robots import RobotsVerdict, Rules

ELSEWHERE = "http://elsewhere.example"
HOSTS = 30
FAR = 2_777_777_777_777
"""In 2058."""
PARCEL, RECEIPT, PACKED = (message(f"tamias.{name}") for name in ("Parcel", "Receipt", "Packed"))


class FarWorker:
    """What a program can say to the service that has its token and no scruples."""

    def __init__(self, address):
        self.channel = Client(address).channel
        self.policy = self.ask("Hello", wire.Greeting(7), wire.WirePolicy)

    def ask(self, name, value, kind):
        call = self.channel.unary_unary(f"/tamias.Workers/{name}")
        return wire.unpacked(
            PACKED.FromString(call(PACKED(value=wire.packed(value)).SerializeToString())).value, kind
        )

    def lend(self):
        params = message("urlfrontier.GetParams")(
            worker=7, policy=self.policy.digest, max_queues=1, max_urls_per_queue=1
        )
        call = self.channel.unary_stream("/urlfrontier.URLFrontier/GetURLs")
        info = message("urlfrontier.URLInfo")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for each in call(params.SerializeToString()):
                return wire.unpacked(info.FromString(each).lent, wire.Lent)
        raise AssertionError("nothing was lent")

    def deliver(self, visit, quads=""):
        """Whether it was committed."""
        parcel = PARCEL(
            id=str(new_capture_id(1)), visit=wire.packed(visit), last=True,
            quads=zstandard.compress(quads.encode()) if quads else b"",
        )  # fmt: skip
        call = self.channel.stream_stream("/tamias.Workers/Deliver")
        (answer,) = call(iter([parcel.SerializeToString()]))
        return RECEIPT.FromString(answer).committed

    def release(self, lease, **words):
        release = wire.packed(wire.Released(lease, **{"delay_ms": 0, "blocked_until": None, **words}))
        call = self.channel.stream_stream("/tamias.Workers/Deliver")
        list(call(iter([PARCEL(id="release", release=release, last=True).SerializeToString()])))


def visit(lent, **words):
    now = time.time_ns() // 1_000_000
    url = lent.task.url
    hop = Hop(url=url, status=200, address="", location=None, headers=())
    capture = Capture(url=url, started_at=now, ended_at=now, outcome=Outcome.OK, reason="200 OK", hops=(hop,))
    usual = {
        "lease": lent.lease, "task": lent.task, "capture": capture, "found": Extraction(quads=1, read=True),
        "references": [], "items": [], "put_off": False, "is_context": False, "context": None,
        "delay_ms": 0, "blocked_until": None, "granted": None,
    }  # fmt: skip
    return wire.DeliveredVisit(**{**usual, **words})


def quad(graph, subject="urn:s"):
    return f'<{subject}> <urn:p> "a lie" <{graph}> .\n'


def changed(value, **words):
    return msgspec.structs.replace(value, **words)


def lies_in_quads(url):
    """What is no document of a URL."""
    return {
        "no N-Quads": "this is no statement at all, a lie\n",
        "a forged line": quad(url, subject="urn:s> <urn:p> <urn:o> <urn:tamias:metadata> . #"),
        "a cut line": quad(url) + "<urn:s> <urn:p>",
        "the graph of another host": quad(ELSEWHERE + "/"),
        "the graph of the metadata": quad("urn:tamias:metadata"),
        "no graph at all": '<urn:s> <urn:p> "a lie" .\n',
    }


def lies_in_visits(lent):
    """What no visit to a lent URL can be."""
    honest, task = visit(lent), lent.task
    capture, other = honest.capture, task.url + "/other"
    hop = changed(capture.hops[0], url=ELSEWHERE + "/")
    item = Item(url=ELSEWHERE + "/", key=ELSEWHERE + "/", host="elsewhere.example", crawl=1)
    away = Unreachable(authority=ELSEWHERE, since=0, tries=9, next_at=FAR, reason="")
    elsewhere = changed(capture, url=other)
    return {
        "a URL that was not lent": changed(
            honest, task=changed(task, url=other, uid=task.uid + 1), capture=elsewhere
        ),
        "another URL under a lent number": changed(honest, task=changed(task, url=other), capture=elsewhere),
        "a capture of another URL": changed(honest, capture=changed(capture, url=ELSEWHERE + "/")),
        "a redirect to another host": changed(honest, capture=changed(capture, hops=(*capture.hops, hop))),
        "a visit in 2058": changed(honest, capture=changed(capture, started_at=FAR, ended_at=FAR)),
        "a context that is none": changed(honest, is_context=True, context=b"{}"),
        "links into another crawl": changed(honest, references=[Reference([ELSEWHERE], task.url, 1, 2)]),
        "an item that overwrites": changed(honest, items=[changed(item, overwrites=True, due=FAR)]),
        "an item under another key": changed(honest, items=[changed(item, key="http://x.example/")]),
        "a lease that nobody has": changed(honest, lease=changed(lent.lease, token=lent.lease.token + 1)),
        "another host out of reach": changed(honest, news={ELSEWHERE: away}),
    }


def lies_in_calls(lent):
    """What a worker may not ask for."""
    item = Item(url=ELSEWHERE + "/", key=ELSEWHERE + "/", host="elsewhere.example", crawl=1)
    closed = Rules(blanket=RobotsVerdict(False, "a lie"))
    return {
        "PutRobots": (lent.lease, ELSEWHERE, closed, 200, 10),
        "OpenSite": (lent.lease, 1, ELSEWHERE, 0),
        "PutLinks": Reference([ELSEWHERE], lent.task.url, 1, 2),
        "PutItems": [changed(item, overwrites=True, due=FAR)],
    }


@pytest.fixture
def archive(tamias):
    """A frontier with some hosts, each with a URL, and its service."""
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=0)
        urls = [f"http://h{number}.example/page" for number in range(HOSTS)]
        frontier.put([Item(url=url, key=url, host=url.split("/")[2]) for url in urls])
        service = Instance(tamias.data, env=tamias.env)
        yield tamias, session, service
        service.stop()


def answer(said):
    try:
        return said()
    except grpc.RpcError as error:
        return error.code().name


def test_whatever_a_far_worker_makes_up_is_refused_and_the_archive_is_sound(archive):
    tamias, session, service = archive
    worker = FarWorker(service.address)
    failed = []
    for name in lies_in_quads(""):
        lent = worker.lend()
        assert worker.deliver(visit(lent), lies_in_quads(lent.task.url)[name]) is True, name
        failed.append(lent.task.url)
    refused = {}
    for name in lies_in_visits(worker.lend()):
        lent = worker.lend()
        told = lies_in_visits(lent)[name]
        refused[name] = answer(lambda lent=lent, told=told: worker.deliver(told, quad(lent.task.url)))
    for name, value in lies_in_calls(worker.lend()).items():
        refused[name] = answer(lambda name=name, value=value: worker.ask(name, value, object))
    assert refused.pop("a lease that nobody has") is False
    assert refused == dict.fromkeys(refused, "INVALID_ARGUMENT")
    assert "a lie" not in tamias.run("export", "--history", "--graph", "all").stdout
    captures = session.fetch_all(b"SELECT url, outcome, quads FROM capture ORDER BY url")
    assert captures == [(url, Outcome.FAILED, 0) for url in sorted(failed)]
    assert session.fetch_one(b"SELECT count(*) FROM robots") == (0,)
    assert session.fetch_one(b"SELECT count(*) FROM url") == (HOSTS,)
    assert session.fetch_one(b"SELECT count(*) FROM unreachable") == (0,)
    checked = tamias.run("check")
    assert checked.returncode == 0, checked.stdout


def test_pauses_and_delays_that_a_far_worker_tells_are_bounded(archive):
    _, session, service = archive
    worker = FarWorker(service.address)
    lent = worker.lend()
    closed = Rules(blanket=RobotsVerdict(False, "closed"))
    worker.ask("PutRobots", (lent.lease, f"http://{lent.lease.host}", closed, 200, 10**9), object)
    worker.release(lent.lease, blocked_until=FAR, delay_ms=2**31 - 1)
    tomorrow = session.now() + 25 * 3_600_000
    assert session.fetch_all(b"SELECT expires_at FROM robots WHERE expires_at > " + b"%d" % tomorrow) == []
    assert session.fetch_all(b"SELECT qid FROM host WHERE ready_at > " + b"%d" % tomorrow) == []


def test_an_honest_visit_is_stored_unless_its_url_was_forgotten_meanwhile(archive):
    tamias, session, service = archive
    worker = FarWorker(service.address)
    kept, gone = worker.lend(), worker.lend()
    order(session, [(resource_id(gone.task.url), gone.task.url, None)], "asked for", "me")
    for lent in (kept, gone):
        assert worker.deliver(visit(lent), quad(lent.task.url)) is True
    exported = tamias.run("export").stdout
    assert exported == quad(kept.task.url)


def test_check_says_that_a_segment_holds_no_nquads(archive):
    tamias, session, service = archive
    worker = FarWorker(service.address)
    lent = worker.lend()
    assert worker.deliver(visit(lent), quad(lent.task.url)) is True
    service.stop()
    (path,) = (tamias.data / "rdf").glob("*.nq.zst")
    written = quad(lent.task.url).encode()
    path.write_bytes(zstandard.compress(b"this is no statement at all".ljust(len(written) - 1) + b"\n"))
    session.execute(b"UPDATE stored_file SET committed = %d WHERE committed > 0" % path.stat().st_size)
    checked = tamias.run("check")
    assert checked.returncode == 1
    assert "no N-Quads" in checked.stdout
