"""Compaction of a store: the bulk loader makes the smallest files, and updates make them larger over time.

As a program it loads the newest snapshot of a folder into its `next`, while the writer goes on. `Compaction`
is the writer's side of it.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from pyoxigraph import Store

from tamias.features.catalogue.store.snapshots import NEXT, STORE, load, open_newest, read_loaded, size_of

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
