"""A writer killed at any step leaves no row without bytes, and nothing that recovery does not free."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamias.archive.blobs.collect import recover
from tamias.features.check.blobs import BlobCheck

MOST_STEPS = 200
EVERY = 1 if os.environ.get("TAMIAS_NIGHTLY") else 5
"""Of the steps: each takes a third of a second."""


@pytest.fixture
def dying_writer(database_url, store, tmp_path):
    """Says what became of a writer that dies at a step."""
    script = Path(__file__).with_name("dying_writer.py")
    command = [sys.executable, str(script), database_url, str(tmp_path / "blobs")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def run(step):
            process.stdin.write(f"{step}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        yield run
        process.stdin.close()


def test_a_writer_killed_at_any_step_leaves_a_sound_store(dying_writer, store, tmp_path):
    blobs = 0
    for step in range(0, MOST_STEPS, EVERY):
        ended = dying_writer(step)
        recover(store.packs, store.other)
        assert list(BlobCheck(store.packs, store.other).damages()) == [], f"killed at step {step}"
        now, used = store.rows("SELECT count(*), coalesce(sum(length), 0)::int8 FROM blob")[0]
        assert now - blobs in (0, 4), f"killed at step {step}"
        on_disk = sum(path.stat().st_size for path in (tmp_path / "blobs").glob("*.pack"))
        assert on_disk == used, f"killed at step {step}"
        blobs = now
        if ended != "killed":
            break
    assert ended == "ended 0"
    assert step > 20
    assert blobs > 4 or EVERY > 1
