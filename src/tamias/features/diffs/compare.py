"""The difference of two versions of a file in the terms of what it is.

What cannot be compared as what its type says is compared as lines, or at last as bytes, and a note says why.
"""

import filecmp
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from tamias.content.formats import CSV, PARQUET, Form, bare_type, form_of
from tamias.features.archive.canonical.content_digest import (
    Stored,
    noise_between,
    table_of,
    text_of,
    type_to_compare,
    unpacked_in,
    ways,
)
from tamias.features.archive.canonical.directory import ArchiveEntry, members
from tamias.features.archive.canonical.tables import FileTable
from tamias.features.diffs.json_paths import json_diff, json_lines_diff
from tamias.features.diffs.lines import lines_diff
from tamias.features.diffs.rows import tables_diff
from tamias.features.diffs.sheets import sheets_diff
from tamias.features.diffs.triples import statements_diff, triples_diff
from tamias.features.tables.reader import write_parquet_rows
from tamias.model.diff import Change, Diff, DiffKind, DiffLimits, What
from tamias.model.document import Unreadable

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
    """Count the equal bytes at the beginning or the end, `most` at most."""
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
    """Compares two archives by the names and checksums of their files. Raises `Unreadable`."""
    was, now = (
        {each.name: each for each in members(path, limits.read_bytes) if not each.tells_of_saving}
        for path in (old, new)
    )
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


def _change(name: str, was: ArchiveEntry | None, now: ArchiveEntry | None, limits: DiffLimits) -> Change:
    what = What.ADDED if was is None else What.REMOVED if now is None else What.CHANGED
    return Change(what, limits.shorten(name), _shown(was), _shown(now))


def _shown(member: ArchiveEntry | None) -> dict[str, int | str] | None:
    if member is None:
        return None
    if member.special is not None:
        return {"special": member.special}
    return {"size": member.size, "crc32": f"{member.crc:08x}"}


_KINDS = {
    Form.ROWS: DiffKind.ROWS,
    Form.STATEMENTS: DiffKind.TRIPLES,
    Form.JSON: DiffKind.JSON,
    Form.JSON_LINES: DiffKind.JSON,
    Form.SHEETS: DiffKind.SHEETS,
    Form.MEMBERS: DiffKind.MEMBERS,
    Form.TEXT: DiffKind.LINES,
    Form.PACKED: DiffKind.BYTES,
    Form.BYTES: DiffKind.BYTES,
}


def diff(
    old: Path,
    new: Path,
    media_type: str | None,
    *,
    old_type: str | None = None,
    key: str | None = None,
    limits: DiffLimits | None = None,
    base: str | None = None,
) -> Diff:
    """Return what is different in `new`; empty just when `noise_between` finds that both say the same.

    The old file is of the same type unless another is given. The key is a column that distinguishes rows; the
    base resolves IRIs. Never raises because of what the files say.
    """
    limits = limits or DiffLimits()
    was = _stored(old, old_type or media_type, limits, base)
    return _Pair(was, _stored(new, media_type, limits, base), key, limits).diff()


def _stored(path: Path, media_type: str | None, limits: DiffLimits, base: str | None) -> Stored:
    return Stored(
        source=path,
        media_type=type_to_compare(path, media_type),
        base=base,
        unpacked_bytes=limits.unpacked_bytes,
    )


class _Pair(msgspec.Struct, frozen=True):
    """Two files, and how they are to be compared."""

    old: Stored
    new: Stored
    key: str | None
    limits: DiffLimits

    @property
    def _files(self) -> tuple[Path, Path]:
        assert isinstance(self.old.source, Path)
        assert isinstance(self.new.source, Path)
        return self.old.source, self.new.source

    def diff(self) -> Diff:
        form = form_of(self.new.media_type)
        if form is Form.PACKED is form_of(self.old.media_type):
            return self._unpacked()
        if filecmp.cmp(*self._files, shallow=False):
            return Diff(kind=_KINDS[form])
        if bare_type(self.new.media_type) == PARQUET == bare_type(self.old.media_type):
            return self._parquet_rows()
        noise = noise_between(self.old, self.new)
        if noise is not None:
            return Diff(kind=_KINDS[noise.form], notes=[f"the same content: {noise.reason}"])
        return self._compared()

    def _unpacked(self) -> Diff:
        with tempfile.TemporaryDirectory(prefix="tamias-diff-") as folder:
            try:
                was = unpacked_in(self.old, Path(folder, "old"))
                now = unpacked_in(self.new, Path(folder, "new"))
            except Unreadable as fault:
                return _noted(bytes_diff(*self._files), [f"not unpacked: {fault}"])
            inner = msgspec.structs.replace(self, old=was, new=now)
            found = inner.diff() if form_of(now.media_type) is not Form.PACKED else bytes_diff(*inner._files)
            return _noted(found, ["what is packed is compared"])

    def _parquet_rows(self) -> Diff:
        with tempfile.TemporaryDirectory(prefix="tamias-diff-") as folder:
            files = [Path(folder, name) for name in ("old.csv", "new.csv")]
            try:
                for source, target in zip(self._files, files, strict=True):
                    write_parquet_rows(source, target, self.limits.read_bytes)
            except Unreadable as fault:
                return _noted(bytes_diff(*self._files), [f"not compared as rows: {fault}"])
            was, now = (Stored(source=file, media_type=CSV) for file in files)
            return msgspec.structs.replace(self, old=was, new=now).diff()

    def _compared(self) -> Diff:
        """Compare in the first way that finds a difference, in the end by bytes: the contents differ."""
        notes: list[str] = []
        for form in ways(self.new.media_type):
            try:
                found = self._in(form)
            except (Unreadable, RecursionError) as fault:
                notes.append(f"not compared as {_KINDS[form]}: {fault}")
                continue
            if not found.is_empty:
                return _noted(found, notes)
            notes.append(f"no difference as {_KINDS[form]}: it is in the order, or in how they are written")
        return _noted(bytes_diff(*self._files), notes)

    def _in(self, form: Form) -> Diff:
        if form is Form.ROWS:
            return tables_diff(self._table(self.old), self._table(self.new), self.key, self.limits)
        if form is Form.STATEMENTS:
            types = [each.media_type or "" for each in (self.old, self.new)]
            found = statements_diff(*self._files, types[1], self.limits, self.new.base, old_type=types[0])
            return triples_diff(found, self.limits)
        if form is Form.SHEETS:
            return sheets_diff(*self._files, self.key, self.limits)
        if form is Form.TEXT:
            was, now = (text_of(each, self.limits.read_bytes) for each in (self.old, self.new))
            return lines_diff(was, now, self.limits)
        return _COMPARED[form](*self._files, self.limits)

    def _table(self, stored: Stored) -> FileTable:
        return table_of(stored, self.limits.read_bytes)


_COMPARED: dict[Form, Callable[[Path, Path, DiffLimits], Diff]] = {
    Form.JSON: json_diff,
    Form.JSON_LINES: json_lines_diff,
    Form.MEMBERS: members_diff,
}


def _noted(found: Diff, notes: list[str]) -> Diff:
    return msgspec.structs.replace(found, notes=[*notes, *found.notes]) if notes else found
