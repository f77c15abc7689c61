"""What is current after a history of captures."""

from contextlib import closing
from uuid import UUID

import pytest

from tamias.archive.captures import current_extents, insert_captures
from tamias.database.connect import Database
from tamias.model.capture import CaptureRecord, Extent, Outcome
from tamias.model.lease import Lease, Task

OK, GONE, FAILED, UNCHANGED = Outcome.OK, Outcome.GONE, Outcome.FAILED, Outcome.UNCHANGED
HISTORIES = {
    "read": ([(OK, 1, "a", 200)], 1),
    "read twice": ([(OK, 1, "a", 200), (OK, 2, "b", 200)], 2),
    "same body, not read again": ([(OK, 1, "a", 200), (OK, None, "a", 200), (OK, None, "a", 200)], 1),
    "not modified": ([(OK, 1, "a", 200), (UNCHANGED, None, None, 304)], 1),
    "moved elsewhere": ([(OK, 1, "a", 200), (OK, None, None, 302)], 1),
    "failed": ([(OK, 1, "a", 200), (FAILED, None, None, 503)], 1),
    "read without quads": ([(OK, 1, "a", 200), (OK, None, "b", 200)], None),
    "and that again": ([(OK, 1, "a", 200), (OK, None, "b", 200), (OK, None, "b", 200)], None),
    "gone": ([(OK, 1, "a", 200), (GONE, None, None, 410)], None),
    "back": ([(OK, 1, "a", 200), (GONE, None, None, 410), (OK, 2, "a", 200)], 2),
    "cut": ([(FAILED, 1, "a", 200), (FAILED, 2, "b", 200)], 2),
    "cut after a whole reading": ([(OK, 1, "a", 200), (FAILED, 2, "b", 200)], 1),
    "whole after a cut one": ([(FAILED, 1, "a", 200), (OK, 2, "b", 200), (FAILED, 3, "c", 200)], 2),
    "cut after it was gone": ([(OK, 1, "a", 200), (GONE, None, None, 404), (FAILED, 2, "b", 200)], 2),
    "a harvest": ([(OK, 1, None, 200), (OK, 2, None, 200)], 2),
    "a harvest without quads": ([(OK, 1, None, 200), (OK, None, None, 200)], None),
    "never any quads": ([(OK, None, "a", 200), (OK, None, "b", 200)], None),
}


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """What is current, by history: the numbers of segments say which reading it is."""
    with (
        closing(Database(tmp_path_factory.mktemp("new"))) as database,
        closing(database.session()) as session,
    ):
        for attempt in _attempts():
            session.transact(lambda cursor, attempt=attempt: insert_captures(cursor, [attempt]))
        yield {extent.frame: extent.segment for extent in current_extents(session)}


def _attempts():
    lease = Lease(host="", qid=1, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())
    task = Task(uid=1, url="", crawl=1, depth=0, score=0.0)
    moment = 0
    for number, (name, (history, _)) in enumerate(HISTORIES.items()):
        last = None
        for outcome, segment, body, status in history:
            moment += 1
            read = outcome is OK and status == 200 and (body is None or body != last)
            last = body
            record = CaptureRecord(
                id=str(UUID(int=moment)), crawl=1, url=name, started_at=moment, ended_at=moment,
                outcome=outcome, reason="", depth=0, final_url=name, status=status, read=read,
                extent=None if segment is None else Extent(segment, number, 0, 10), worker="w", agent="a",
            )  # fmt: skip
            yield lease, task, record


@pytest.mark.parametrize("name", HISTORIES)
def test_what_was_last_read_is_current(committed, name):
    assert committed.get(list(HISTORIES).index(name)) == HISTORIES[name][1]
