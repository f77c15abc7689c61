"""A struct declares the rows of a table: what is written comes back, and the database has each column."""

from contextlib import closing
from typing import Annotated
from uuid import UUID

import msgspec
import pytest

from tamias.archive.blobs.blob import Blob
from tamias.archive.captures import all_captures, insert_captures
from tamias.database.columns import Ints, RowSchema, columns
from tamias.model.capture import CaptureRecord, Column, Extent, Hop, Outcome, new_capture_id
from tamias.model.lease import Lease, Task
from tamias.model.site import Signal
from tamias.sinks.outbox import Edition

LEASE = Lease(host="example.org", qid=-5, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())
TASK = Task(uid=2**62, url="http://example.org/a", crawl=1, depth=3, score=0.5)
PLAIN = CaptureRecord(
    id=str(new_capture_id(1)),
    crawl=1,
    url="http://example.org/a",
    started_at=1,
    ended_at=2,
    outcome=Outcome.FAILED,
    reason="nobody answered",
    depth=3,
    final_url="http://example.org/a",
    worker="1",
    agent="Tamias",
)
FULL = msgspec.structs.replace(
    PLAIN,
    id=str(new_capture_id(2)),
    started_at=3,
    outcome=Outcome.OK,
    final_url="http://example.org/ö",
    hops=(Hop(url="http://example.org/a", status=200, address="192.0.2.1", headers=(("A", "b"),)),),
    status=200,
    declared_type="text/turtle; charset=ö",
    found_type="text/turtle",
    bytes=2**40,
    sha256="ab" * 32,
    quads=7,
    links=8,
    problems=("line 1", "line 2"),
    extent=Extent(segment=1, frame=2, start=3, length=2**33),
    renamed_graphs=(("a", "b"),),
    signals=(Signal(source="header", key="x-robots-tag", value="noindex"),),
    deferred=True,
)


def written_and_read(database, *records):
    with closing(database.session()) as session:
        session.transact(lambda cursor: insert_captures(cursor, [(LEASE, TASK, each) for each in records]))
        return list(all_captures(session))


def test_a_capture_comes_back_as_it_was_written(clean_database):
    back = written_and_read(clean_database, PLAIN, FULL)
    assert [msgspec.structs.replace(each, crawl_name="") for each in back] == [PLAIN, FULL]


def test_what_postgresql_cannot_hold_is_replaced(clean_database):
    odd = msgspec.structs.replace(FULL, reason="a\0b\ud800", problems=("c\0d\ud800", "\\u0000"))
    (back,) = written_and_read(clean_database, odd)
    assert back.reason == "a\ufffdb?"
    assert back.problems == ("c\ufffdd?", "\\u0000")


@pytest.mark.parametrize(
    ("struct", "table"), [(CaptureRecord, "capture"), (Blob, "blob"), (Edition, "outbox")]
)
def test_the_table_has_each_declared_column_in_its_type(database, struct, table):
    schema = RowSchema(struct, table)
    with closing(database.session()) as session:
        listed = (
            "SELECT column_name, udt_name FROM information_schema.columns WHERE table_name = %s AND "
            "table_schema = 'tamias'"
        )
        there = dict(session.transact(lambda cursor: cursor.execute(listed, [table]).fetchall()))
    assert {field.column: field.type for field in schema.fields}.items() <= there.items()


def test_a_field_more_is_a_column_more():
    class Wider(Edition, frozen=True):
        note: Annotated[int, Column("int4", "remark")] = 0

    schema = RowSchema(Wider, "outbox")
    row = Wider("http://example.org/", UUID(int=1), None, note=9)
    assert schema.parameters([row])["remark"] == columns({"remark": Ints}, [(9,)])["remark"]
    assert schema.decode([row.document, row.capture, None, None, None, None, 9]) == row
