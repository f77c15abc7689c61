"""The outbox against a real database."""

from uuid import UUID

import pytest

from tamias.archive.captures import insert_captures
from tamias.model.capture import Outcome
from tamias.model.item import NEVER
from tamias.model.lease import Lease, Task
from tamias.sinks.outbox import Outbox, Settled, add_sink, enqueue, enqueue_metadata, give_back

A, B = "http://a.example/doc", "http://b.example/doc"
QUAD = b"<http://e/s> <http://e/p> <http://e/o> <http://e/g> .\n"


@pytest.fixture
def sink(session):
    return add_sink(session, "turtle-files", 1)


@pytest.fixture
def outbox(session, sink):
    return Outbox(session, sink, worker=7)


def put(session, sink, *records):
    session.transact(lambda cursor: enqueue(cursor, [(0, record) for record in records], [sink]))


def claimed(outbox, seconds=60.0):
    return outbox.claim(10, seconds)


def documents(claims):
    return sorted(claim.edition.document for claim in claims)


def test_what_was_enqueued_is_claimed_once(session, sink, outbox, corpus):
    put(session, sink, corpus.capture(A, QUAD), corpus.capture(B, QUAD))
    assert documents(claimed(outbox)) == [A, B]
    assert claimed(outbox) == []


def test_the_same_capture_twice_is_delivered_once(session, sink, outbox, corpus):
    record = corpus.capture(A, QUAD)
    put(session, sink, record)
    outbox.settle([Settled(claim, NEVER) for claim in claimed(outbox)])
    put(session, sink, record)
    assert claimed(outbox) == []


def test_of_two_captures_the_later_one_is_delivered(session, sink, outbox, corpus):
    first, second = corpus.capture(A, QUAD), corpus.capture(A, QUAD + QUAD)
    put(session, sink, second, first)
    (claim,) = claimed(outbox)
    assert claim.edition.capture == UUID(second.id)


def test_an_older_capture_that_comes_late_is_skipped(session, sink, outbox, corpus):
    first, second = corpus.capture(A, QUAD), corpus.capture(A, QUAD)
    put(session, sink, second)
    outbox.settle([Settled(claim, NEVER) for claim in claimed(outbox)])
    put(session, sink, first)
    assert claimed(outbox) == []


def test_a_capture_that_comes_while_an_older_one_is_held_waits_for_it(session, sink, outbox, corpus):
    put(session, sink, corpus.capture(A, QUAD))
    held = claimed(outbox)
    newer = corpus.capture(A, QUAD)
    put(session, sink, newer)
    assert claimed(outbox) == []
    outbox.settle([Settled(claim, NEVER) for claim in held])
    (claim,) = claimed(outbox)
    assert claim.edition.capture == UUID(newer.id)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.UNCHANGED, Outcome.REFUSED, Outcome.SKIPPED])
def test_an_attempt_that_says_nothing_about_the_document_is_not_delivered(
    session, sink, outbox, corpus, outcome
):
    put(session, sink, corpus.capture(A, b"", outcome=outcome))
    assert claimed(outbox) == []


def test_a_document_read_up_to_a_limit_is_delivered(session, sink, outbox, corpus):
    put(session, sink, corpus.capture(A, QUAD, outcome=Outcome.FAILED))
    assert documents(claimed(outbox)) == [A]


def test_a_document_that_is_gone_is_delivered_without_quads(session, sink, outbox, corpus):
    put(session, sink, corpus.capture(A, b"", outcome=Outcome.GONE))
    (claim,) = claimed(outbox)
    assert claim.edition.extent is None


def test_a_hold_that_ended_is_anybodys(session, sink, outbox, corpus):
    put(session, sink, corpus.capture(A, QUAD))
    (late,) = claimed(outbox, seconds=-1)
    assert documents(claimed(outbox)) == [A]
    outbox.settle([Settled(late, NEVER)])
    assert outbox.waiting().documents == 1


def test_a_renewed_hold_is_still_ours(session, sink, outbox, corpus):
    put(session, sink, corpus.capture(A, QUAD))
    (renewed,) = outbox.renew(claimed(outbox, seconds=30), 60)
    outbox.settle([Settled(renewed, NEVER)])
    assert outbox.waiting().documents == 0


def test_a_hold_that_was_lost_is_not_renewed(session, sink, outbox, corpus):
    put(session, sink, corpus.capture(A, QUAD))
    late = claimed(outbox, seconds=-1)
    claimed(outbox)
    assert outbox.renew(late, 60) == []


def test_what_a_dead_worker_held_is_due_again(session, sink, outbox, corpus):
    put(session, sink, corpus.capture(A, QUAD))
    claimed(outbox)
    give_back(session, [7], 1)
    assert documents(claimed(outbox)) == [A]


def test_a_refused_document_is_told_and_not_tried_again(session, sink, outbox, corpus):
    put(session, sink, corpus.capture(A, QUAD))
    outbox.settle([Settled(claim, NEVER, problem="no such thing") for claim in claimed(outbox)])
    assert outbox.refused() == [(A, "no such thing")]
    assert outbox.waiting().documents == 0


def test_a_refused_document_is_tried_again_when_it_changed(session, sink, outbox, corpus):
    put(session, sink, corpus.capture(A, QUAD))
    outbox.settle([Settled(claim, NEVER, problem="no such thing") for claim in claimed(outbox)])
    put(session, sink, corpus.capture(A, QUAD))
    assert documents(claimed(outbox)) == [A]
    assert outbox.refused() == []


def test_every_sink_has_its_own_deliveries(session, sink, outbox, corpus):
    other = add_sink(session, "sparql:http://e/", 1)
    session.transact(lambda cursor: enqueue(cursor, [(0, corpus.capture(A, QUAD))], [sink, other]))
    outbox.settle([Settled(claim, NEVER) for claim in claimed(outbox)])
    assert documents(claimed(Outbox(session, other))) == [A]


def test_a_sink_named_again_is_the_same(session, sink):
    assert add_sink(session, "turtle-files", 1) == sink


def test_a_sink_that_is_named_later_gets_what_was_captured_before(session, corpus):
    for url in (A, B):
        row(session, corpus.capture(url, QUAD))
    row(session, corpus.capture(B, b"", outcome=Outcome.GONE))
    sink = add_sink(session, "late", 1)
    claims = claimed(Outbox(session, sink))
    found = {claim.edition.document: claim.edition.extent is None for claim in claims}
    assert found == {A: False, B: True, **{f"urn:uuid:{UUID(int=number)}": True for number in (1, 2, 3)}}


def test_a_sink_that_was_left_out_for_a_while_catches_up(session, sink, outbox, corpus):
    record = corpus.capture(A, QUAD)
    row(session, record)
    put(session, sink, record)
    outbox.settle([Settled(claim, NEVER) for claim in claimed(outbox)])
    row(session, corpus.capture(B, QUAD))
    add_sink(session, "turtle-files", 1)
    assert documents(claimed(outbox)) == [B, f"urn:uuid:{UUID(int=2)}"]


def test_what_was_told_of_attempts_leaves_one_row_that_says_how_far(session, sink, outbox, corpus):
    records = [
        corpus.capture(A, QUAD),
        corpus.capture(A, QUAD),
        corpus.capture(B, b"", outcome=Outcome.FAILED),
    ]
    for record in records:
        row(session, record)
    told = [(0, record) for record in records]
    for _ in range(2):
        session.transact(lambda cursor: enqueue_metadata(cursor, told, [sink]))
    claims = claimed(outbox)
    assert documents(claims) == [f"urn:uuid:{record.id}" for record in records]
    outbox.settle([Settled(claim, NEVER) for claim in claims])
    rows = "SELECT document, capture FROM outbox"
    left = session.transact(lambda cursor: cursor.execute(rows).fetchall())
    assert left == [("urn:tamias:metadata", UUID(records[-1].id))]
    add_sink(session, "turtle-files", 1)
    assert claimed(outbox) == []


def row(session, record):
    task = Task(uid=1, url="", crawl=1, depth=0, score=0.0)
    lease = Lease(host="", qid=1, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())
    session.transact(lambda cursor: insert_captures(cursor, [(lease, task, record)]))
