"""Captures on their way from the outbox to sinks: nothing missing, nothing twice, whoever is killed."""

import itertools
import random
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest
from pyoxigraph import RdfFormat, parse, serialize

from tamias.features.graph_stores.document_files import TurtleFiles, read_index
from tamias.features.graph_stores.placement import Placement, PostgresLedger
from tamias.features.graph_stores.sparql_sink import SparqlStore
from tamias.features.hdt.writer import hdt_files
from tamias.model.capture import Outcome
from tamias.model.errors import ConfigError, DiskFull
from tamias.sinks.delivery import Deliverer, DocumentRefused, SinkAway, SinkStumbled
from tamias.sinks.outbox import Outbox, add_sink, enqueue

LABELS = itertools.count()
A, B = "http://a.example/doc", "http://a.example/dump"


def url(number):
    return f"http://host{number % 7}.example/{number}"


def quads(graph, *numbers):
    """Blank nodes are never shared, as none are between documents."""
    return b"".join(
        f'<http://e/{n}> <http://e/p> "{n}" <{graph}> .\n'
        f"_:b{next(LABELS)} <http://e/p> <http://e/{n}> <{graph}> .\n".encode()
        for n in numbers
    )


class RecordingSink:
    """A sink in memory that fails as it is told to."""

    def __init__(self):
        self.documents = {}
        self.failures = []
        self.synced = 0

    def deliver(self, edition, nquads, beat):
        if self.failures and (failure := self.failures.pop(0)):
            raise failure
        self.documents[edition.document] = b"".join(nquads)

    def sync(self):
        self.synced += 1

    def close(self):
        pass


@pytest.fixture
def number(session):
    return add_sink(session, "sink", 1)


@pytest.fixture
def put(session, number):
    def put(*records):
        session.transact(lambda cursor: enqueue(cursor, [(0, record) for record in records], [number]))

    return put


@pytest.fixture
def recording():
    return RecordingSink()


@pytest.fixture
def deliverer(session, number, corpus, recording):
    return Deliverer(Outbox(session, number), recording, corpus.read)


def drain(deliverer, outbox):
    deadline = time.monotonic() + 60
    while outbox.waiting().documents:
        assert time.monotonic() < deadline, "the outbox is never empty"
        time.sleep(min(deliverer.round().wait, 0.1))


class TestRounds:
    def test_every_document_arrives(self, put, corpus, deliverer, recording):
        put(*(corpus.capture(url(n), quads(url(n), n)) for n in range(5)))
        assert deliverer.round().delivered == 5
        assert recording.documents == corpus.current

    def test_with_nothing_to_do_there_is_a_pause(self, deliverer):
        assert deliverer.round().wait > 0

    def test_deliveries_are_durable_before_they_are_marked_as_done(
        self, put, corpus, deliverer, recording, session, number
    ):
        put(corpus.capture(A, quads(A, 1)))
        recording.sync = lambda: (_ for _ in ()).throw(DiskFull("full"))
        with pytest.raises(DiskFull):
            deliverer.round()
        assert Outbox(session, number).waiting().documents == 1

    def test_a_sink_that_is_away_is_left_alone_and_nothing_is_lost(
        self, put, corpus, deliverer, recording, session, number
    ):
        put(*(corpus.capture(url(n), quads(url(n), n)) for n in range(5)))
        recording.failures = [None, SinkAway("gone fishing", 0.01)]
        progress = deliverer.round()
        assert (progress.delivered, progress.wait, progress.trouble) == (1, 0.01, "gone fishing")
        drain(deliverer, Outbox(session, number))
        assert recording.documents == corpus.current

    def test_a_sink_that_stays_away_is_asked_less_and_less_often(self, put, corpus, deliverer, recording):
        put(corpus.capture(A, quads(A, 1)))
        waits = []
        for now in (2**50, 2**51):
            deliverer._outbox.now = lambda now=now: now
            recording.failures = [SinkAway("away")]
            waits.append(deliverer.round().wait)
        assert waits[1] > waits[0]

    def test_a_document_over_which_the_sink_stumbles_holds_nobody_up(
        self, put, corpus, deliverer, recording, session, number
    ):
        put(corpus.capture(A, quads(A, 1)), corpus.capture(B, quads(B, 1)))
        recording.failures = [SinkStumbled("oops")]
        progress = deliverer.round()
        assert (progress.delivered, progress.put_off, list(recording.documents)) == (1, 1, [B])
        assert Outbox(session, number).waiting().documents == 1

    def test_a_refused_document_is_told_and_holds_nobody_up(
        self, put, corpus, deliverer, recording, session, number
    ):
        put(corpus.capture(A, quads(A, 1)), corpus.capture(B, quads(B, 1)))
        recording.failures = [DocumentRefused("bad quads")]
        assert deliverer.round().refused == 1
        assert Outbox(session, number).refused() == [(A, "bad quads")]

    def test_a_mistake_of_configuration_ends_the_delivery_and_loses_nothing(
        self, put, corpus, deliverer, recording, session, number
    ):
        put(corpus.capture(A, quads(A, 1)), corpus.capture(B, quads(B, 1)))
        recording.failures = [None, ConfigError("wrong password")]
        with pytest.raises(ConfigError):
            deliverer.round()
        drain(deliverer, Outbox(session, number))
        assert recording.documents == corpus.current

    def test_quads_that_cannot_be_read_back_are_told(self, put, corpus, deliverer, session, number):
        record = corpus.capture(A, quads(A, 1))
        put(record)
        deliverer._read = lambda extent: corpus.read(type(extent)(99, 0, 0, 10))
        assert deliverer.round().refused == 1
        assert "99.nq.zst is damaged" in Outbox(session, number).refused()[0][1]

    def test_a_delivery_that_took_too_long_leaves_the_document_to_the_other(
        self, put, corpus, session, number, recording
    ):
        put(corpus.capture(A, quads(A, 1)))
        outbox = Outbox(session, number)

        class Slow(RecordingSink):
            def deliver(self, edition, nquads, beat):
                (self.other,) = outbox.claim(1, 60)  # the hold is over before it begins
                beat()

        slow = Slow()
        Deliverer(outbox, slow, corpus.read, hold_seconds=-1).round()
        assert slow.documents == {}
        assert outbox.renew([slow.other], 60)

    def test_a_thread_delivers_until_it_is_told_to_end(self, put, corpus, deliverer, recording):
        put(*(corpus.capture(url(n), quads(url(n), n)) for n in range(50)))
        ending = threading.Event()

        def told(progress):
            if len(recording.documents) == 50:
                ending.set()

        deliverer.run(ending, told)
        assert recording.documents == corpus.current


class TestFiles:
    def test_turtle_files_hold_the_triples_of_the_export(
        self, put, corpus, session, number, tmp_path, comparable
    ):
        put(
            *(
                corpus.capture(url(n), quads(url(n), n) + quads(url(n) + "#graph=x", *range(n % 3)))
                for n in range(30)
            )
        )
        folder = tmp_path / "turtle"
        with closing(TurtleFiles(folder, compress=True)) as sink:
            drain(Deliverer(Outbox(session, number), sink, corpus.read), Outbox(session, number))
        assert comparable(b"".join(turtle_quads(folder))) == corpus.exported()

    def test_hdt_files_hold_the_triples_of_the_export(
        self, put, corpus, session, number, tmp_path, comparable
    ):
        put(*(corpus.capture(url(n), quads(url(n), n, n + 1)) for n in range(20)))
        folder = tmp_path / "hdt"
        with closing(hdt_files(str(folder), None)) as sink:
            drain(Deliverer(Outbox(session, number), sink, corpus.read), Outbox(session, number))
        assert comparable(b"".join(hdt_quads(folder))) == corpus.exported()


class TestSparql:
    @pytest.fixture(params=["store", "update"])
    def deliver(self, request, sparql_server, session, number, corpus):
        store = SparqlStore(f"{sparql_server.url}/{request.param}", batch_bytes=500)
        placement = Placement(store, PostgresLedger(session, number), corpus.read)
        outbox = Outbox(session, number)
        deliverer = Deliverer(outbox, placement, corpus.read)
        yield lambda: drain(deliverer, outbox)
        placement.close()

    def test_the_server_holds_what_the_export_holds(self, put, corpus, deliver, sparql_server):
        put(*(corpus.capture(url(n), quads(url(n), n)) for n in range(20)))
        deliver()
        assert sparql_server.content() == corpus.exported()

    def test_a_graph_that_a_document_left_is_removed(self, put, corpus, deliver, sparql_server):
        put(corpus.capture(A, quads(A, 1) + quads(A + "#graph=x", 2)))
        deliver()
        put(corpus.capture(A, quads(A, 1)))
        deliver()
        assert sparql_server.content() == corpus.exported()

    def test_a_document_that_is_gone_is_removed(self, put, corpus, deliver, sparql_server):
        put(corpus.capture(A, quads(A, 1)), corpus.capture(B, quads(B, 1)))
        deliver()
        put(corpus.capture(A, b"", outcome=Outcome.GONE))
        deliver()
        assert sparql_server.content() == corpus.exported()

    def test_two_documents_may_write_into_one_graph(self, put, corpus, deliver, sparql_server):
        put(corpus.capture(A, quads(A, 1)))
        deliver()
        put(corpus.capture(B, quads(B, 2) + quads(A, 3)))
        deliver()
        assert sparql_server.content() == corpus.exported()

    def test_a_document_that_leaves_a_shared_graph_leaves_the_others_part(
        self, put, corpus, deliver, sparql_server
    ):
        put(corpus.capture(A, quads(A, 1)), corpus.capture(B, quads(A, 3)))
        deliver()
        put(corpus.capture(B, quads(B, 3)))
        deliver()
        assert sparql_server.content() == corpus.exported()

    def test_of_a_shared_graph_both_parts_are_brought_up_to_date(self, put, corpus, deliver, sparql_server):
        put(corpus.capture(A, quads(A, 1)), corpus.capture(B, quads(A, 3)))
        deliver()
        put(corpus.capture(A, quads(A, 5)))
        deliver()
        put(corpus.capture(B, quads(A, 6)))
        deliver()
        assert sparql_server.content() == corpus.exported()

    def test_the_part_that_somebody_adds_meanwhile_is_not_lost(
        self, put, corpus, sparql_server, session, number, database
    ):
        """Another deliverer writes the shared graph between our reading of the ledger and our writing."""
        put(corpus.capture(A, quads(A, 1)), corpus.capture(B, quads(A, 3)))
        outbox = Outbox(session, number)
        claims = {claim.edition.document: claim.edition for claim in outbox.claim(2, 60)}

        class Interrupted(SparqlStore):
            def replace(self, graph, triples, beat):
                if claims:
                    edition = claims.pop(B)
                    claims.clear()
                    other.deliver(edition, corpus.read(edition.extent), lambda: None)
                super().replace(graph, triples, beat)

        with closing(database.session()) as second:
            ledger = PostgresLedger(second, number)
            other = Placement(SparqlStore(sparql_server.url + "/store"), ledger, corpus.read)
            ours = Placement(
                Interrupted(sparql_server.url + "/store"), PostgresLedger(session, number), corpus.read
            )
            ours.deliver(claims[A], corpus.read(claims[A].extent), lambda: None)
        assert sparql_server.content() == corpus.exported()

    def test_a_server_killed_and_started_again_misses_nothing_and_holds_nothing_twice(
        self, put, corpus, sparql_server, session, number
    ):
        chance = random.Random(3)
        outbox = Outbox(session, number)
        store = SparqlStore(sparql_server.url + "/store")
        deliverer = Deliverer(
            outbox, Placement(store, PostgresLedger(session, number), corpus.read), corpus.read
        )
        nurse = threading.Thread(target=killed_and_started, args=(sparql_server, 5))
        nurse.start()
        while nurse.is_alive():
            put(*(some_capture(corpus, chance) for _ in range(10)))
            time.sleep(min(deliverer.round().wait, 0.1))
        nurse.join()
        drain(deliverer, outbox)
        store.close()
        assert sparql_server.content() == corpus.exported()


def test_deliverers_that_are_killed_miss_nothing_and_deliver_nothing_twice(
    put, corpus, sparql_server, session, number, database, tmp_path
):
    """Two processes deliver and are killed again and again, while captures come in."""
    chance = random.Random(5)
    outbox = Outbox(session, number)
    for _ in range(6):
        put(*(some_capture(corpus, chance) for _ in range(40)))
        processes = [started(database, number, tmp_path / "rdf", sparql_server.url) for _ in range(2)]
        for process in processes:
            process.stdout.readline()
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()
        session.transact(lambda cursor: cursor.execute("UPDATE outbox SET due = 0 WHERE worker = 9"))
    store = SparqlStore(sparql_server.url + "/store")
    drain(
        Deliverer(outbox, Placement(store, PostgresLedger(session, number), corpus.read), corpus.read), outbox
    )
    store.close()
    assert sparql_server.content() == corpus.exported()


PROGRAM = """
import sys
from pathlib import Path
from tamias.database.connect import Database
from tamias.sinks.delivery import Deliverer
from tamias.sinks.outbox import Outbox
from tamias.features.graph_stores.placement import Placement, PostgresLedger
from tamias.sinks.segments.segment_files import SegmentReader
from tamias.features.graph_stores.sparql_sink import SparqlStore
data, sink, rdf, url = sys.argv[1:]
session = Database(Path(data)).session()
read = SegmentReader(lambda segment: (Path(rdf) / f"{segment}.nq.zst").open("rb")).read
store = SparqlStore(url + "/store")
deliverer = Deliverer(
    Outbox(session, int(sink), worker=9), Placement(store, PostgresLedger(session, int(sink)), read), read
)
while True:
    print(deliverer.round().delivered, flush=True)
"""


def started(database, number, rdf, url):
    data = database.embedded._data
    command = [sys.executable, "-c", PROGRAM, str(data), str(number), str(rdf), url]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def killed_and_started(server, times):
    for _ in range(times):
        time.sleep(0.3)
        server.kill()
        time.sleep(0.1)
        server.start()


def some_capture(corpus, chance):
    """A new or changed document of a site whose documents write into each other's graphs."""
    n = chance.randrange(30)
    if chance.random() < 0.1:
        return corpus.capture(url(n), b"", outcome=Outcome.GONE)
    graphs = [url(n), url(n % 5), url(n) + f"#graph={chance.randrange(3)}"]
    return corpus.capture(url(n), b"".join(quads(graph, chance.randrange(99)) for graph in graphs))


def turtle_quads(folder):
    import gzip

    for name, file in read_index(folder).items():
        text = gzip.decompress((folder / file).read_bytes())
        if file.endswith(".trig.gz"):
            yield serialize(parse(text, format=RdfFormat.TRIG), format=RdfFormat.N_QUADS)
        else:
            triples = serialize(parse(text, format=RdfFormat.TURTLE), format=RdfFormat.N_QUADS)
            yield triples.replace(b" .\n", f" <{name}> .\n".encode())


def hdt_quads(folder):
    from tamias.features.hdt.reader import Hdt

    for name, file in read_index(folder).items():
        hdt = Hdt((folder / file).read_bytes(), most=10**6)
        for batch in hdt.batches(1000):
            for s, p, o in zip(batch.subjects, batch.predicates, batch.objects, strict=True):
                terms = [hdt.subjects.strings(s[None])[0], hdt.predicates.strings(p[None])[0]]
                terms.append(hdt.objects.strings(o[None])[0])
                said = b" ".join(t if t.startswith((b"_:", b'"')) else b"<%b>" % t for t in terms)
                yield said + f" <{name}> .\n".encode()
