"""The files that an import reads: WARC files, those in a WACZ or a folder, and those that a CDX names."""

import gzip
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

import msgspec

from tamias.model.errors import UsageError

LONGEST_LINE = 1 << 20
_WARC = re.compile(r"\.warc(\.gz)?$", re.IGNORECASE)
_WACZ = re.compile(r"\.wacz$", re.IGNORECASE)
_CDX = re.compile(r"(\.cdxj?(\.gz)?|(^|/)cdx-[0-9]+\.gz)$", re.IGNORECASE)
_CDXJ = re.compile(rb"[^ ]* [0-9]{4,17} (\{.*\})$")
_USUAL = {11: (9, 10), 9: (7, 8), 10: (8, 9)}
"""Where offset and file stand in a CDX line without a header, by the number of its fields."""

Problem = Callable[[str], None]


class WarcInput(msgspec.Struct, frozen=True, eq=False):
    """A WARC file, wherever it stands."""

    name: str
    open: Callable[[], BinaryIO]
    """It can be sought in; whoever opens it closes it."""
    offsets: Callable[[], Iterator[int]] | None = None
    """Where the wanted records begin; None means all of it."""
    size: int = 0
    """In bytes, where all of it is read."""


def warc_inputs(path: Path, report: Problem) -> Iterator[WarcInput]:
    """The WARC files of a path. Raises `UsageError` for what is none of the kinds that are read."""
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            if each.is_file() and (_WARC.search(each.name) or _WACZ.search(each.name)):
                yield from warc_inputs(each, report)
    elif not path.is_file():
        raise UsageError(f"there is no file {path}")
    elif _WACZ.search(path.name):
        yield from _in_wacz(path, report)
    elif _CDX.search(path.name):
        yield from _named_by_cdx(path, report)
    elif _WARC.search(path.name):
        yield _file(path, path.name)
    else:
        raise UsageError(f"{path} is no .warc, .warc.gz, .wacz, .cdx or .cdxj file, nor a folder of them")


def _file(path: Path, name: str, offsets: Callable[[], Iterator[int]] | None = None) -> WarcInput:
    return WarcInput(name, lambda: path.open("rb"), offsets, 0 if offsets else path.stat().st_size)


def _in_wacz(path: Path, report: Problem) -> Iterator[WarcInput]:
    try:
        with zipfile.ZipFile(path) as package:
            members = [each for each in package.infolist() if _WARC.search(each.filename)]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        report(f"{path.name} is no WACZ that can be read: {error}")
        return
    for each in members:
        name = each.filename
        yield WarcInput(
            f"{path.name}/{name}",
            lambda name=name: _member(path, name),  # type: ignore[misc]
            size=each.compress_size,
        )


def _member(path: Path, name: str) -> BinaryIO:
    package = zipfile.ZipFile(path)
    try:
        return cast("BinaryIO", package.open(name))
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, KeyError) as error:
        raise OSError(str(error)) from error
    finally:
        package.close()  # the file stays open as long as its member is


def _named_by_cdx(path: Path, report: Problem) -> Iterator[WarcInput]:
    """Yield each file that the index names, with the offsets that it names: one pass to find the files."""
    names = dict.fromkeys(name for name, _ in _places(path, report))
    for name in names:
        found = _beside(path, name)
        if found is None:
            report(f"{path.name}: the file {name[:200]} is not beside the index; put it there")
            continue
        yield _file(found, found.name, lambda name=name: _offsets(path, name))  # type: ignore[misc]


def _offsets(path: Path, wanted: str) -> Iterator[int]:
    return (offset for name, offset in _places(path, lambda _: None) if name == wanted)


def _beside(index: Path, name: str) -> Path | None:
    """The file in the folder of the index, by its path or its name; never one outside of it."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        return None
    tries = [
        index.parent / parts[-1],
        index.parent / "archive" / parts[-1],
        index.parent.joinpath(*parts[-3:]),
    ]
    return next((each for each in tries if each.is_file()), None)


def _places(path: Path, report: Problem) -> Iterator[tuple[str, int]]:
    """Files and offsets."""
    letters: list[bytes] | None = None
    wrong = 0
    with _lines(path) as file:
        try:
            while line := file.readline(LONGEST_LINE):
                if line.startswith(b" CDX "):
                    letters = line.split()[1:]
                elif line.strip() and not line.startswith((b"#", b"!")):
                    place = _place(line.strip(), letters)
                    wrong += place is None
                    if place is not None:
                        yield place
        except (OSError, EOFError) as error:
            report(f"{path.name} is read no further: {error}")
    if wrong:
        report(f"{path.name}: {wrong} lines name no file and offset")


def _lines(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


def _place(line: bytes, letters: list[bytes] | None) -> tuple[str, int] | None:
    try:
        if found := _CDXJ.fullmatch(line):
            entry = msgspec.json.decode(found[1], type=dict[str, Any])
            return str(entry["filename"]), int(entry["offset"])
        fields = line.split()
        offset, name = (letters.index(b"V"), letters.index(b"g")) if letters else _USUAL[len(fields)]
        return fields[name].decode("utf-8", "replace"), int(fields[offset])
    except (KeyError, ValueError, IndexError, RecursionError, msgspec.DecodeError):
        return None
