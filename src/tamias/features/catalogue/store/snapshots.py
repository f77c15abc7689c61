"""Snapshots of a store: hard links to its files, which never change, for any number of processes to read.

In the folder of a store are `oxigraph`, which one process writes, and `snapshots`, each named by its number;
`next` is the same store while it is written anew. A reader holds the lock beside the snapshot; the writer
removes old ones that nobody holds.

The bulk loader makes the smallest files, and updates make them larger over time: run as a program, this
module loads the newest snapshot of a folder into its `next`, while the writer goes on. `Compaction` is the
writer's side of it.
"""

import ctypes
import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Final

import msgspec
from pyoxigraph import Quad, Store

from tamias.database.disk import opened, shared, try_alone

STORE: Final = "oxigraph"
NEXT: Final = "next"
_OLD: Final = "oxigraph.old"
_LOADED: Final = "loaded.json"
_SNAPSHOTS: Final = "snapshots"
_FORMAT: Final = "format"
_THIS_FORMAT: Final = "2"
_DIRTY: Final = "dirty"
_COMPRESSIBLE: Final = 8_000_000
"""Quads of which each index takes 512 MiB."""
_SOME: Final = 20_000
_REPLACED_SECONDS: Final = 5.0
"""After which a folder that is not there is taken for an empty store."""


def make_store(folder: Path, quads: Iterable[Quad]) -> None:
    """A store of quads in a folder, with a snapshot to be read."""
    store = Store(str(folder / STORE))
    load(store, folder, quads)
    _take_snapshot(store, folder, 1)
    mark_format(folder)
    del store
    gc.collect()  # only then are its files closed, and the next process can have them


class Loaded(msgspec.Struct, frozen=True):
    """A store when it was loaded."""

    statements: int
    bytes: int


def load(store: Store, folder: Path, quads: Iterable[Quad], *, is_compressed: bool = False) -> None:
    """Puts quads into an empty store, and notes how large it is then.

    The bulk loader writes files of a million quads, which RocksDB would merge as soon as the store is used:
    for minutes in a large one, and what is written meanwhile is seen late. So they are merged here.

    RocksDB compresses files only where those of an index are merged with 512 MiB of it or more, so not by the
    first merge. One that `is_compressed` is merged once more, with some of its own quads. One that is not is
    noted as small as it was before it was merged, and so written anew once.
    """
    loaded = _Counted(quads)
    store.bulk_extend(loaded)
    size = size_of(folder / STORE)
    store.optimize()
    if is_compressed and loaded.count >= _COMPRESSIBLE:
        store.bulk_extend(loaded.some)
        store.optimize()
    if is_compressed:
        size = size_of(folder / STORE)
    (folder / _LOADED).write_bytes(msgspec.json.encode(Loaded(loaded.count, size)))


def size_of(folder: Path) -> int:
    """Bytes of the files of a store."""
    total = 0
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):  # merged meanwhile
            total += entry.stat().st_size
    return total


def read_loaded(folder: Path) -> Loaded | None:
    """Return the size of the store in a folder when it was loaded; None if it never was."""
    try:
        return msgspec.json.decode((folder / _LOADED).read_bytes(), type=Loaded)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def take_next(folder: Path) -> None:
    """The store in `next` takes the place of the one that there is, which must be closed."""
    old = folder / _OLD
    (folder / STORE).rename(old)
    (folder / NEXT / STORE).rename(folder / STORE)
    (folder / NEXT / _LOADED).replace(folder / _LOADED)
    shutil.rmtree(old)
    shutil.rmtree(folder / NEXT)


class _Counted:
    def __init__(self, quads: Iterable[Quad]) -> None:
        self._quads = quads
        self.count = 0
        self.some: list[Quad] = []
        """Taken at even distances, so that every file of an index has keys of them."""

    def __iter__(self) -> Iterator[Quad]:
        step = 1
        for quad in self._quads:
            if self.count % step == 0:
                self.some.append(quad)
                if len(self.some) == _SOME:
                    del self.some[1::2]
                    step *= 2
            self.count += 1
            yield quad


def mark_format(folder: Path) -> None:
    """Says that the store in a folder is laid out as this version does."""
    (folder / _FORMAT).write_text(_THIS_FORMAT, encoding="ascii")


def is_of_this_format(folder: Path) -> bool:
    """Return whether the store in a folder was made by this version."""
    try:
        return (folder / _FORMAT).read_text(encoding="ascii") == _THIS_FORMAT
    except FileNotFoundError:
        return False


def mark_dirty(folder: Path) -> None:
    """Note that more is being written than the newest snapshot has."""
    (folder / _DIRTY).touch()


def is_dirty(folder: Path) -> bool:
    """Return whether something was written and no snapshot made."""
    return (folder / _DIRTY).exists()


def publish(store: Store, folder: Path) -> None:
    """Take a snapshot of the store for queries."""
    _take_snapshot(store, folder, newest(folder) + 1)
    (folder / _DIRTY).unlink(missing_ok=True)
    remove_old(folder)


def remove_old(folder: Path) -> None:
    """Removes all snapshots but the newest, unless somebody reads them."""
    for number in _numbers(folder)[:-1]:
        path = folder / _SNAPSHOTS / str(number)
        lock = path.with_suffix(".lock")
        with opened(lock) as handle:
            if try_alone(handle):
                gone = path.with_suffix(".gone")
                path.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)
                lock.unlink()


def bytes_left_behind(folder: Path) -> int:
    """Bytes that only the newest snapshot has: the store has merged these files into others since."""
    path = folder / _SNAPSHOTS / str(newest(folder))
    try:
        current = set(os.listdir(folder / STORE))
        return sum(
            each.stat().st_size
            for each in os.scandir(path)
            if each.name.endswith(".sst") and each.name not in current
        )
    except FileNotFoundError:
        return 0


def clear_leftovers(folder: Path) -> None:
    """Removes what a process that was killed had begun."""
    old = folder / _OLD
    if old.exists() and not (folder / STORE).exists():
        old.rename(folder / STORE)
    shutil.rmtree(old, ignore_errors=True)
    for path in (folder / _SNAPSHOTS).glob("*"):
        if path.suffix in (".part", ".gone"):
            shutil.rmtree(path, ignore_errors=True)


def newest(folder: Path) -> int:
    """The number of the newest snapshot; 0 when there is none."""
    return max(_numbers(folder), default=0)


class OpenSnapshot:
    """A snapshot that is being read: it is not removed until this is closed."""

    def __init__(self, store: Store, lock: IO[bytes] | None, mark: tuple[int, int]) -> None:
        self.store = store
        self.mark = mark
        self._lock = lock

    def close(self) -> None:
        """Lets go of it."""
        del self.store
        gc.collect()
        if self._lock is not None:
            self._lock.close()


def newest_mark(folder: Path) -> tuple[int, int]:
    """Return a mark that differs between snapshots, even when the whole store was replaced."""
    number = newest(folder)
    try:
        return number, os.stat(folder / _SNAPSHOTS / str(number)).st_ino if number else 0
    except FileNotFoundError:
        return number, -1


def open_newest(folder: Path) -> OpenSnapshot:
    """The newest snapshot; an empty one when there is none. Raises `OSError`."""
    deadline = time.monotonic() + _REPLACED_SECONDS
    while True:
        before = _inode(folder)
        error: Exception | None = None
        try:
            found = _try_newest(folder)
        except (OSError, RuntimeError) as raised:
            found, error = None, raised
        is_same = before is not None and before == _inode(folder)
        if is_same or time.monotonic() > deadline:
            if error is not None:
                raise error
            if found is not None:
                return found
        elif found is not None:
            found.close()  # the whole store has just been replaced
        time.sleep(0.001)


def _try_newest(folder: Path) -> OpenSnapshot | None:
    """Open the newest snapshot; return None when it was removed before it was locked."""
    number = newest(folder)
    if number == 0:
        return OpenSnapshot(Store(), None, (0, 0))
    path = folder / _SNAPSHOTS / str(number)
    try:
        lock = shared(path.with_suffix(".lock"))
    except FileNotFoundError:
        return None
    try:
        if path.exists():
            mark = number, path.stat().st_ino
            return OpenSnapshot(Store.read_only(str(path)), lock, mark)
    except BaseException:
        lock.close()
        raise
    lock.close()
    return None


def _inode(folder: Path) -> int | None:
    try:
        return folder.stat().st_ino
    except FileNotFoundError:
        return None


def _take_snapshot(store: Store, folder: Path, number: int) -> None:
    path = folder / _SNAPSHOTS / str(number)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    partial = path.with_suffix(".part")
    shutil.rmtree(partial, ignore_errors=True)
    store.backup(str(partial))
    partial.rename(path)


def _numbers(folder: Path) -> list[int]:
    try:
        names = os.listdir(folder / _SNAPSHOTS)
    except FileNotFoundError:
        return []
    return sorted(int(name) for name in names if name.isdecimal())


GROWN: Final = 1.25
"""How much larger a store may be than one that was just loaded, before it is written anew."""
SLACK_BYTES: Final = 16 << 20
QUIET_SECONDS: Final = 30.0
LONGEST_SECONDS: Final = 3600.0
"""How long a store that is never quiet may be larger than that."""
REST_TIMES: Final = 20
"""How many times as long as one took it is until the next: they take a twentieth of a core at most."""
_LOOK_SECONDS: Final = 10.0
_PR_SET_PDEATHSIG: Final = 1


class Compaction:
    """Says when it is due, runs it, and knows which graphs were written meanwhile."""

    def __init__(
        self,
        folder: Path,
        *,
        quiet_seconds: float = QUIET_SECONDS,
        slack: int = SLACK_BYTES,
        rest_times: float = REST_TIMES,
    ) -> None:
        self._folder = folder
        self._quiet_seconds = quiet_seconds
        self.slack = slack
        self._rest_times = rest_times
        self._process: subprocess.Popen[bytes] | None = None
        self._looked_at = self._written_at = self._begun_at = self._done_at = time.monotonic()
        self._rested_at = self._done_at
        self._clear()
        self._more = 0
        self._is_new = False
        """Whether nothing was written since the last one. What RocksDB merges by itself after it, into larger
        files, it would merge again after another.
        """
        self.touched: set[str] = set()
        """Graphs that the new store has not as they are now."""

    def note(self, graph: str, more: int) -> None:
        """A graph was written, and has so many statements more than before."""
        self._written_at = time.monotonic()
        self._is_new = False
        self._more += more
        if self._process is not None:
            self.touched.add(graph)

    def start_if_due(self) -> None:
        """Start a compaction if it is due; call this when the newest snapshot has all that was written."""
        now = time.monotonic()
        is_early = now - self._looked_at < min(_LOOK_SECONDS, self._quiet_seconds)
        if self._process is not None or self._is_new or is_early or now < self._rested_at:
            return
        self._looked_at = now
        is_time = now - self._written_at > self._quiet_seconds or now - self._done_at > LONGEST_SECONDS
        if is_time and self._is_large():
            self.touched = set()
            self._is_new = True
            self._clear()
            self._begun_at = now
            self._process = subprocess.Popen([sys.executable, "-P", "-m", __spec__.name, str(self._folder)])

    def is_done(self) -> bool:
        """Return whether the new store is there. A compaction that failed is begun again later."""
        if self._process is None or self._process.poll() is None:
            return False
        ended, self._process = self._process.returncode, None
        self._done_at = time.monotonic()
        self._rested_at = self._done_at + self._rest_times * (self._done_at - self._begun_at)
        if ended != 0:
            self._is_new = False
            self._clear()
            return False
        self._more = 0
        return True

    def end(self) -> None:
        """Ends one that is under way."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _clear(self) -> None:
        """Takes away what one has left that did not come to its end."""
        shutil.rmtree(self._folder / NEXT, ignore_errors=True)

    def _is_large(self) -> bool:
        loaded = read_loaded(self._folder)
        now = size_of(self._folder / STORE)
        if loaded is None or loaded.statements == 0:
            return now > self.slack
        return now > GROWN * loaded.bytes * (1 + self._more / loaded.statements) + self.slack


def main() -> None:
    """Loads the newest snapshot of a store into another store beside it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.nice(10)
    folder = Path(sys.argv[1])
    with closing(open_newest(folder)) as snapshot:
        target = folder / NEXT
        target.mkdir(mode=0o700)
        store = Store(str(target / STORE))
        load(store, target, snapshot.store, is_compressed=True)


if __name__ == "__main__":
    main()
