"""A flipped bit is found, named and mended where it can be; the rest is unharmed."""

import hashlib
import random

import pytest

from tamias.archive.blobs import BlobDamaged, insert_blobs
from tamias.features.check.blobs import BlobCheck, rebuild_rows, repair

from .conftest import body_at, body_of, table, versions


def damages(store):
    return list(BlobCheck(store.packs, store.other).damages())


def mended(store, **options):
    return [each.mended for each in repair(store.writer, damages(store), **options)]


def forget_rows(store):
    store.other.transact(lambda cursor: cursor.execute("TRUNCATE blob, pack"))


def test_a_sound_store_has_no_damages(store):
    store.put_versions(versions(4))
    check = BlobCheck(store.packs, store.other)
    assert list(check.damages()) == []
    assert check.blobs == 4


@pytest.mark.parametrize("place", ["first byte", "middle", "last byte"])
def test_a_flipped_bit_of_a_payload_is_named_with_what_depends_on_it(store, flip, place):
    blobs = store.put_versions(versions(4))
    broken = blobs[1]
    start = broken.place.length - broken.stored
    flip(
        broken,
        {"first byte": start, "middle": start + broken.stored // 2, "last byte": -1 + broken.place.length}[
            place
        ],
    )
    (damage,) = damages(store)
    assert damage.sha256 == broken.sha256
    assert set(damage.dependents) == {blobs[2].sha256, blobs[3].sha256}


def test_what_does_not_depend_on_the_damage_is_unharmed(store, flip):
    bodies = versions(4)
    blobs = store.put_versions(bodies)
    others = store.put_versions(versions(2, seed=9))
    flip(blobs[2], blobs[2].place.length - 20)
    reader = store.reader()
    assert [reader.read(blob.sha256) for blob in blobs[:2]] == bodies[:2]
    assert [len(reader.read(blob.sha256)) for blob in others] == [blob.size for blob in others]


def test_a_read_names_the_blob_that_is_broken(store, flip):
    blobs = store.put_versions(versions(4))
    flip(blobs[1], blobs[1].place.length - 20)
    with pytest.raises(BlobDamaged) as caught:
        store.reader().read(blobs[3].sha256)
    assert caught.value.sha256 == blobs[1].sha256


def test_a_flipped_bit_of_a_raw_body_is_found(store, flip):
    (prepared,) = store.put(body_of(random.Random(1).randbytes(10_000)))
    flip(prepared.blobs[0], 5000)
    (damage,) = damages(store)
    assert "another digest" in damage.problem


def test_a_flipped_bit_of_shuffled_rows_is_found(store, flip):
    lines = table(20_000)
    bodies = [b"\n".join(random.Random(seed).sample(lines, len(lines))) for seed in range(3)]
    blobs = store.put_versions(bodies)
    flip(blobs[1], blobs[1].place.length // 2)
    (damage,) = damages(store)
    assert (damage.sha256, damage.dependents) == (blobs[1].sha256, (blobs[2].sha256,))


def test_a_flipped_bit_of_a_chunk_names_the_body_that_it_is_part_of(make_store, flip, tmp_path):
    store = make_store(whole_bytes=500_000)
    (prepared,) = store.put(body_at(tmp_path / "body", random.Random(1).randbytes(2_000_000)))
    flip(prepared.blobs[3], 5000)
    assert {damage.sha256 for damage in damages(store)} == {prepared.blobs[3].sha256, prepared.sha256}


def test_a_new_version_of_a_damaged_one_stands_alone(store, flip, make_store):
    old, new = versions(2)
    (blob,) = store.put_versions([old])
    flip(blob, blob.place.length - 20)
    other = make_store()
    (prepared,) = other.put(body_of(new), previous=blob.sha256)
    assert prepared.blobs[0].base is None


def test_a_missing_pack_is_named_with_all_that_stood_in_it(store, tmp_path):
    blobs = store.put_versions(versions(3))
    (pack,) = (tmp_path / "blobs").iterdir()
    pack.unlink()
    (damage,) = damages(store)
    assert {damage.sha256, *damage.dependents} == {blob.sha256 for blob in blobs}


def test_a_broken_description_is_found_and_written_again(store, flip):
    blobs = store.put_versions(versions(2))
    flip(blobs[1], 20)
    assert ["description" in damage.problem for damage in damages(store)] == [True]
    assert mended(store) == [True]
    assert damages(store) == []


def test_a_damage_is_mended_from_a_body_that_is_had_elsewhere(store, flip):
    bodies = versions(4)
    blobs = store.put_versions(bodies)
    flip(blobs[1], blobs[1].place.length - 20)
    assert mended(store, elsewhere={blobs[1].sha256: bodies[1]}.get) == [True]
    assert damages(store) == []
    assert store.reader().read(blobs[3].sha256) == bodies[3]


def test_a_body_from_elsewhere_must_be_the_right_one(store, flip):
    blobs = store.put_versions(versions(2))
    flip(blobs[1], blobs[1].place.length - 20)
    assert mended(store, elsewhere=lambda _sha256: b"a lie") == [False]


def test_a_damage_is_mended_from_the_copy_of_another_writer(make_store, flip):
    """Two that brought the same body at once have both written it; one row won."""
    one, two = make_store(), make_store()
    content = versions(1)[0]
    prepared = [each.writer.prepare(body_of(content)) for each in (one, two)]
    for each, mine in zip((one, two), prepared, strict=True):
        each.writer.sync()
        each.other.transact(lambda cursor, mine=mine: insert_blobs(cursor, [mine]))
    two.put(body_of(b"so that its pack is kept"))
    two.writer.close()
    flip(prepared[0].blobs[0], prepared[0].blobs[0].place.length - 20)
    assert mended(one) == [True]
    assert one.reader().read(prepared[0].sha256) == content


def test_a_damage_without_a_copy_stays_and_says_so(store, flip):
    blobs = store.put_versions(versions(2))
    flip(blobs[0], blobs[0].place.length - 20)
    assert mended(store) == [False]


def test_a_body_in_chunks_is_whole_again_when_its_chunk_is(make_store, flip, tmp_path):
    store = make_store(whole_bytes=500_000)
    content = random.Random(1).randbytes(2_000_000)
    (prepared,) = store.put(body_at(tmp_path / "body", content))
    chunk = prepared.blobs[3]
    sound = store.reader().read(chunk.sha256)
    flip(chunk, 5000)
    assert mended(store, elsewhere={chunk.sha256: sound}.get) == [True, True]
    assert store.reader().read(prepared.sha256) == content


def test_all_rows_are_made_anew_from_the_packs(store):
    bodies = versions(4)
    blobs = store.put_versions(bodies)
    store.writer.close()
    forget_rows(store)
    assert rebuild_rows(store.writer) == 4
    assert [store.reader().read(blob.sha256) for blob in blobs] == bodies


def test_rows_of_bodies_in_chunks_are_made_anew(make_store, tmp_path):
    store = make_store(whole_bytes=500_000)
    content = random.Random(1).randbytes(2_000_000)
    (prepared,) = store.put(body_at(tmp_path / "body", content))
    store.writer.close()
    forget_rows(store)
    rebuild_rows(store.writer)
    assert store.reader().read(prepared.sha256) == content


def test_a_pack_that_the_database_does_not_know_is_told_and_read_in(store):
    (body,) = versions(1)
    store.put_versions([body])
    store.writer.close()
    forget_rows(store)
    assert [damage.sha256 for damage in damages(store)] == [None]
    assert mended(store) == [True]
    assert store.reader().read(hashlib.sha256(body).hexdigest()) == body


def test_the_lost_row_of_a_base_is_made_anew(store):
    bodies = versions(3)
    blobs = store.put_versions(bodies)
    store.writer.close()
    store.rows("DELETE FROM blob WHERE sha256 = %b RETURNING 1", bytes.fromhex(blobs[0].sha256))
    (damage,) = damages(store)
    assert (damage.sha256, len(damage.dependents)) == (blobs[0].sha256, 2)
    assert mended(store) == [True]
    assert store.reader().read(blobs[2].sha256) == bodies[2]


def test_rows_are_not_made_of_what_a_living_writer_has_not_committed(make_store):
    one, two = make_store(), make_store()
    one.writer.prepare(body_of(b"not yet true"))
    assert rebuild_rows(two.writer) == 0
