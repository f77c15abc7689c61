"""What a backup says of itself is not believed when it leads outside."""

import msgspec
import pytest

from tamias.features.backup.backup import (
    FORMAT,
    BackupDamaged,
    BackupFolder,
    SavedFile,
    SavedTable,
    Snapshot,
)
from tests.messages import saying

NAME = "20261115T120000Z"
OUTSIDE = ["../outside", "/etc/outside", "blobs/../../outside", "rdf/", "warc/..", "blobs/a/b", "secret"]


def written(folder, *, file="blobs/a.pack"):
    snapshot = Snapshot(
        format=FORMAT,
        taken_at=NAME,
        schema=1,
        buckets=1,
        blobs=None,
        tables=(SavedTable(name="host", columns=("bucket",), rows=0, sha256=""),),
        sequences=(),
        files=(SavedFile(file, 1, ""),),
    )
    place = BackupFolder(folder)
    place.snapshot(NAME).mkdir(parents=True)
    (place.snapshot(NAME) / "snapshot.json").write_bytes(msgspec.json.encode(snapshot))
    return place


def test_the_newest_snapshot_is_read(tmp_path):
    name, snapshot = written(tmp_path).read()
    assert (name, snapshot.bytes) == (NAME, 1)


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_file_outside_the_data_directory_is_refused(tmp_path, path):
    with pytest.raises(BackupDamaged, check=saying()):
        written(tmp_path, file=path).read()


def test_what_is_no_snapshot_is_told(tmp_path):
    place = written(tmp_path)
    (place.snapshot(NAME) / "snapshot.json").write_text("{")
    with pytest.raises(BackupDamaged, match="cannot be read"):
        place.read()
