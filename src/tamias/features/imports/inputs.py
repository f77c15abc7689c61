"""The files that an import reads: WARC files, those in a WACZ or a folder, and those that a CDX names."""

import gzip
import re
import zipfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

import msgspec

from tamias.model.errors import UsageError

LONGEST_LINE = 1 << 20
MOST_NESTED = 3
"""WACZ files in one another."""
_WARC = re.compile(r"\.w?arc(\.gz|\.zst)?$", re.IGNORECASE)
_WACZ = re.compile(r"\.wacz$", re.IGNORECASE)
_CDX = re.compile(r"(\.cdxj?(\.gz)?|(^|/)cdx-[0-9]+\.gz)$", re.IGNORECASE)
_CDXJ = re.compile(rb"[^ ]* [0-9]{4,17} (\{.*\})$")
_USUAL = {11: (9, 10), 9: (7, 8), 10: (8, 9)}
"""Where offset and file stand in a CDX line without a header, by the number of its fields."""

NO_INPUT = "no .warc or .arc file (plain, .gz or .zst), nor .wacz, .cdx or .cdxj file"

Problem = Callable[[str], None]


class WarcInput(msgspec.Struct, frozen=True, eq=False):
    """A WARC file, wherever it stands."""

    name: str
    open: Callable[[], BinaryIO]
    """It can be sought in; whoever opens it closes it."""
    offsets: Sequence[int] | None = None
    """Where the wanted records begin; None means all of it."""
    size: int = 0
    """In bytes, where all of it is read."""


def warc_inputs(path: Path, report: Problem, pass_over: Problem, own: Path) -> Iterator[WarcInput]:
    """The WARC files of a path. Raises `UsageError` for what is none of the kinds that are read.

    `pass_over` is told of the files in a folder that are none. An index in a folder is not read: the files
    that it names are read as a whole. A folder is imported without the data directory `own` in it.
    """
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            if each.absolute().is_relative_to(own):
                continue
            if _WARC.search(each.name) or _WACZ.search(each.name):
                yield from warc_inputs(each, report, pass_over, own) if each.is_file() else ()
            elif each.is_file() and not _CDX.search(each.name):
                pass_over(f"{each}: {NO_INPUT}")
    elif not path.is_file():
        raise UsageError(f"there is no file {path}")
    elif _WACZ.search(path.name):
        yield from _in_wacz(path, (), pass_over)
    elif _CDX.search(path.name):
        yield from _named_by_cdx(path, report)
    elif _WARC.search(path.name):
        yield _file(path, path.name)
    else:
        raise UsageError(f"{path} is {NO_INPUT}, nor a folder of them")


def _file(path: Path, name: str, offsets: Sequence[int] | None = None) -> WarcInput:
    return WarcInput(name, lambda: path.open("rb"), offsets, 0 if offsets else path.stat().st_size)


def _in_wacz(path: Path, inside: tuple[str, ...], pass_over: Problem) -> Iterator[WarcInput]:
    """Yield the WARC files of a WACZ, and of those in it; `inside` leads to it from the outermost."""
    place = "/".join((path.name, *inside))
    try:
        with closing(_member(path, inside) if inside else path.open("rb")) as file:
            members = zipfile.ZipFile(file).infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        pass_over(f"{place}: it is no WACZ that can be read: {error}")
        return
    for each in members:
        names = *inside, each.filename
        if _WARC.search(each.filename):
            yield WarcInput(
                f"{place}/{each.filename}",
                lambda names=names: _member(path, names),  # type: ignore[misc]
                size=each.compress_size,
            )
        elif _WACZ.search(each.filename):
            if each.compress_type != zipfile.ZIP_STORED or len(names) >= MOST_NESTED:
                why = "it is compressed, or too deep in others; unpack it and import it by itself"
                pass_over(f"{place}/{each.filename}: {why}")
            else:
                yield from _in_wacz(path, names, pass_over)


def _member(path: Path, names: tuple[str, ...]) -> BinaryIO:
    """Open a file of a WACZ, or of one in it."""
    file: BinaryIO = path.open("rb")
    try:
        for name in names:
            # The file stays open as long as its member is.
            file = cast("BinaryIO", zipfile.ZipFile(file).open(name))  # noqa: SIM115
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, KeyError) as error:
        file.close()
        raise OSError(str(error)) from error
    return file


def _named_by_cdx(path: Path, report: Problem) -> Iterator[WarcInput]:
    """Yield each file that the index names, with the offsets that it names."""
    places: dict[str, array[int]] = {}
    for name, offset in _places(path, report):
        places.setdefault(name, array("q")).append(offset)
    for name, offsets in places.items():
        found = _beside(path, name)
        if found is None:
            report(f"{path.name}: the file {name[:200]} is not beside the index; put it there")
        else:
            yield _file(found, found.name, offsets)


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
            place = str(entry["filename"]), int(entry["offset"])
        else:
            fields = line.split()
            offset, name = (letters.index(b"V"), letters.index(b"g")) if letters else _USUAL[len(fields)]
            place = fields[name].decode("utf-8", "replace"), int(fields[offset])
    except (KeyError, ValueError, IndexError, RecursionError, msgspec.DecodeError):
        return None
    return place if 0 <= place[1] < 1 << 62 else None
