"""The filter: asks all lists at once, counts what each keeps out, and notices when a list was changed.

Lists of files, folders and addresses that the operator names are read within bounds, and fetched when due.
Of fetched ones, which are checked, the last good is kept. Every process may look; a lock sees to it that one
fetches. A file is replaced as a whole or not at all.
"""

import fcntl
import logging
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import msgspec

from tamias.content.outside_lines import outside_texts
from tamias.features.blocklists.table import (
    BlocklistEntry,
    BlocklistTable,
    CollectedEntries,
    Match,
    entries,
    expressions,
)
from tamias.model.errors import ConfigError, UrlError
from tamias.model.url import host
from tamias.settings import FiltersSettings

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
            count = self._checked(partial, known.entries)
            about = ListVersion(
                self._url, response.headers.get("etag"), response.headers.get("last-modified"), count
            )
            partial.replace(self._path)
            self._about.write_bytes(msgspec.json.encode(about))
            _log.info("block list %s: fetched, %d entries", self.source.name, count)
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


_log = logging.getLogger(__name__)

State = tuple[tuple[str, int, int], ...] | None


class Lists:
    """The lists that settings name, read once and again when their files change. For any thread."""

    def __init__(self, arguments: Sequence[str], most_entries: int, refresh: float, cache: str) -> None:
        folder = Path(cache).expanduser() if cache else default_cache()
        named = [(argument, remote_list(argument)) for argument in arguments]
        self._arguments = tuple(argument for argument, remote in named if remote is None)
        self._remote = [RemoteList(*remote, folder, refresh) for _, remote in named if remote is not None]
        self._most_entries = most_entries
        self._states: dict[str, State] = {}
        self._collected: dict[str, CollectedEntries] = {}
        self._missed: set[str] = set()
        self.names: tuple[str, ...] = ()
        self.table = BlocklistTable()
        for each in self._remote:
            self._update(each)
        found = [*_sources(self._arguments), *(each.source for each in self._remote)]
        _check_names(found)
        for source in found:
            self._read(source)
        self._build()

    def look(self) -> None:
        """Read what was changed; a list that is gone or broken stays as it was, with a warning."""
        changed = False
        for source in self._found():
            state = source.state()
            if state is None:
                self._warn(source.name, "its file is gone")
            elif state != self._states.get(source.name):
                changed |= self._read_again(source)
        if changed:
            self._build()

    def _found(self) -> list[BlocklistSource]:
        found: list[BlocklistSource] = []
        for argument in self._arguments:
            try:
                found += sources(argument)
            except ConfigError as error:
                self._warn(argument, str(error))
        for each in self._remote:
            try:
                self._update(each)
                found.append(each.source)
            except ConfigError as error:
                self._warn(each.source.name, str(error))
        return found

    def _update(self, remote: RemoteList) -> None:
        """Raise `ConfigError` where there is neither a new list nor an old one."""
        try:
            remote.update()
        except ConfigError as error:
            if remote.source.state() is None:
                raise
            _log.warning("block list %s stays as it was fetched last: %s", remote.source.name, error)

    def _read_again(self, source: BlocklistSource) -> bool:
        try:
            self._read(source)
        except ConfigError as error:
            self._warn(source.name, str(error))
            return False
        self._missed.discard(source.name)
        _log.info("block list %s: read anew, %d entries", source.name, len(self._collected[source.name]))
        return True

    def _read(self, source: BlocklistSource) -> None:
        state = source.state()
        others = sum(len(each) for name, each in self._collected.items() if name != source.name)
        self._collected[source.name] = collected(source, self._most_entries - others)
        self._states[source.name] = state

    def _build(self) -> None:
        table = BlocklistTable(self._collected.values())
        self.names, self.table = tuple(self._collected), table

    def _warn(self, name: str, why: str) -> None:
        if name not in self._missed:
            self._missed.add(name)
            _log.warning("block list %s stays as it was read last: %s", name, why)


def _sources(arguments: Sequence[str]) -> list[BlocklistSource]:
    return [source for argument in arguments for source in sources(argument)]


def _check_names(found: Sequence[BlocklistSource]) -> None:
    names = Counter(source.name for source in found)
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        raise ConfigError(f"filters.blocklists: two lists are called {twice[0]}; name one as NAME=PATH")


read_lists = lru_cache(maxsize=None)(Lists)
"""The lists of the same settings are read once in a process."""


class BlocklistFilter:
    """Keeps out what a block list names. Looks for changed files every `blocklist_interval` seconds."""

    def __init__(self, settings: FiltersSettings) -> None:
        """A list at an address is requested again every `blocklist_refresh` seconds."""
        most, refresh = settings.blocklist_entries, settings.blocklist_refresh
        self._lists = read_lists(settings.blocklists, most, refresh, settings.blocklist_cache)
        self._interval = settings.blocklist_interval
        self._next_look = time.monotonic() + self._interval
        self._looking = threading.Lock()
        self._counts: Counter[str] = Counter()

    def refuse(self, url: str, depth: int) -> str | None:
        found = self._found(url)
        if found is None:
            return None
        name = self._lists.names[found.list]
        self._counts[name] += 1
        return f"block list {name}: {found.by[:200]}"

    def taken_counts(self) -> dict[str, int]:
        """Return how often each list kept something out since the last call."""
        counts, self._counts = self._counts, Counter()
        return dict(counts)

    def look(self) -> None:
        """Look for changed files now, unless somebody does already."""
        if self._looking.acquire(blocking=False):
            try:
                self._lists.look()
            finally:
                self._looking.release()

    def _found(self, url: str) -> Match | None:
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + self._interval
            threading.Thread(target=self.look, name="block lists", daemon=True).start()
        table = self._lists.table
        if not table.entries:
            return None
        try:
            name = host(url)
        except UrlError:
            return None
        return table.find(name, _rest(url))


def blocklist_filter(settings: FiltersSettings) -> BlocklistFilter | None:
    """Return the filter; None where no list is named."""
    return BlocklistFilter(settings) if settings.blocklists else None


def _rest(url: str) -> str:
    """Path and query of a `fetch_url`."""
    start = url.find("://") + 3
    place = url.find("/", start)
    return url[place:] if place >= 0 and start > 2 else ""
