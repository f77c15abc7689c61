"""The difference of two files of which nothing is known: how much of them is not the same."""

from pathlib import Path

import numpy as np

from tamias.archive.diffs.values import Diff, DiffKind

_STEP = 1 << 22


def bytes_diff(old: Path, new: Path) -> Diff:
    """Counts what stands between the common beginning and the common end."""
    was, now = old.stat().st_size, new.stat().st_size
    shorter = min(was, now)
    start = _same(old, new, shorter, from_end=False)
    end = _same(old, new, shorter - start, from_end=True)
    notes = [f"{was} bytes, then {now}"]
    if start < max(was, now):
        notes.append(f"the first {start} and the last {end} bytes are the same")
    return Diff(
        kind=DiffKind.BYTES, added=now - start - end, removed=was - start - end, truncated=False, notes=notes
    )


def _same(old: Path, new: Path, most: int, *, from_end: bool) -> int:
    """How many bytes are the same, at most so many."""
    same = 0
    with old.open("rb") as was, new.open("rb") as now:
        while same < most:
            size = min(_STEP, most - same)
            for file, path in ((was, old), (now, new)):
                file.seek(path.stat().st_size - same - size if from_end else same)
            agreeing = _agreeing(was.read(size), now.read(size), from_end=from_end)
            same += agreeing
            if agreeing < size:
                break
    return same


def _agreeing(one: bytes, other: bytes, *, from_end: bool) -> int:
    if one == other:
        return len(one)
    differ = np.flatnonzero(np.frombuffer(one, np.uint8) != np.frombuffer(other, np.uint8))
    return int(len(one) - 1 - differ[-1] if from_end else differ[0])
