"""Several processes write at once, the same bodies among others, while another one collects."""

import hashlib
import subprocess
import sys
from pathlib import Path

from tamias.archive.blobs.collect import collect
from tamias.features.check.blobs import BlobCheck

from .busy_writer import DATASETS, VERSIONS, content

WRITERS = 4


def test_many_writers_at_once_lose_nothing(store, database_url, tmp_path):
    script = Path(__file__).with_name("busy_writer.py")
    command = [sys.executable, str(script), database_url, str(tmp_path / "blobs")]
    writers = [subprocess.Popen([*command, str(seed)]) for seed in range(WRITERS)]
    bodies = [content(dataset, version) for dataset in range(DATASETS) for version in range(VERSIONS)]
    names = [hashlib.sha256(body).hexdigest() for body in bodies]
    while any(writer.poll() is None for writer in writers):
        collect(store.writer, store.other, names)
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    assert list(BlobCheck(store.packs, store.other).damages()) == []
    assert [store.reader().read(name) for name in names] == bodies
