"""The lists that a path stands for, and their entries. Reads local files only, within bounds."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tamias.content.outside_lines import outside_texts
from tamias.features.blocklists.formats import BlocklistEntry, entries, expressions
from tamias.features.blocklists.table import CollectedEntries
from tamias.model.errors import ConfigError

_log = logging.getLogger(__name__)

LONGEST_LINE = 4096
MOST_BYTES = 2 << 30
"""Of one file, unpacked."""
MOST_LISTS = 1000
_SHOWN = 3

Read = Callable[[str], list[BlocklistEntry] | None]
_PARTS: dict[str, Read] = {"domains": entries, "urls": entries, "expressions": expressions}
"""The files of a category, as in the folders of the University of Toulouse and of squidGuard."""


class BlocklistSource(msgspec.Struct, frozen=True):
    """A list: its name and its files."""

    name: str
    files: tuple[Path, ...]

    def state(self) -> tuple[tuple[str, int, int], ...] | None:
        """Return what changes when a file does; None when one is not there."""
        try:
            seen = [(str(file), file.stat()) for file in self.files]
        except OSError:
            return None
        return tuple((name, status.st_mtime_ns, status.st_size) for name, status in seen)


def sources(argument: str) -> list[BlocklistSource]:
    """The lists that a setting names: a file, a category, or a folder of either; `NAME=PATH` names it.

    Raises `ConfigError` where there is none.
    """
    name, equals, place = argument.rpartition("=")
    path = Path(place).expanduser()
    found = _in_folder(path, name or path.name) if path.is_dir() else _file(path, name if equals else "")
    if not found:
        raise ConfigError(f"filters.blocklists: there is no list at {path}; name a file or a folder of lists")
    if len(found) > MOST_LISTS:
        raise ConfigError(f"filters.blocklists: {path} has more than {MOST_LISTS} lists; name some of them")
    return found


def _file(path: Path, name: str) -> list[BlocklistSource]:
    return [BlocklistSource(name or _short(path), (path,))] if path.is_file() else []


def _short(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".txt")


def _in_folder(path: Path, name: str) -> list[BlocklistSource]:
    own = _category(path, name)
    if own is not None:
        return [own]
    inside = sorted(each for each in path.iterdir() if not each.name.startswith("."))
    categories = [_category(each, f"{name}/{each.name}") for each in inside if each.is_dir()]
    found = [each for each in categories if each is not None]
    return found or [BlocklistSource(f"{name}/{_short(each)}", (each,)) for each in inside if each.is_file()]


def _category(path: Path, name: str) -> BlocklistSource | None:
    files = [path / f"{part}{packed}" for part in _PARTS for packed in ("", ".gz")]
    there = tuple(file for file in files if file.is_file())
    return BlocklistSource(name, there) if there else None


def collected(source: BlocklistSource, room: int, address: str | None = None) -> CollectedEntries:
    """The entries of a list, which may come from an address. Lines that make no sense are counted and told.

    Raises `ConfigError` when a file is not text or cannot be read, or if there is no room for its entries.
    """
    found = CollectedEntries()
    strange: list[str] = []
    wrong = 0
    for file in source.files:
        read = _PARTS.get(file.name.removesuffix(".gz"), entries)
        place = address or str(file)
        for number, line in enumerate(_lines(file, place), start=1):
            said = None if line is None else read(line)
            if said is None and line is not None and "\0" in line:
                raise ConfigError(f"the block list {place} is not text: unpack it, and name the lists in it")
            if said is None or not all(map(found.add, said)):
                wrong += 1
                if len(strange) < _SHOWN:
                    strange.append(f"{file.name} line {number}")
            if len(found) > room:
                raise ConfigError(
                    f"the block list {source.name} has too many entries: all lists together may have "
                    f"filters.blocklist_entries"
                )
    if wrong:
        shown = ", ".join(strange)
        _log.warning("block list %s: %d invalid lines, such as %s", source.name, wrong, shown)
    found.wrong = wrong
    return found


def _lines(file: Path, place: str) -> Iterator[str | None]:
    try:
        yield from outside_texts(file, LONGEST_LINE, MOST_BYTES)
    except ValueError as error:
        raise ConfigError(f"the block list {place} cannot be read: {error}") from error
