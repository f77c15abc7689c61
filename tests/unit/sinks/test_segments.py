import contextlib
import os
import random
import subprocess
import sys

import pytest
import zstandard

from tamias.model.capture import Extent
from tamias.model.errors import DiskFull, TamiasError
from tamias.sinks.segments.segment_files import (
    FRAME_BYTES,
    SegmentError,
    SegmentReader,
    SegmentWriter,
    cut_tail,
)
from tests.messages import saying


def segment_path(folder, segment):
    return folder / f"{segment}.nq.zst"


def opener(folder):
    return lambda segment: segment_path(folder, segment).open("rb")


def lines(document, count):
    return b"".join(b'<http://e/%d> <http://e/p> "%d" <http://e/> .\n' % (document, n) for n in range(count))


def written(writer, text, step=65_536):
    with writer.document() as document:
        for at in range(0, len(text), step):
            document.write(text[at : at + step])
        return document.extent


def fail_in(writer, text):
    with contextlib.suppress(ZeroDivisionError), writer.document() as document:
        document.write(text)
        raise ZeroDivisionError


def frames(folder, extent):
    with SegmentReader(opener(folder)) as reader:
        yield from reader.read(extent)


def read(folder, extent):
    return b"".join(frames(folder, extent))


def whole(path):
    with path.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


@pytest.fixture
def writer(tmp_path):
    with SegmentWriter(segment_path(tmp_path, 7), 7) as writer:
        yield writer


@pytest.fixture
def incompressible():
    return random.Random(7).randbytes


class TestReadingBack:
    def test_a_document_is_read_back_as_it_was_written(self, writer, tmp_path):
        extent = written(writer, lines(1, 10))
        writer.sync()
        assert read(tmp_path, extent) == lines(1, 10)

    def test_small_documents_share_a_frame(self, writer):
        first, second = written(writer, lines(1, 10)), written(writer, lines(2, 10))
        assert (second.frame, second.start) == (first.frame, first.length)

    @pytest.mark.parametrize("sizes", [(10, 100_000, 10), (100_000, 1, 100_000), (40_000, 0, 40_000, 3)])
    def test_documents_of_all_sizes_are_kept_apart(self, writer, tmp_path, sizes):
        texts = [lines(number, size) for number, size in enumerate(sizes)]
        extents = [written(writer, text) for text in texts]
        writer.sync()
        assert [read(tmp_path, extent) for extent in extents] == texts

    def test_a_document_given_in_one_piece_may_be_larger_than_many_frames(self, writer, tmp_path):
        text = lines(1, 100_000)
        extent = written(writer, text, step=len(text))
        writer.sync()
        assert read(tmp_path, extent) == text

    def test_no_piece_read_is_larger_than_a_frame(self, writer, tmp_path):
        extent = written(writer, lines(1, 100_000), step=10**9)
        writer.sync()
        assert max(map(len, frames(tmp_path, extent))) <= FRAME_BYTES

    def test_documents_are_read_in_any_order(self, writer, tmp_path):
        extents = {number: written(writer, lines(number, 3_000)) for number in range(40)}
        writer.sync()
        order = random.Random(1).sample(sorted(extents), k=40)
        with SegmentReader(opener(tmp_path)) as reader:
            got = {number: b"".join(reader.read(extents[number])) for number in order}
        assert got == {number: lines(number, 3_000) for number in extents}

    def test_documents_of_several_segments_are_read_by_one_reader(self, tmp_path):
        extents = []
        for segment in (1, 2):
            with SegmentWriter(segment_path(tmp_path, segment), segment) as writer:
                extents.append(written(writer, lines(segment, 5)))
                writer.sync()
        with SegmentReader(opener(tmp_path)) as reader:
            assert [b"".join(reader.read(extent)) for extent in extents] == [lines(1, 5), lines(2, 5)]

    def test_two_readings_at_once_do_not_disturb_each_other(self, writer, tmp_path):
        extents = [written(writer, lines(number, 100_000)) for number in (1, 2)]
        writer.sync()
        with SegmentReader(opener(tmp_path)) as reader:
            one, two = zip(*zip(*map(reader.read, extents), strict=False), strict=True)
        assert lines(1, 100_000).startswith(b"".join(one))
        assert lines(2, 100_000).startswith(b"".join(two))

    def test_an_empty_document_has_no_bytes(self, writer, tmp_path):
        with writer.document() as document:
            extent = document.extent
        assert read(tmp_path, extent) == b""

    def test_any_zstd_tool_reads_the_whole_segment(self, writer):
        for number in range(3):
            written(writer, lines(number, 40_000))
        writer.sync()
        assert whole(writer.path) == b"".join(lines(number, 40_000) for number in range(3))


class TestAbandonedDocuments:
    @pytest.mark.parametrize("size", [10, 30_000, 200_000])
    def test_nothing_stays_of_a_document_that_failed(self, writer, tmp_path, size):
        before = written(writer, lines(1, 10))
        fail_in(writer, lines(2, size))
        after = written(writer, lines(3, 10))
        writer.sync()
        assert whole(writer.path) == lines(1, 10) + lines(3, 10)
        assert [read(tmp_path, extent) for extent in (before, after)] == [lines(1, 10), lines(3, 10)]

    def test_a_document_that_failed_behind_a_large_one_leaves_the_large_one_whole(self, writer, tmp_path):
        large = written(writer, lines(1, 70_000))
        fail_in(writer, lines(2, 70_000))
        writer.sync()
        assert whole(writer.path) == read(tmp_path, large) == lines(1, 70_000)

    def test_a_second_document_inside_a_document_is_an_error(self, writer):
        with writer.document(), pytest.raises(RuntimeError), writer.document():
            pass

    def test_the_place_of_a_document_cannot_be_mistaken_for_that_of_the_next(self, writer):
        with writer.document() as document:
            document.write(lines(1, 10))
        with pytest.raises(RuntimeError):
            _ = document.extent

    def test_a_sync_inside_a_document_is_an_error(self, writer):
        with writer.document(), pytest.raises(RuntimeError):
            writer.sync()


class TestCommitting:
    def test_sync_returns_the_length_of_the_file(self, writer):
        written(writer, lines(1, 10))
        assert writer.sync() == writer.path.stat().st_size == writer.length > 0

    def test_a_second_sync_changes_nothing(self, writer):
        written(writer, lines(1, 10))
        assert writer.sync() == writer.sync()

    def test_what_was_synced_survives_a_killed_process(self, tmp_path):
        program = (
            "import os, signal, sys\n"
            "from pathlib import Path\nfrom tamias.sinks.segments.segment_files import *\n"
            "writer = SegmentWriter(Path(sys.argv[1]), 1)\n"
            "with writer.document() as document:\n"
            "    document.write(b'kept\\n' * 500_000)\n"
            "    length = document.extent.length\n"
            "print(writer.sync(), length, flush=True)\n"
            "with writer.document() as document: document.write(b'lost\\n' * 5_000_000)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        process = subprocess.run(
            [sys.executable, "-c", program, segment_path(tmp_path, 1)], stdout=subprocess.PIPE, check=False
        )
        committed, length = map(int, process.stdout.split())
        assert cut_tail(segment_path(tmp_path, 1), committed) > 0
        assert (
            read(tmp_path, Extent(1, 0, 0, length)) == whole(segment_path(tmp_path, 1)) == b"kept\n" * 500_000
        )

    @pytest.mark.parametrize("torn", [1, 100, 3_000])
    def test_every_committed_document_is_read_after_a_torn_tail_is_cut(self, tmp_path, torn, incompressible):
        writer = SegmentWriter(segment_path(tmp_path, 1), 1)
        extents = [written(writer, lines(number, 1_000)) for number in range(5)]
        committed = writer.sync()
        writer.close()
        with writer.path.open("ab") as file:
            file.write(incompressible(torn))
        assert cut_tail(writer.path, committed) == torn
        assert [read(tmp_path, extent) for extent in extents] == [lines(number, 1_000) for number in range(5)]

    def test_a_segment_that_ends_where_it_was_committed_is_left_alone(self, writer):
        written(writer, lines(1, 10))
        assert cut_tail(writer.path, writer.sync()) == 0

    def test_a_missing_segment_with_committed_bytes_is_an_error_that_names_it(self, tmp_path):
        with pytest.raises(SegmentError, match=r"9\.nq\.zst is damaged: 0 bytes of 100"):
            cut_tail(segment_path(tmp_path, 9), 100)

    def test_a_missing_segment_without_committed_bytes_is_no_error(self, tmp_path):
        assert cut_tail(segment_path(tmp_path, 9), 0) == 0

    def test_a_segment_shorter_than_committed_is_an_error(self, writer):
        written(writer, lines(1, 10))
        with pytest.raises(SegmentError, match="is damaged"):
            cut_tail(writer.path, writer.sync() + 1)


class TestDamage:
    def test_a_flipped_bit_is_found_and_the_segment_named(self, writer, tmp_path):
        extent = written(writer, lines(1, 100))
        middle = writer.sync() // 2
        content = bytearray(writer.path.read_bytes())
        content[middle] ^= 1
        writer.path.write_bytes(content)
        with pytest.raises(SegmentError, match=r"7\.nq\.zst is damaged"):
            read(tmp_path, extent)

    @pytest.mark.parametrize("extent", [Extent(7, 0, 0, 10**6), Extent(7, 0, 10**6, 1), Extent(7, 3, 0, 1)])
    def test_an_extent_that_is_not_there_is_found(self, writer, tmp_path, extent):
        written(writer, lines(1, 10))
        writer.sync()
        with pytest.raises(SegmentError, match=r"7\.nq\.zst is damaged"):
            read(tmp_path, extent)

    def test_a_missing_segment_is_named(self, tmp_path):
        with pytest.raises(SegmentError, check=saying("8", "nq.zst")):
            read(tmp_path, Extent(8, 0, 0, 1))

    def test_a_frame_that_would_unpack_without_end_is_refused(self, tmp_path):
        segment_path(tmp_path, 1).write_bytes(zstandard.ZstdCompressor().compress(bytes(100_000_000)))
        with pytest.raises(SegmentError, match="damaged"):
            read(tmp_path, Extent(1, 0, 0, 1))


class TestFailingDisks:
    def test_a_segment_is_never_written_over(self, writer, tmp_path):
        with pytest.raises(TamiasError, match=r"7\.nq\.zst: File exists"):
            SegmentWriter(segment_path(tmp_path, 7), 7)

    def test_a_full_disk_is_told_and_takes_nothing_along(self, writer, incompressible, monkeypatch):
        with (
            full_disk(monkeypatch),
            pytest.raises(DiskFull, match=r"7\.nq\.zst"),
            writer.document() as document,
        ):
            document.write(incompressible(3 * FRAME_BYTES))
        assert writer.path.stat().st_size == writer.length == 0

    def test_a_sync_is_repeated_when_there_is_room_again(self, writer, tmp_path, monkeypatch):
        extent = written(writer, lines(1, 100))
        with full_disk(monkeypatch), pytest.raises(DiskFull):
            writer.sync()
        assert writer.sync() == writer.path.stat().st_size
        assert read(tmp_path, extent) == lines(1, 100)

    def test_earlier_documents_survive_a_document_that_filled_the_disk(
        self, writer, tmp_path, incompressible, monkeypatch
    ):
        extent = written(writer, lines(1, 100))
        with full_disk(monkeypatch, after=1), pytest.raises(DiskFull), writer.document() as document:
            document.write(incompressible(3 * FRAME_BYTES))
        writer.sync()
        assert read(tmp_path, extent) == whole(writer.path) == lines(1, 100)

    def test_a_disk_that_fails_to_sync_closes_the_segment(self, writer, monkeypatch):
        def failing(_):
            raise OSError(5, "Input/output error")

        written(writer, lines(1, 10))
        monkeypatch.setattr(os, "fdatasync", failing)
        with pytest.raises(TamiasError, match=r"7\.nq\.zst: Input/output error"):
            writer.sync()
        monkeypatch.undo()
        with pytest.raises(TamiasError, match="is closed"):
            writer.sync()


class full_disk:  # noqa: N801
    """Writes half of what is asked for and then has no room, as a real disk does."""

    def __init__(self, monkeypatch, after=0):
        self._patch, self._good = monkeypatch, after

    def __enter__(self):
        write = os.write

        def limited(file, content):
            self._good -= 1
            if self._good >= 0:
                return write(file, content)
            if self._good == -1:
                return write(file, content[: len(content) // 2])
            raise OSError(28, "No space left on device")

        self._patch.setattr(os, "write", limited)

    def __exit__(self, *_):
        self._patch.undo()
