"""Notes of documents under analysis, for whoever comes after a dead worker."""

from tamias.crawl.analysing.marker import AnalysisMarker, left_by
from tamias.model.lease import Lease, Task

LEASE = Lease(host="example.org", qid=1, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())


def task(url="http://example.org/"):
    return Task(uid=1, url=url, crawl=1, depth=0, score=1.0)


def test_a_document_is_noted_while_it_is_analysed(tmp_path):
    marker = AnalysisMarker(tmp_path, 7)
    with marker.analysing(LEASE, task()):
        (left,) = left_by(tmp_path, 7)
    assert (left.task, left.lease) == (task(), LEASE)


def test_a_small_and_a_large_document_are_noted_together(tmp_path):
    marker = AnalysisMarker(tmp_path, 7)
    with marker.analysing(LEASE, task("http://a/")), marker.analysing(LEASE, task("http://b/")):
        assert {each.task.url for each in left_by(tmp_path, 7)} == {"http://a/", "http://b/"}


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
    (tmp_path / "7").write_bytes(b'{"lease": [')
    assert left_by(tmp_path, 7) == []
