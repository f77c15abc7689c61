"""Bytes of a file are replaced by others of the same length, so that all else stays where it is.

A complete file is copied and takes the place of the old one. In one that somebody is writing the bytes are
overwritten: what is about to be written is in a file beside it first, so that it is finished after a crash.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tamias.database.disk import sync_path, write_all
from tamias.model.faults import reached

_COPY = ".erasing"
_NOTES = ".overwrite"
_PIECE = 1024 * 1024


class _Overwrite(msgspec.Struct, frozen=True):
    """Places in a file, and what stands there from now on."""

    at: dict[int, bytes]


def replace_bytes(path: Path, at: Mapping[int, bytes], *, being_written: bool) -> None:
    """Replaces what stands at some places. May be done twice."""
    if being_written:
        _overwrite_in_place(path, _Overwrite(dict(at)))
    else:
        _replace_by_copy(path, at)


def remove_copies(folder: Path) -> None:
    """Removes what a process that was killed had copied; only for whoever is alone in replacing bytes."""
    for copy in folder.glob(f"*{_COPY}"):
        copy.unlink(missing_ok=True)


def finish_overwriting(folder: Path) -> int:
    """Finishes what a process that was killed had begun; returns in how many files. May be done twice."""
    count = 0
    for notes in sorted(folder.glob(f"*{_NOTES}")):
        path = notes.with_name(notes.name.removesuffix(_NOTES))
        for target in (path, path.with_name(path.name.removesuffix(".open"))):
            if target.exists():
                _write_over(target, msgspec.msgpack.decode(notes.read_bytes(), type=_Overwrite))
                count += 1
                break
        notes.unlink(missing_ok=True)
    return count


def _overwrite_in_place(path: Path, wanted: _Overwrite) -> None:
    notes = path.with_name(path.name + _NOTES)
    partial = notes.with_name(notes.name + ".part")
    _write(partial, msgspec.msgpack.encode(wanted))
    partial.rename(notes)
    sync_path(path.parent)
    reached("overwrite-noted")
    _write_over(path, wanted)
    notes.unlink(missing_ok=True)
    sync_path(path.parent)


def _write_over(path: Path, wanted: _Overwrite) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        for start, content in wanted.at.items():
            done = 0
            while done < len(content):
                done += os.pwrite(file, memoryview(content)[done:], start + done)
            reached("overwrite-part")
        os.fsync(file)
    finally:
        os.close(file)


def _replace_by_copy(path: Path, at: Mapping[int, bytes]) -> None:
    copy = path.with_name(path.name + _COPY)
    with path.open("rb") as source:
        mode = os.fstat(source.fileno()).st_mode & 0o777
        out = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        try:
            for start, content in sorted(at.items()):
                _copy(source.fileno(), out, start)
                write_all(out, content)
                os.lseek(source.fileno(), start + len(content), os.SEEK_SET)
            _copy(source.fileno(), out, None)
            os.fsync(out)
        finally:
            os.close(out)
    reached("overwrite-copied")
    copy.rename(path)
    sync_path(path.parent)


def _copy(source: int, out: int, until: int | None) -> None:
    """Copy from the position of the source up to a place, or to its end."""
    while until is None or os.lseek(source, 0, os.SEEK_CUR) < until:
        most = _PIECE if until is None else min(_PIECE, until - os.lseek(source, 0, os.SEEK_CUR))
        piece = os.read(source, most)
        if not piece:
            return
        write_all(out, piece)


def _write(path: Path, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(file, content)
        os.fsync(file)
    finally:
        os.close(file)
