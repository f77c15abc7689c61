"""Block lists from addresses that the operator names: fetched when they are due, checked, the last good kept.

Every process may look; a lock sees to it that one fetches. A file is replaced as a whole or not at all.
"""

import fcntl
import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from tamias.features.blocklists.files import BlocklistSource, collected
from tamias.model.errors import ConfigError

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
