"""Packs as objects of an S3-compatible store. Each `sync` makes one object of what was appended since."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from tamias.archive.blobs.local import failures_told, write_all
from tamias.archive.blobs.packs import Pack, PackError, PackMissing
from tamias.archive.blobs.s3_client import S3Address, S3Client, Upload

HELD_SECONDS = 3600.0
"""A younger pack may be waiting for its rows. Whoever brings rows for an older one finds it sealed."""
_ENDING = ".pack"


class S3Packs:
    """`PREFIX/PACK.pack`. What is not yet sent stands in files of a spool folder."""

    def __init__(self, address: S3Address, spool: Path) -> None:
        self._client = S3Client(address)
        self._spool = spool
        self._unsent: dict[UUID, S3Writer] = {}

    def close(self) -> None:
        """Lets go of the connection."""
        self._client.close()

    def create(self, pack: UUID) -> "S3Writer":
        writer = S3Writer(pack, self._spool, self._client)
        self._unsent = {known: each for known, each in self._unsent.items() if each.is_open} | {pack: writer}
        return writer

    def read(self, pack: UUID, start: int, length: int) -> bytes:
        unsent = self._unsent.get(pack)
        if unsent and unsent.is_open:
            return unsent.read(start, length)
        content = self._client.get(_name(pack), start, length) if length else b""
        if content is None:
            raise PackMissing(f"pack {_name(pack)} is not in the store, or ends before byte {start + length}")
        return content

    def find(self, pack: UUID) -> Pack | None:
        size = self._client.size(_name(pack))
        return None if size is None else Pack(pack, size)

    def all(self) -> Iterator[Pack]:
        for entry in self._client.entries():
            stem, dot, rest = entry.name.partition(_ENDING)
            if dot and not rest and len(stem) == 36:
                yield Pack(UUID(stem), entry.size)

    def is_held(self, pack: UUID, age: float) -> bool:
        return age < HELD_SECONDS

    def cut(self, pack: UUID, length: int) -> None:
        """Objects cannot be cut; what is unused in them goes when they are rewritten."""

    def remove(self, pack: UUID) -> None:
        self._client.delete(_name(pack))


class S3Writer:
    """Gathers records in a nameless file, and sends it as one object."""

    def __init__(self, pack: UUID, spool: Path, client: S3Client) -> None:
        self.pack = pack
        self._client = client
        self._spool = spool
        self._length = 0
        with failures_told(spool):
            spool.mkdir(parents=True, mode=0o700, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=spool, buffering=0)  # noqa: SIM115 (closed by `close`)

    @property
    def length(self) -> int:
        return self._length

    @property
    def is_open(self) -> bool:
        return not self._file.closed

    def append(self, record: list[bytes]) -> int:
        start = self._length
        with failures_told(self._spool):
            try:
                self._file.seek(start)
                write_all(self._file.fileno(), record)
            except OSError:
                self._file.truncate(start)
                raise
        self._length += sum(map(len, record))
        return start

    def take_back(self, length: int) -> None:
        if self.is_open:
            with failures_told(self._spool):
                self._file.truncate(length)
            self._length = length

    def read(self, start: int, length: int) -> bytes:
        """What was appended."""
        with failures_told(self._spool):
            content = os.pread(self._file.fileno(), length, start)
        if len(content) < length:
            raise PackError(f"pack {self.pack} in {self._spool} ends before byte {start + length}")
        return content

    def sync(self) -> None:
        if not self.is_open:
            return
        try:
            if self._length:
                self._file.seek(0)
                digest = hashlib.file_digest(self._file, "sha256").hexdigest()
                self._client.put(_name(self.pack), Upload(self._file, self._length, digest))
        finally:
            self.close()

    def close(self) -> None:
        self._file.close()


def _name(pack: UUID) -> str:
    return f"{pack}{_ENDING}"
