"""The packs that one process writes, one after another."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tamias.archive.blobs.blob import BlobPlace
from tamias.archive.blobs.packs import PackError, Packs, PackWriter
from tamias.archive.blobs.table import BlobTable
from tamias.model.capture import new_capture_id
from tamias.model.errors import DatabaseError
from tamias.model.faults import reached


class Appender:
    """Adds records to its own pack, and begins the next when that is full."""

    def __init__(self, packs: Packs, table: BlobTable, pack_bytes: int) -> None:
        self._packs = packs
        self._table = table
        self._pack_bytes = pack_bytes
        self._writer: PackWriter | None = None
        self._full: list[PackWriter] = []
        self._broken = False

    def append(self, record: list[bytes]) -> BlobPlace:
        """Adds a record, given in parts. Not durable yet; after `DiskFull` all is as before."""
        writer = self._with_room()
        start = writer.append(record)
        return BlobPlace(writer.pack, start, sum(map(len, record)))

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """If the block is left by an exception, the packs are as they were before it."""
        lengths = {writer.pack: writer.length for writer in self._writers()}
        try:
            yield
        except BaseException:
            for writer in self._writers():
                writer.take_back(lengths.get(writer.pack, 0))
            raise

    def sync(self) -> None:
        """Makes all durable. After a failure only `close` helps: nobody knows what was kept."""
        if self._broken:
            raise PackError("a pack could not be made durable; what was appended to it must come again")
        if self._writer is not None and self._writer.is_open:
            try:
                self._writer.sync()
            except BaseException:
                self._broken = True
                raise

    def settled(self) -> None:
        """No rows will come for what was appended: full packs are let go."""
        done, self._full = self._full, []
        self._let_go(done)

    def close(self) -> None:
        """Lets go of all packs."""
        done = self._writers()
        self._full, self._writer, self._broken = [], None, False
        self._let_go(done)

    def _writers(self) -> list[PackWriter]:
        return [*self._full, *([self._writer] if self._writer else [])]

    def _with_room(self) -> PackWriter:
        writer = self._writer
        if writer is not None and writer.is_open and writer.length < self._pack_bytes:
            return writer
        if writer is not None:
            self.sync()
            self._full.append(writer)
        self._writer = None
        # The bytes first, held by a lock: so a row that is open and not held is that of a dead process.
        self._writer = self._packs.create(new_capture_id(int(time.time() * 1000)))
        reached("pack-made")
        self._table.change("new_pack", {"pack": self._writer.pack, "state": "open"})
        return self._writer

    def _let_go(self, done: Sequence[PackWriter]) -> None:
        for writer in done:
            writer.close()
            reached("pack-closed")
        if done:
            with suppress(DatabaseError):  # recovery will find them unsealed and not held
                self._table.change("seal_packs", {"pack": [writer.pack for writer in done]})
