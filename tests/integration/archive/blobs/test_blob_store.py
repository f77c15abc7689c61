"""Bodies come back exactly, whatever they are and however they were stored."""

import hashlib
import random
import subprocess
import tracemalloc

import pytest

from tamias.archive.blobs import BlobDamaged, BlobMissing, BlobReader, Codec, insert_blobs
from tamias.archive.blobs.blob import described
from tamias.archive.blobs.writer import MOST_DEPTH
from tamias.model.capture import Body
from tamias.model.errors import TamiasError
from tests.messages import saying

from .conftest import body_at, body_of, table, versions


def test_versions_come_back_exactly_and_later_ones_are_deltas(store):
    bodies = versions(5)
    blobs = store.put_versions(bodies)
    assert [blob.codec for blob in blobs] == [Codec.ZSTD] + [Codec.ZDELTA] * 4
    reader = store.reader()
    assert [reader.read(blob.sha256) for blob in blobs] == bodies


def test_shuffled_rows_come_back_exactly(store):
    lines = table(20_000)
    bodies = []
    for seed in range(4):
        random.Random(seed).shuffle(lines)
        bodies.append(b"\r\n".join(lines))
    blobs = store.put_versions(bodies)
    assert [blob.codec for blob in blobs] == [Codec.ZSTD] + [Codec.ROWS] * 3
    assert [store.reader().read(blob.sha256) for blob in blobs] == bodies


def test_an_empty_body_is_kept(store):
    (prepared,) = store.put(body_of(b""))
    assert store.reader().read(prepared.sha256) == b""


def test_the_version_after_an_empty_body_is_kept(store):
    assert [store.reader().read(blob.sha256) for blob in store.put_versions([b"", b"more", b""])] == [
        b"",
        b"more",
    ]


def test_a_hundred_megabytes_of_one_line_are_kept(store, tmp_path):
    content = b'{"a":[' + b"1234567890," * 9_600_000 + b"0]}"
    (prepared,) = store.put(body_at(tmp_path / "body", content))
    assert hashlib.sha256(store.reader().read(prepared.sha256)).hexdigest() == prepared.sha256


def test_the_same_body_is_stored_once(store):
    content = versions(1)[0]
    first, second = store.put(body_of(content), body_of(content))
    (third,) = store.put(body_of(content))
    assert first.written > 0
    assert (second.written, third.written) == (0, 0)
    assert store.rows("SELECT count(*) FROM blob") == [(1,)]


def test_a_twin_in_the_same_batch_becomes_true_without_the_other(store):
    """A capture may be dropped at the commit while another of the same body is kept."""
    content = versions(1)[0]
    store.writer.prepare(body_of(content))
    twin = store.writer.prepare(body_of(content))
    store.writer.sync()
    store.other.transact(lambda cursor: insert_blobs(cursor, [twin]))
    store.writer.settled()
    assert store.reader().read(twin.sha256) == content


def test_what_is_settled_is_forgotten_and_what_others_need_is_not(make_store):
    store = make_store(pack_bytes=1, whole_bytes=500_000)
    old, new, large = *versions(2), random.Random(1).randbytes(2_000_000)
    first = store.writer.prepare(body_of(old))
    twin = store.writer.prepare(body_of(old))
    after = store.writer.prepare(body_of(new), first.sha256)
    chunked = store.writer.prepare(body_of(large))
    pending = store.writer.table.pending
    assert set(pending) == {blob.sha256 for each in (first, after, chunked) for blob in each.blobs}
    store.writer.sync()
    # The first commit fails; the twin, and what is coded with it, are still to come.
    store.writer.settle([first])
    assert store.writer.table.pending == pending
    store.other.transact(lambda cursor: insert_blobs(cursor, [chunked]))
    store.writer.settle([chunked])
    assert set(store.writer.table.pending) == {first.sha256, after.sha256}
    store.other.transact(lambda cursor: insert_blobs(cursor, [after]))
    store.writer.settle([after, twin])
    assert store.writer.table.pending == {}
    assert [store.reader().read(each.sha256) for each in (after, chunked)] == [new, large]
    assert store.rows("SELECT count(*) FROM pack WHERE state = 'open'") == [(1,)]


def test_a_version_becomes_true_with_its_base_of_the_same_batch(store):
    old, new = versions(2)
    before = store.writer.prepare(body_of(old))
    after = store.writer.prepare(body_of(new), before.sha256)
    store.writer.sync()
    store.other.transact(lambda cursor: insert_blobs(cursor, [after]))
    store.writer.settled()
    assert after.blobs[0].codec is Codec.ZDELTA
    assert store.reader().read(after.sha256) == new


def test_a_prepared_body_has_no_row_before_the_transaction(store):
    prepared = store.writer.prepare(body_of(b"body"))
    store.writer.sync()
    with pytest.raises(BlobMissing):
        store.reader().read(prepared.sha256)


def test_the_same_rows_twice_are_harmless(store):
    prepared = store.writer.prepare(body_of(b"body"))
    store.writer.sync()
    for _ in range(2):
        store.other.transact(lambda cursor: insert_blobs(cursor, [prepared]))
    assert store.rows("SELECT count(*) FROM blob") == [(1,)]


def test_after_sixteen_deltas_comes_a_key_frame(store):
    blobs = store.put_versions(versions(MOST_DEPTH + 3, rows=500))
    assert [blob.depth for blob in blobs] == [*range(MOST_DEPTH + 1), 0, 1]


def test_a_file_that_changed_since_it_was_fetched_is_refused(store, tmp_path):
    body = body_at(tmp_path / "body", b"as fetched")
    (tmp_path / "body").write_bytes(b"otherwise")
    with pytest.raises(TamiasError, check=saying()):
        store.writer.prepare(body)


def test_a_file_that_was_altered_is_never_given_for_what_it_is_not(store, tmp_path):
    body = body_at(tmp_path / "body", b"as fetched")
    (tmp_path / "body").write_bytes(b"otherwise!")
    (prepared,) = store.put(body)
    with pytest.raises(BlobDamaged, match="another digest"):
        store.reader().read(prepared.sha256)


def test_a_full_pack_is_followed_by_another(make_store):
    store = make_store(pack_bytes=50_000)
    bodies = [random.Random(seed).randbytes(30_000) for seed in range(5)]
    prepared = store.put(*map(body_of, bodies))
    assert len({blob.place.pack for each in prepared for blob in each.blobs}) == 3
    assert [store.reader().read(each.sha256) for each in prepared] == bodies


def test_a_cold_writer_reads_the_base_from_disk(make_store):
    old, new = versions(2)
    make_store().put_versions([old])
    (prepared,) = make_store().put(body_of(new), previous=hashlib.sha256(old).hexdigest())
    assert prepared.blobs[0].codec is Codec.ZDELTA


class TestChunks:
    """Bodies larger than what is held in memory."""

    @pytest.fixture
    def store(self, make_store):
        return make_store(whole_bytes=500_000, cache_bytes=0)

    @pytest.fixture
    def large(self):
        return random.Random(1).randbytes(3_000_000)

    def test_a_large_body_comes_back_exactly(self, store, large, tmp_path):
        (prepared,) = store.put(body_at(tmp_path / "body", large))
        assert store.reader().read(prepared.sha256) == large

    def test_a_large_body_comes_back_in_pieces(self, store, large, tmp_path):
        (prepared,) = store.put(body_at(tmp_path / "body", large))
        assert max(map(len, store.reader().pieces(prepared.sha256))) < 300_000

    def test_a_large_body_that_was_read_is_not_held_in_pieces(self, store, large, tmp_path):
        (prepared,) = store.put(body_at(tmp_path / "body", large))
        reader = store.reader()
        tracemalloc.start()
        try:
            for _ in reader.pieces(prepared.sha256):
                pass
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert held < len(large) / 4

    def test_a_large_body_in_memory_is_kept_as_well(self, store, large):
        (prepared,) = store.put(body_of(large))
        assert store.reader().read(prepared.sha256) == large

    def test_what_two_versions_share_is_stored_once(self, store, large, tmp_path):
        (first,) = store.put(body_at(tmp_path / "a", large))
        changed = large[:1_000_000] + b"something new" + large[1_000_000:]
        (second,) = store.put(body_at(tmp_path / "b", changed), previous=first.sha256)
        assert second.written < first.written / 5
        assert store.reader().read(second.sha256) == changed

    def test_chunks_of_a_body_in_the_same_batch_are_shared(self, store, large, tmp_path):
        changed = large + b"more"
        first = store.writer.prepare(body_at(tmp_path / "a", large))
        second = store.writer.prepare(body_at(tmp_path / "b", changed), first.sha256)
        store.writer.sync()
        store.other.transact(lambda cursor: insert_blobs(cursor, [second]))
        assert second.written < first.written / 5
        assert store.reader().read(second.sha256) == changed

    def test_a_large_file_that_changed_since_it_was_fetched_is_refused(self, store, large, tmp_path):
        body = body_at(tmp_path / "body", large)
        (tmp_path / "body").write_bytes(large[::-1])
        with pytest.raises(TamiasError, match="has changed since"):
            store.writer.prepare(body)


class TestWithoutTamias:
    """A stranger reads packs with the zstd tool and the page of documentation."""

    def record(self, store, blob):
        return store.packs.read(blob.place.pack, blob.place.start, blob.place.length)

    def unpacked(self, *arguments):
        return subprocess.run(["zstd", "-d", "-c", "-q", *arguments], check=True, capture_output=True).stdout

    def test_a_record_tells_what_it_is(self, store):
        _, blob = store.put_versions(versions(2))
        told = described(self.record(store, blob))
        assert (told.sha256, told.size, told.codec, told.base) == (
            blob.sha256,
            blob.size,
            Codec.ZDELTA,
            blob.base,
        )

    def test_plain_blobs_of_a_pack_are_unpacked_by_the_tool(self, store, tmp_path):
        bodies = [b"\n".join(table(100, seed)) for seed in range(3)]
        store.put(*map(body_of, bodies))
        (pack,) = (tmp_path / "blobs").iterdir()
        packed = tmp_path / "pack.zst"
        packed.write_bytes(pack.read_bytes())
        assert self.unpacked(str(packed)) == b"".join(bodies)

    def test_a_delta_is_unpacked_by_the_tool_with_its_base(self, store, tmp_path):
        old, new = versions(2)
        _, blob = store.put_versions([old, new])
        (tmp_path / "base").write_bytes(old)
        (tmp_path / "delta.zst").write_bytes(store.reader().payload(blob))
        assert self.unpacked(f"--patch-from={tmp_path / 'base'}", str(tmp_path / "delta.zst")) == new


def test_readers_of_another_process_need_only_rows_and_packs(store, make_store):
    (body,) = versions(1)
    (prepared,) = store.put(body_of(body))
    stranger = BlobReader(store.packs, make_store().session)
    assert stranger.size(prepared.sha256) == len(body)


def test_two_writers_that_bring_the_same_body_at_once_agree(make_store):
    one, two = make_store(), make_store()
    content = versions(1)[0]
    prepared = [each.writer.prepare(body_of(content)) for each in (one, two)]
    for each, mine in zip((one, two), prepared, strict=True):
        each.writer.sync()
        each.other.transact(lambda cursor, mine=mine: insert_blobs(cursor, [mine]))
        each.writer.settled()
    assert one.rows("SELECT count(*) FROM blob") == [(1,)]
    assert two.reader().read(prepared[1].sha256) == content


def test_a_body_that_is_not_there_is_told_as_missing(store):
    with pytest.raises(BlobMissing, check=saying()):
        store.reader().read("ab" * 32)


def test_a_body_without_its_file_is_told_in_a_sentence(store, tmp_path):
    gone = Body(size=5, sha256="ab" * 32, path=str(tmp_path / "gone"))
    with pytest.raises(TamiasError, check=saying()):
        store.writer.prepare(gone)
