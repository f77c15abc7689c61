"""`tamias check`: every damage is found and named, what can be mended is, and the rest is unharmed."""

import hashlib
import json
from contextlib import closing

import msgspec
import pytest

from tamias.archive.captures import insert_captures
from tamias.archive.stored_files import commit_files, new_segment
from tamias.features.check.checkup import Checkup
from tamias.features.repack.recode import recode_versions
from tamias.features.warc.warc_writer import WarcWriter
from tamias.model.capture import Body, Capture, CaptureRecord, Hop, Outcome
from tamias.sinks.segments import segment_files as segments
from tamias.sinks.segments.segment_files import SegmentWriter
from tests.messages import unsaid

URL = "http://data.example/a.csv"
VERSIONS = [b"".join(b"%d,%d\n" % (n, n * day) for n in range(500)) for day in range(1, 5)]


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def kept(filled):
    filled.put(URL, *VERSIONS)
    filled.put("http://data.example/b.csv", b"other\n")
    return filled


@pytest.fixture
def checkup(kept):
    with closing(Checkup(kept.database, kept.data)) as checkup:
        yield checkup


def put_documents(filled, contents):
    """A segment with these documents."""
    folder = filled.data / "rdf"
    folder.mkdir(exist_ok=True)
    stored = new_segment(filled.session, 1)
    with SegmentWriter(filled.data / stored.key, stored.segment) as writer:
        extents = []
        for content in contents:
            with writer.document() as document:
                document.write(content)
                extents.append(document.extent)
        durable = msgspec.structs.replace(stored, committed=writer.sync(), sealed=True)
    filled.session.transact(lambda cursor: commit_files(cursor, [durable]))
    filled.session.transact(lambda cursor: insert_captures(cursor, [capture_of(each) for each in extents]))
    return filled.data / stored.key, extents


def capture_of(extent):
    from tamias.model.capture import new_capture_id
    from tamias.model.lease import Lease, Task

    record = CaptureRecord(
        id=str(new_capture_id(0)), crawl=1, url="http://data.example/", started_at=0, ended_at=0,
        outcome=Outcome.OK, reason="", depth=0, final_url="http://data.example/", extent=extent, worker="w",
        agent="a",
    )  # fmt: skip
    lease = Lease(host="", qid=1, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())
    return lease, Task(uid=1, url="", crawl=1, depth=0, score=0.0), record


def turn_over(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


def test_a_sound_archive_has_no_faults(kept, checkup):
    put_documents(kept, [b"<a:> <b:> <c:> .\n"])
    assert list(checkup.faults()) == []
    assert checkup.looked.blobs == 5
    assert checkup.looked.blob_bytes == sum(map(len, VERSIONS)) + 6
    assert checkup.looked.segments == 1


def test_a_flipped_bit_is_named_with_every_version_that_it_takes_along(kept, checkup):
    kept.flip(digest(VERSIONS[0]))
    (fault,) = checkup.faults()
    assert (fault.kind, fault.name) == ("blob", digest(VERSIONS[0]))
    chained = [digest(each) for each in VERSIONS[1:]]
    dependents = kept.rows("SELECT count(*) FROM blob WHERE base IS NOT NULL")[0][0]
    assert len(fault.versions) == 1 + dependents
    assert {holder.url for holder in fault.versions} == {URL}
    assert len(chained) >= dependents


def test_a_version_without_its_blob_is_named(kept, checkup):
    kept.run("DELETE FROM blob WHERE sha256 = %b", bytes.fromhex(digest(b"other\n")))
    (fault,) = checkup.faults()
    assert fault.kind == "version"
    assert fault.versions[0].url == "http://data.example/b.csv"


def test_a_lost_row_of_a_blob_is_made_anew_from_its_pack(kept, checkup):
    kept.writer.close()
    kept.run("DELETE FROM blob WHERE sha256 = %b", bytes.fromhex(digest(b"other\n")))
    assert [fault.mended for fault in checkup.repaired(list(checkup.faults()))] == [True]
    assert list(checkup.faults()) == []


def test_a_resource_that_tells_of_another_version_is_mended(kept, checkup):
    kept.run("UPDATE resource SET versions = 2, sha256 = NULL WHERE url = %b", URL)
    (fault,) = checkup.faults()
    assert fault.kind == "resource"
    assert [each.mended for each in checkup.repaired([fault])] == [True]
    assert list(checkup.faults()) == []


def test_a_gap_between_versions_is_found_and_stays(kept, checkup):
    kept.run("DELETE FROM version WHERE number = 2")
    (fault,) = checkup.faults()
    assert [each.mended for each in checkup.repaired([fault])] == [False]


def test_a_suspect_keeps_its_blob(kept, checkup):
    kept.put("http://data.example/c.csv", b"<html>", suspect=True)
    kept.writer.close()
    kept.run("UPDATE blob SET kept_at = now() - interval '2 days'")
    assert checkup.collected().blobs == 0


def test_what_no_version_needs_is_freed_after_a_while(kept, checkup):
    kept.run("DELETE FROM resource WHERE url = %b", "http://data.example/b.csv")
    kept.writer.close()
    assert checkup.collected().blobs == 0
    kept.run("UPDATE blob SET kept_at = now() - interval '2 days'")
    assert checkup.collected().blobs == 1
    assert list(checkup.faults()) == []


def test_a_flipped_bit_in_a_segment_loses_only_what_stands_there(kept, checkup, monkeypatch):
    monkeypatch.setattr(segments, "FRAME_BYTES", 100)
    path, extents = put_documents(kept, [b"<a:%d> <b:> <c:> .\n" % n for n in range(50)])
    frames = sorted({extent.frame for extent in extents})
    turn_over(path, frames[1] + 20)
    broken, lost = checkup.faults()
    assert not unsaid(broken.problem, frames[1])
    assert broken.name == f"rdf/{path.name}"
    inside = sum(extent.frame == frames[1] for extent in extents)
    assert lost.problem.startswith(f"the quads of {inside} captures")


def test_a_segment_that_is_gone_or_too_short_is_found(kept, checkup):
    path, _ = put_documents(kept, [b"<a:> <b:> <c:> .\n"])
    path.write_bytes(path.read_bytes()[:-3])
    assert [fault.kind for fault in checkup.faults()] == ["segment", "segment"]
    path.unlink()
    assert "cannot be read" in next(iter(checkup.faults())).problem


def test_a_flipped_bit_in_a_warc_file_is_found(kept, checkup):
    with WarcWriter(kept.data / "warc", "w", agent="a", accept="b") as writer:
        for number in range(3):
            body = Body(size=1, sha256=digest(b"%d" % number), data=b"%d" % number)
            hop = Hop(url="http://a.example/", status=200, headers=(), address="192.0.2.1")
            writer.write(
                Capture(
                    url=hop.url,
                    started_at=0,
                    ended_at=1,
                    outcome=Outcome.OK,
                    reason="",
                    hops=(hop,),
                    body=body,
                )
            )
    assert list(checkup.faults()) == []
    (path,) = (kept.data / "warc").glob("*.warc.gz")
    turn_over(path, path.stat().st_size // 2)
    (fault,) = checkup.faults()
    assert fault.kind == "warc"


def test_the_verb_ends_with_1_while_something_is_damaged(tamias, kept):
    assert tamias("check").returncode == 0
    kept.flip(digest(b"other\n"))
    result = tamias("check")
    assert result.returncode == 1
    assert f"BAD  blob {digest(b'other' + bytes([10]))}" in result.stdout
    assert "of http://data.example/b.csv" in result.stdout


def test_the_verb_repairs_and_says_so(tamias, kept):
    kept.writer.close()
    kept.run("DELETE FROM blob WHERE sha256 = %b", bytes.fromhex(digest(b"other\n")))
    result = tamias("check", "--repair", "--json")
    told = json.loads(result.stdout)
    assert result.returncode == 0
    assert [fault["mended"] for fault in told["faults"]] == [True]
    assert told["freed"]["blobs"] == 0
    assert tamias("get", "http://data.example/b.csv", text=False).stdout == b"other\n"


def test_a_repair_without_a_copy_says_which_file_it_needs_and_takes_it_from_a_folder(tamias, kept, tmp_path):
    lost = digest(VERSIONS[0])
    kept.writer.close()
    kept.flip(lost)
    result = tamias("check", "--repair")
    assert result.returncode == 1
    assert f"needed    a file with SHA-256 {lost}, {len(VERSIONS[0]):,} bytes: " in result.stdout
    assert f"_1 of {URL}" in result.stdout
    copies = tmp_path / "copies"
    copies.mkdir()
    (copies / "from the attic").write_bytes(VERSIONS[0])
    (copies / "another").write_bytes(b"something else")
    result = tamias("check", "--repair", "--from", str(copies))
    assert result.returncode == 0, result.stdout
    assert f"repaired  blob {lost}" in result.stdout
    for number, version in enumerate(VERSIONS, start=1):
        assert tamias("get", URL, "--version", str(number), text=False).stdout == version


def test_the_bodies_of_a_damaged_group_are_named_and_repaired_one_by_one(tamias, kept, tmp_path):
    recode_versions(kept.writer, kept.session, [digest(each) for each in reversed(VERSIONS)], least_gain=-9)
    kept.writer.close()
    assert tamias("repack").returncode == 0  # frees the old records, from which it could be mended
    [(group,)] = kept.rows("SELECT encode(sha256, 'hex') FROM blob WHERE codec = 'group'")
    kept.flip(group)
    told = json.loads(tamias("check", "--repair", "--json").stdout)
    [fault] = told["faults"]
    assert {need["sha256"] for need in fault["needs"]} == {digest(version) for version in VERSIONS[:-1]}
    copies = tmp_path / "copies"
    copies.mkdir()
    for version in VERSIONS[:-1]:
        (copies / digest(version)).write_bytes(version)
    assert tamias("check", "--repair", "--from", str(copies)).returncode == 0
    assert tamias("check").returncode == 0
    for number, version in enumerate(VERSIONS, start=1):
        assert tamias("get", URL, "--version", str(number), text=False).stdout == version
