"""Two versions of a file, written for a test and compared."""

import sys
import time
from contextlib import contextmanager

import pytest

from tamias.features.diffs.compare import diff
from tamias.model.diff import DiffLimits


@pytest.fixture
def versions(tmp_path):
    """Writes two contents and gives their paths."""

    def write(old, new):
        paths = tmp_path / "old", tmp_path / "new"
        for path, content in zip(paths, (old, new), strict=True):
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return paths

    return write


@pytest.fixture
def compared(versions):
    """The diff of two contents."""

    def compare(old, new, media_type, key=None, base=None, **limits):
        return diff(*versions(old, new), media_type, key=key, base=base, limits=DiffLimits(**limits))

    return compare


@pytest.fixture
def counts(compared):
    """The kind and counts of the diff of two contents."""

    def count(old, new, media_type, **options):
        found = compared(old, new, media_type, **options)
        return found.kind, found.added, found.removed, found.changed

    return count


@pytest.fixture
def stopwatch():
    """Writes how much CPU time something took; pytest shows it with `-s`."""

    @contextmanager
    def watch(what):
        began = time.process_time()
        yield
        sys.stdout.write(f"\n{what}: {time.process_time() - began:.2f} s of CPU\n")

    return watch
