"""Block lists of files, folders and addresses that the operator names: read within bounds, fetched when due.

Of fetched ones, which are checked, the last good is kept. Every process may look; a lock sees to it that one
fetches. A file is replaced as a whole or not at all.
"""

import fcntl
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from tamias.content.outside_lines import outside_texts
from tamias.features.blocklists.table import BlocklistEntry, CollectedEntries, entries, expressions
from tamias.model.errors import ConfigError

LONGEST_LINE = 4096
MOST_FILE_BYTES = 2 << 30
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
        yield from outside_texts(file, LONGEST_LINE, MOST_FILE_BYTES)
    except ValueError as error:
        raise ConfigError(f"the block list {place} cannot be read: {error}") from error


_log = logging.getLogger(__name__)

SECONDS = 120.0
MOST_BYTES = 256 << 20
"""Of one list, as it is sent."""
LEAST_SHARE = 0.5
"""A list that lost more than this since the last time is taken for damaged."""
MOST_ENTRIES = 20_000_000
_ADDRESS = re.compile(r"(?:([\w./-]+)=)?(https?://.+)")


class ListVersion(msgspec.Struct, frozen=True):
    """The details of the last good version of a list."""

    url: str
    etag: str | None = None
    last_modified: str | None = None
    entries: int = 0


def remote_list(argument: str) -> tuple[str, str] | None:
    """The name and the address of a list that is fetched; None for a path.

    >>> remote_list("ads=https://lists.example/hosts.txt?a=b"), remote_list("/lists/hosts.txt")
    (('ads', 'https://lists.example/hosts.txt?a=b'), None)
    >>> remote_list("https://lists.example/malware.txt.gz")
    ('malware', 'https://lists.example/malware.txt.gz')
    """
    found = _ADDRESS.fullmatch(argument)
    if found is None:
        return None
    file = found[2].partition("?")[0].rpartition("/")[2].removesuffix(".gz").removesuffix(".txt")
    return found[1] or file or found[2].split("/")[2], found[2]


class RemoteList:
    """A list in the cache folder."""

    def __init__(self, name: str, url: str, cache: Path, refresh: float) -> None:
        """Refresh the list `refresh` seconds after the last check."""
        ending = ".gz" if url.partition("?")[0].endswith(".gz") else ""
        stem = sha256(url.encode()).hexdigest()[:24]
        self._url = url
        self._refresh = refresh
        self._path = cache / f"{stem}.txt{ending}"
        self._about = cache / f"{stem}.json"
        self.source = BlocklistSource(name, (self._path,))

    def update(self) -> None:
        """Fetch the list if it is due. Raises `ConfigError` where that fails; the last good one stays."""
        if not self._is_due():
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(self._path.with_suffix(".lock"), wait=not self._path.exists()) as first:
            if first and self._is_due():
                try:
                    self._fetch()
                finally:
                    # A server that fails is asked again in its time, not at once by every process.
                    if self._about.exists():
                        os.utime(self._about)

    def _is_due(self) -> bool:
        try:
            return not self._path.exists() or time.time() - self._about.stat().st_mtime >= self._refresh
        except OSError:
            return True

    def _fetch(self) -> None:
        known = self._known()
        partial = self._path.with_name(f"new-{self._path.name}")
        from tamias.service_client import NoResponse, ServiceClient  # loads libcurl

        client = ServiceClient(proxied=True)
        try:
            with partial.open("wb") as file:
                response = client.send(
                    "GET", self._url, headers=_conditions(known), seconds=SECONDS, most=MOST_BYTES, into=file
                )
                file.flush()
                os.fsync(file.fileno())
            if response.status == 304 and self._path.exists():
                return
            if response.status != 200 or response.is_cut:
                said = f"more than {MOST_BYTES} bytes" if response.is_cut else f"status {response.status}"
                raise ConfigError(f"the block list {self._url} cannot be fetched: {said}")
            entries = self._checked(partial, known.entries)
            about = ListVersion(
                self._url, response.headers.get("etag"), response.headers.get("last-modified"), entries
            )
            partial.replace(self._path)
            self._about.write_bytes(msgspec.json.encode(about))
            _log.info("block list %s: fetched, %d entries", self.source.name, entries)
        except NoResponse as error:
            raise ConfigError(f"the block list {self._url} cannot be fetched: {error}") from error
        finally:
            client.close()
            partial.unlink(missing_ok=True)

    def _checked(self, path: Path, before: int) -> int:
        """Return the count of entries in the new file. Raises `ConfigError` if it is no list or cut off."""
        found = collected(BlocklistSource(self.source.name, (path,)), MOST_ENTRIES, self._url)
        if not len(found) or found.wrong > len(found):
            raise ConfigError(
                f"what {self._url} gives is no block list: {len(found)} entries, {found.wrong} invalid lines"
            )
        if len(found) < before * LEAST_SHARE:
            raise ConfigError(
                f"the block list {self._url} shrank from {before} to {len(found)} entries; if that is meant, "
                f"remove {self._about}"
            )
        return len(found)

    def _known(self) -> ListVersion:
        try:
            return msgspec.json.decode(self._about.read_bytes(), type=ListVersion)
        except (OSError, msgspec.DecodeError):
            return ListVersion(self._url)


def default_cache() -> Path:
    """Return where lists are kept unless `filters.blocklist_cache` says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tamias" / "blocklists"


def _conditions(known: ListVersion) -> dict[str, str]:
    said = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    return {name: value for name, value in said.items() if value}


@contextmanager
def _alone(path: Path, *, wait: bool) -> Iterator[bool]:
    """Yield if nobody else fetches the list now; with `wait`, wait for the other to finish."""
    try:
        with path.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True
    except OSError as error:
        raise ConfigError(f"the cache of block lists {path.parent} cannot be written: {error}") from error
