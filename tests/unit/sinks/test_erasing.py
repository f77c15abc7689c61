"""Bytes go out of segments and WARC files, all else stays where it was, whatever lengths there are."""

import io
import os
import random
import zlib

import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator

from tamias.crawl.verbs.check import Looked
from tamias.features.check.checkup import SegmentCheck
from tamias.features.forgetting.files import blank_frames
from tamias.features.forgetting.warc_records import blank_record
from tamias.features.warc.warc_files import WarcRecord
from tamias.sinks.segments.segment_files import (
    SegmentReader,
    SegmentWriter,
    finish_overwriting,
    remove_copies,
    replace_bytes,
)

HEAD = (
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:6fd9e3f7-2c3b-4a43-9b44-92ad5b4e2a5a>\r\n"
    b"WARC-Date: 2026-11-16T23:00:00.000Z\r\nWARC-Target-URI: http://e.example/\r\n"
    b"WARC-Payload-Digest: sha256:%b\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n" % os.urandom(32).hex().encode()
)


def written(folder, seed, sizes):
    """A segment with documents of some lines each: their extents and texts, and its length."""
    chance, documents = random.Random(seed), []
    with SegmentWriter(folder / "1.nq.zst", 1) as writer:
        for number in range(chance.randint(2, 30)):
            lines = [
                f'<http://e.example/{number}> <urn:p> "{chance.getrandbits(64):x}" <http://e.example/> .\n'
                for _ in range(chance.choice(sizes))
            ]
            with writer.document() as document:
                document.write("".join(lines).encode())
                documents.append((document.extent, "".join(lines).encode()))
            if chance.random() < 0.3:
                writer.sync()
        return documents, writer.sync()


@pytest.mark.parametrize("being_written", [True, False])
@pytest.mark.parametrize("sizes", [[1], [1, 2, 5], [1, 50, 5000]])
@pytest.mark.parametrize("seed", range(5))
def test_documents_go_out_of_a_segment_and_the_others_are_where_they_were(
    tmp_path, seed, sizes, being_written
):
    documents, committed = written(tmp_path, seed, sizes)
    path = tmp_path / "1.nq.zst"
    gone = set(random.Random(seed).sample(range(len(documents)), len(documents) // 2))
    with path.open("rb") as file:
        changes = blank_frames(file, [documents[each][0] for each in gone])
    replace_bytes(path, changes, being_written=being_written)
    assert path.stat().st_size == committed
    assert os.listdir(tmp_path) == [path.name]
    with SegmentReader(lambda _segment: path.open("rb")) as reader:
        for number, (extent, text) in enumerate(documents):
            content = b"".join(reader.read(extent))
            assert (content == text) if number not in gone else b"<" not in content
    assert (
        list(
            SegmentCheck(lambda _segment: path.open("rb"), Looked()).faults(
                1, committed, [extent for extent, _ in documents]
            )
        )
        == []
    )
    with path.open("rb") as file:
        plain = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    lines = [line + b"\n" for line in plain.split(b"\n") if line and not line.startswith(b"#")]
    assert b"".join(lines) == b"".join(text for n, (_, text) in enumerate(documents) if n not in gone)


def test_a_record_of_any_length_is_replaced_by_one_that_says_nothing():
    lengths = [260, 300, *range(301, 400, 7), *range(65_000, 67_000, 97), 131_072, 1_000_003]
    blanks = [blank_record(WarcRecord(0, length, HEAD)) for length in lengths]
    assert [len(each) for each in blanks] == lengths
    for each in blanks:
        unpacking = zlib.decompressobj(31)
        unpacking.decompress(each)
        assert unpacking.eof
        assert not unpacking.unused_data
    read = list(ArchiveIterator(io.BytesIO(b"".join(blanks))))
    assert [each.rec_type for each in read] == ["metadata"] * len(lengths)


def test_what_was_noted_is_written_after_a_crash_and_what_was_copied_is_removed(tmp_path, monkeypatch):
    path = tmp_path / "1.nq.zst"
    path.write_bytes(b"one two three")
    monkeypatch.setattr("tamias.sinks.segments.segment_files._write_over", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        replace_bytes(path, {4: b"222"}, being_written=True)
    monkeypatch.undo()
    (tmp_path / "2.nq.zst.erasing").write_bytes(b"half")
    assert path.read_bytes() == b"one two three"
    assert finish_overwriting(tmp_path) == 1
    remove_copies(tmp_path)
    assert path.read_bytes() == b"one 222 three"
    assert os.listdir(tmp_path) == [path.name]
