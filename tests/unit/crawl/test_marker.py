"""Notes of documents under analysis, for whoever comes after a dead worker."""

from tamias.crawl.analysis.marker import AnalysisMarker, left_by
from tamias.model.lease import Lease, Task

LEASE = Lease(host="example.org", qid=1, bucket=4, token=1, ends_at=0, delay_ms=0, tasks=())


def task(uid=2):
    return Task(uid=uid, url="http://example.org/", crawl=3, depth=0, score=1.0)


def test_a_document_is_noted_while_it_is_analysed(tmp_path):
    marker = AnalysisMarker(tmp_path, 7)
    with marker.analysing(LEASE, task()):
        (left,) = left_by(tmp_path, 7)
    assert left == (4, 1, 3, 2)


def test_a_small_and_a_large_document_are_noted_together(tmp_path):
    marker = AnalysisMarker(tmp_path, 7)
    longest = 2**63 - 1, -(2**63)
    with marker.analysing(LEASE, task(longest[0])), marker.analysing(LEASE, task(longest[1])):
        assert {uid for _, _, _, uid in left_by(tmp_path, 7)} == set(longest)


def test_an_analysed_document_leaves_no_note(tmp_path):
    marker = AnalysisMarker(tmp_path, 7)
    with marker.analysing(LEASE, task()):
        pass
    assert left_by(tmp_path, 7) == []


def test_a_worker_that_is_told_to_end_blames_nobody(tmp_path):
    marker = AnalysisMarker(tmp_path, 7)
    with marker.analysing(LEASE, task()):
        marker.close()
        assert left_by(tmp_path, 7) == []
    with marker.analysing(LEASE, task()):
        assert left_by(tmp_path, 7) == []


def test_a_note_is_read_once(tmp_path):
    marker = AnalysisMarker(tmp_path, 7)
    with marker.analysing(LEASE, task()):
        assert len(left_by(tmp_path, 7)) == 1
        assert left_by(tmp_path, 7) == []


def test_a_torn_note_is_no_note(tmp_path):
    (tmp_path / "7").write_bytes(b"[4, 1, 3")
    assert left_by(tmp_path, 7) == []
