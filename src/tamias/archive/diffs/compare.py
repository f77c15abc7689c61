"""The difference of two versions of a file, told in the terms of what it is.

What cannot be compared as what its type says is compared as lines, or at last as bytes, and a note says why.
"""

import filecmp
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from tamias.archive.diffs.json_paths import json_diff, json_lines_diff
from tamias.archive.diffs.lines import lines_diff
from tamias.archive.diffs.rows import rows_diff
from tamias.archive.diffs.triples import triples_diff
from tamias.archive.diffs.values import Change, Diff, DiffKind, DiffLimits, What, told_text
from tamias.content.canonical import Unreadable
from tamias.content.containers.directory import ZipEntry, members
from tamias.content.containers.packed import looked_at, unpack
from tamias.content.formats import Form, bare_type, form_of

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


def members_diff(old: Path, new: Path, limits: DiffLimits) -> Diff:
    """Compares two zip archives by their directories. Raises `Unreadable`."""
    was, now = ({each.name: each for each in members(path)} for path in (old, new))
    changed = [name for name in was.keys() & now.keys() if was[name] != now[name]]
    names = sorted([*(was.keys() ^ now.keys()), *changed])
    notes = []
    if any(each.encrypted for each in (*was.values(), *now.values())):
        notes.append("some members are encrypted: their checksums may not tell that they changed")
    return Diff(
        kind=DiffKind.MEMBERS,
        added=len(now.keys() - was.keys()),
        removed=len(was.keys() - now.keys()),
        changed=len(changed),
        changes=[_change(name, was.get(name), now.get(name), limits) for name in names[: limits.changes]],
        truncated=len(names) > limits.changes,
        notes=notes,
    )


def _change(name: str, was: ZipEntry | None, now: ZipEntry | None, limits: DiffLimits) -> Change:
    what = What.ADDED if was is None else What.REMOVED if now is None else What.CHANGED
    return Change(what, told_text(name, limits), _told(was), _told(now))


def _told(member: ZipEntry | None) -> dict[str, int | str] | None:
    return None if member is None else {"size": member.size, "crc32": f"{member.crc:08x}"}


_KINDS = {
    Form.ROWS: DiffKind.ROWS,
    Form.STATEMENTS: DiffKind.TRIPLES,
    Form.JSON: DiffKind.JSON,
    Form.JSON_LINES: DiffKind.JSON,
    Form.MEMBERS: DiffKind.MEMBERS,
    Form.TEXT: DiffKind.LINES,
    Form.BYTES: DiffKind.BYTES,
}
_UNTOLD = frozenset({"", "application/octet-stream"})


def diff(
    old: Path,
    new: Path,
    media_type: str | None,
    *,
    key: str | None = None,
    limits: DiffLimits | None = None,
    base: str | None = None,
) -> Diff:
    """What is different in `new`. The key is a column that tells rows apart; the base resolves IRIs.

    Never raises because of what the files say.
    """
    limits = limits or DiffLimits()
    media_type = looked_at(old) if (media_type or "").lower() in _UNTOLD else media_type
    if form_of(media_type) is Form.GZIP:
        return _unpacked_diff(old, new, key, limits, base)
    return _Files(old, new, media_type, key, limits, base).diff()


def _unpacked_diff(old: Path, new: Path, key: str | None, limits: DiffLimits, base: str | None) -> Diff:
    with tempfile.TemporaryDirectory(prefix="tamias-diff-") as folder:
        was, now = Path(folder, "old"), Path(folder, "new")
        try:
            unpack(old, was, limits.unpacked_bytes)
            unpack(new, now, limits.unpacked_bytes)
        except Unreadable as fault:
            return _noted(bytes_diff(old, new), [f"not unpacked: {fault}"])
        media_type = looked_at(was)
        if form_of(media_type) is Form.GZIP:
            media_type = None
        return _noted(_Files(was, now, media_type, key, limits, base).diff(), ["what is packed is compared"])


class _Files(msgspec.Struct, frozen=True):
    """Two files, and how they are to be compared."""

    old: Path
    new: Path
    media_type: str | None
    key: str | None
    limits: DiffLimits
    base: str | None

    def diff(self) -> Diff:
        form = form_of(self.media_type)
        if filecmp.cmp(self.old, self.new, shallow=False):
            return Diff(kind=_KINDS[form])
        notes: list[str] = []
        for kind, attempt in self._attempts(form):
            try:
                found = attempt()
            except (Unreadable, RecursionError) as fault:
                notes.append(f"not compared as {kind}: {fault}")
            else:
                return _noted(found, notes)
        return _noted(bytes_diff(self.old, self.new), notes)

    def _attempts(self, form: Form) -> list[tuple[DiffKind, Callable[[], Diff]]]:
        """The ways to compare, the best first."""
        ways: list[tuple[DiffKind, Callable[[], Diff]]] = []
        if form is Form.STATEMENTS:
            ways.append((DiffKind.TRIPLES, self._triples))
        if form is Form.JSON or bare_type(self.media_type).endswith("+json"):
            ways.append((DiffKind.JSON, lambda: json_diff(self.old, self.new, self.limits)))
        elif form is Form.JSON_LINES:
            ways.append((DiffKind.JSON, lambda: json_lines_diff(self.old, self.new, self.limits)))
        elif form is Form.ROWS:
            ways.append((DiffKind.ROWS, self._rows))
        elif form is Form.MEMBERS:
            return [(DiffKind.MEMBERS, lambda: members_diff(self.old, self.new, self.limits))]
        elif form is Form.BYTES:
            return []
        return [*ways, (DiffKind.LINES, lambda: lines_diff(self.old, self.new, self.limits))]

    def _triples(self) -> Diff:
        return triples_diff(self.old, self.new, self.media_type or "", self.limits, self.base)

    def _rows(self) -> Diff:
        delimiter = "\t" if "tab-separated" in (self.media_type or "") else None
        return rows_diff(self.old, self.new, delimiter, self.key, self.limits)


def _noted(found: Diff, notes: list[str]) -> Diff:
    return msgspec.structs.replace(found, notes=[*notes, *found.notes]) if notes else found
