"""What nobody needs is freed, and nothing else."""

import random

import pytest

from tamias.archive.blobs import BlobLost, BlobMissing, insert_blobs
from tamias.archive.blobs.collect import collect, recover
from tamias.features.check.blobs import BlobCheck

from .conftest import body_at, body_of, table, versions


def collected(store, *kept, grace=0.0):
    return collect(store.writer, store.other, kept, grace)


def assert_sound(store):
    assert list(BlobCheck(store.packs, store.other).damages()) == []


def pack_bytes(folder):
    return sum(path.stat().st_size for path in folder.glob("*.pack"))


def noise(seed, size=20_000):
    return random.Random(seed).randbytes(size)


def test_a_blob_without_a_reference_is_collected(store):
    kept, gone = store.put(body_of(noise(1)), body_of(noise(2)))
    assert collected(store, kept.sha256).blobs == 1
    with pytest.raises(BlobMissing):
        store.reader().read(gone.sha256)
    assert store.reader().read(kept.sha256) == noise(1)


def test_a_base_is_kept_as_long_as_something_is_decoded_with_it(store):
    bodies = versions(4)
    blobs = store.put_versions(bodies)
    assert collected(store, blobs[2].sha256).blobs == 1
    assert store.reader().read(blobs[2].sha256) == bodies[2]


def test_a_whole_chain_without_a_reference_is_collected(store):
    store.put_versions(versions(4))
    assert collected(store).blobs == 4


def test_what_somebody_relied_on_lately_is_kept(store):
    store.put_versions(versions(2))
    assert collected(store, grace=3600).blobs == 0


def test_chunks_that_another_body_needs_are_kept(make_store, tmp_path):
    store = make_store(whole_bytes=500_000)
    large = noise(1, 2_000_000)
    (first,) = store.put(body_at(tmp_path / "a", large))
    (second,) = store.put(body_at(tmp_path / "b", large[:1_500_000] + noise(2)), previous=first.sha256)
    assert collected(store, second.sha256).blobs > 0
    assert store.reader().read(second.sha256) == large[:1_500_000] + noise(2)
    assert_sound(store)


def test_a_pack_that_is_mostly_unused_is_rewritten(store, tmp_path):
    kept, *_ = store.put(*(body_of(noise(seed)) for seed in range(5)))
    store.writer.close()
    done = collected(store, kept.sha256)
    assert (done.packs_rewritten, done.blobs) == (1, 4)
    assert pack_bytes(tmp_path / "blobs") == kept.written
    assert store.reader().read(kept.sha256) == noise(0)
    assert_sound(store)


def test_a_pack_that_is_wholly_unused_is_removed(store, tmp_path):
    store.put(body_of(noise(1)))
    store.writer.close()
    assert collected(store).packs_removed == 1
    assert list((tmp_path / "blobs").iterdir()) == []


def test_a_reader_that_looked_before_a_pack_was_rewritten_finds_the_body(store, make_store):
    kept, *_ = store.put(*(body_of(noise(seed)) for seed in range(5)))
    store.writer.close()
    reader = make_store().reader()
    chains = reader.table.chains
    looked = chains([kept.sha256])
    collected(store, kept.sha256)
    answers = iter([looked])
    reader.table.chains = lambda sha256s: next(answers, None) or chains(sha256s)
    assert reader.read(kept.sha256) == noise(0)


def test_the_pack_of_a_living_writer_is_left_alone(make_store):
    one, two = make_store(), make_store()
    prepared = one.writer.prepare(body_of(b"still to be committed"))
    one.writer.sync()
    collected(two)
    one.other.transact(lambda cursor: insert_blobs(cursor, [prepared]))
    one.writer.settled()
    assert one.reader().read(prepared.sha256) == b"still to be committed"


def test_packs_that_the_database_does_not_know_are_left_alone(store, tmp_path):
    """A new database beside old packs must not cost them."""
    store.put(body_of(noise(1)))
    store.writer.close()
    store.other.transact(lambda cursor: cursor.execute("TRUNCATE blob, pack"))
    collected(store)
    assert pack_bytes(tmp_path / "blobs") > 20_000


def test_a_known_body_that_is_collected_before_the_commit_must_be_prepared_again(make_store):
    one, two = make_store(), make_store()
    one.put(body_of(b"known"))
    prepared = one.writer.prepare(body_of(b"known"))
    collected(two)
    with pytest.raises(BlobLost):
        one.other.transact(lambda cursor: insert_blobs(cursor, [prepared]))


def test_a_base_that_is_collected_before_the_commit_must_be_prepared_again(make_store):
    one, two = make_store(), make_store()
    old, new = versions(2)
    (before,) = one.put(body_of(old))
    prepared = one.writer.prepare(body_of(new), before.sha256)
    collected(two)
    with pytest.raises(BlobLost):
        one.other.transact(lambda cursor: insert_blobs(cursor, [prepared]))
    one.writer.abandon()
    one.put(body_of(new), previous=before.sha256)
    assert one.reader().read(prepared.sha256) == new


def test_rows_for_a_pack_that_was_let_go_are_refused(store):
    prepared = store.writer.prepare(body_of(b"body"))
    store.writer.close()
    with pytest.raises(BlobLost, match="prepare them again"):
        store.other.transact(lambda cursor: insert_blobs(cursor, [prepared]))


def test_recovery_waits_for_a_commit_that_is_under_way(make_store, database):
    """The writer has died after it sent its rows, and the server is about to commit them."""
    store, other = make_store(), make_store()
    prepared = store.writer.prepare(body_of(noise(1)))
    store.writer.sync()
    connection = database._connection()
    connection.autocommit = False
    with connection.cursor(binary=True) as cursor:
        insert_blobs(cursor, [prepared])
    store.writer.appender._writer.close()  # as if the process were gone: the lock is free, the row is open

    from threading import Timer

    timer = Timer(0.3, connection.commit)
    timer.start()
    assert recover(other.packs, other.other).packs_removed == 0
    timer.join()
    connection.close()
    assert other.reader().read(prepared.sha256) == noise(1)


def test_collecting_twice_frees_nothing_more(store):
    kept, *_ = store.put(*(body_of(noise(seed)) for seed in range(5)))
    collected(store, kept.sha256)
    done = collected(store, kept.sha256)
    assert (done.blobs, done.packs_removed) == (0, 0)


def test_a_collection_goes_on_where_it_was_killed_before_a_pack_was_removed(store, tmp_path):
    (prepared,) = store.put(body_of(b"\n".join(table(100))))
    store.writer.close()
    store.rows("DELETE FROM blob RETURNING 1")
    store.rows("UPDATE pack SET state = 'gone' RETURNING 1")
    recover(store.packs, store.other)
    assert list((tmp_path / "blobs").iterdir()) == []
    assert store.rows("SELECT count(*) FROM pack") == [(0,)]
    assert prepared.written
