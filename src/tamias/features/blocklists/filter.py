"""The filter: asks all lists at once, counts what each keeps out, and notices when a list was changed."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tamias.features.blocklists.table import BlocklistTable, CollectedEntries, Match
from tamias.features.blocklists.updates import (
    BlocklistSource,
    RemoteList,
    collected,
    default_cache,
    remote_list,
    sources,
)
from tamias.model.errors import ConfigError, UrlError
from tamias.model.url import host
from tamias.settings import FiltersSettings

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
