"""One copy of a file serves every snapshot, whether later ones need more of it or less."""

import pytest

from tamias.features.backup.backup import (
    BackupDamaged,
    BackupFolder,
    FileGone,
    Needed,
    restore_file,
    save_file,
)

PACK = "blobs/0.pack"
CONTENT = bytes(range(256)) * 4


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "0.pack"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def place(tmp_path):
    return BackupFolder(tmp_path / "backup")


def save_in_turn(place, source, lengths):
    """A snapshot for each length, each of which knows the one before."""
    saved, known, added = [], {}, []
    for length in lengths:
        file, new = save_file(place, Needed(PACK, length, source), known)
        known = {PACK: file}
        saved.append(file)
        added.append(new)
    return saved, added


@pytest.mark.parametrize(
    "lengths", [(1024, 900, 800), (500, 400, 1024, 300, 1000), (1024, 1, 1024), (7, 7, 6, 7)], ids=str
)
def test_every_snapshot_is_restored_when_a_repack_moved_bodies_away(place, source, tmp_path, lengths):
    saved, _ = save_in_turn(place, source, lengths)
    for number, (file, length) in enumerate(zip(saved, lengths, strict=True)):
        data = tmp_path / f"data-{number}"
        restore_file(place, data, file)
        assert (data / PACK).read_bytes() == CONTENT[:length]


def test_a_snapshot_that_needs_less_copies_nothing(place, source):
    _, added = save_in_turn(place, source, (1024, 900, 800))
    assert added == [1024, 0, 0]


def test_what_a_killed_backup_left_behind_is_written_again(place, source, tmp_path):
    saved, _ = save_in_turn(place, source, [100])
    with place.file(PACK).open("ab") as copy:
        copy.write(bytes(400))  # a file that a power failure left long enough, and empty
    file, _ = save_file(place, Needed(PACK, 300, source), {PACK: saved[0]})
    restore_file(place, tmp_path / "data", file)
    assert (tmp_path / "data" / PACK).read_bytes() == CONTENT[:300]


def test_a_pack_that_is_cut_meanwhile_is_tried_again_with_a_new_snapshot(place, source):
    source.write_bytes(CONTENT[:50])
    with pytest.raises(FileGone):
        save_file(place, Needed(PACK, 100, source), {})


def test_a_segment_that_is_too_short_is_damaged(place, source):
    with pytest.raises(BackupDamaged, match="ends before byte 2000"):
        save_file(place, Needed("rdf/0.nq", 2000, source), {})
