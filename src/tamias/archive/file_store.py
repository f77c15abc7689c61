"""The store of segments, WARC files and spools of harvests: a folder, or an S3-compatible store.

Such a file grows with every commit, and an object cannot: what each commit added is an object of its own, a
part, until the file is sealed and its parts are merged into one object. The parts together are the file.
"""

import errno
import hashlib
import io
import os
import re
import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

from tamias.archive.blobs.store import elsewhere, folder_of, is_borrowed
from tamias.archive.stored_files import StoredFile, find_segment, segment_opener
from tamias.database.connect import Session
from tamias.database.disk import sync_path, write_hashed
from tamias.model.faults import reached

if TYPE_CHECKING:
    from tamias.archive.blobs.objects import ObjectClient

PART_BYTES = 16 << 20
"""The most that is sent as one part."""
MOST_PARTS = 256
"""A file of so many parts is sealed."""
MERGED_BYTES = 512 << 20
"""The most that is merged into one object; a longer file stays in parts, which are large."""
OPEN = ".open"
"""What the name of a WARC file ends in while it is written."""
_BUFFER = 1 << 20
_PART = re.compile(
    r"((?:rdf|warc|harvests)/(?:.*-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.\S+?)\.([0-9]{12})"
)
_UNNAMED_MS = 86_400_000
"""A part of a file without a row may be waiting for its commit, but not for so long."""


class FileStore:
    """The files of an archive. For any thread."""

    def __init__(
        self,
        data: Path,
        folder: Path | None = None,
        objects: "ObjectClient | None" = None,
        *,
        borrowed: bool = False,
    ) -> None:
        """`folder` is a store that can be written as the data directory can; `objects` is one that cannot."""
        self._data = data
        self._folder = folder
        self._objects = objects
        self._borrowed = borrowed

    @property
    def is_elsewhere(self) -> bool:
        """Return whether files must be sent, and what is in the data directory is a cache."""
        return self._objects is not None

    @property
    def in_store(self) -> bool:
        """Return whether new files belong to a store, not to the data directory."""
        return self._objects is not None or self._folder is not None

    @property
    def waits_for(self) -> str | None:
        """Return what is waited for, in a sentence, while the store cannot be reached."""
        return self._objects.waits_for if self._objects is not None else None

    def folder(self, kind: str) -> Path:
        """Return where new files of a kind are written: the folder of a store, or of the data directory."""
        folder = (self._folder or self._data) / kind
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        return folder

    def path(self, stored: StoredFile) -> Path:
        """Return where a file stands when it is complete, or would if this machine had it."""
        root = self._folder if stored.in_store and self._folder is not None else self._data
        return root / stored.key

    def open(self, stored: StoredFile) -> BinaryIO:
        """A file at its start, from this machine or from the store. Raises `OSError`, `StoreUnavailable`."""
        is_cache = self._objects is not None and stored.in_store
        path = self.path(stored)
        # It may get its last name between two of these.
        for place in (path, path.with_name(path.name + OPEN), path):
            with suppress(FileNotFoundError):
                file = place.open("rb")
                if not is_cache or os.fstat(file.fileno()).st_size >= stored.committed:
                    return file
                file.close()
        if not is_cache:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return io.BufferedReader(_ObjectReader(self, stored.key, stored.committed, stored.parts), _BUFFER)

    def put(self, key: str, content: bytes) -> None:
        """Writes an object."""
        assert self._objects is not None
        self._objects.put(key, content)

    def replace(
        self, key: str, length: int, changes: Mapping[int, bytes], before: Callable[[str], None]
    ) -> bool:
        """Writes an object anew with some bytes replaced, by their places; False if it is not there.

        `before` is told the SHA-256 that it will have. Places may lie outside, in part or as a whole.
        """
        with _temporary(self._data) as whole:
            digest = hashlib.sha256()
            for start in range(0, length, PART_BYTES):
                content = self.get(key, start, min(PART_BYTES, length - start))
                if content is None:
                    return False
                content = _patched(content, start, changes)
                whole.write(content)
                digest.update(content)
            before(digest.hexdigest())
            assert self._objects is not None
            self._objects.put(key, whole)
        return True

    def get(self, key: str, start: int, length: int) -> bytes | None:
        """Return so many bytes of an object; None if it does not have them."""
        assert self._objects is not None
        return self._objects.get(key, start, length)

    def objects(self) -> list[tuple[str, int]]:
        """Return the name and size of every object of the store, whether a row names it or not."""
        return self._objects.entries() if self._objects is not None else []

    def add(self, stored: StoredFile, path: Path) -> None:
        """Moves a complete file of this file system into the store; it is there as a whole or not at all."""
        if self._objects is not None:
            with path.open("rb") as file:
                self._objects.put(stored.key, file)
            return
        place = self.folder(stored.kind) / stored.name
        growing = place.with_name(place.name + OPEN)
        with path.open("rb") as file, growing.open("wb") as copy:
            shutil.copyfileobj(file, copy, _BUFFER)
            os.fsync(copy.fileno())
        growing.rename(place)
        sync_path(place.parent)

    def local(self, stored: StoredFile) -> Path:
        """A complete file on this machine, brought from the store if need be. Raises `OSError`."""
        place = self.path(stored)
        if self._objects is None or (place.is_file() and place.stat().st_size == stored.committed):
            return place
        place.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        descriptor, growing = tempfile.mkstemp(dir=place.parent, suffix=OPEN)
        try:
            with self.open(stored) as file, os.fdopen(descriptor, "wb") as copy:
                copy.writelines(pieces(file, stored.committed))
            Path(growing).rename(place)
        except BaseException:
            Path(growing).unlink(missing_ok=True)
            raise
        return place

    def remove(self, stored: StoredFile) -> None:
        """Takes a file away that no row names any more. May be done twice."""
        if self._borrowed:
            return
        if self._objects is not None:
            self._objects.delete(stored.key)
        for ending in ("", OPEN):
            self.path(stored).with_name(stored.name + ending).unlink(missing_ok=True)

    def names(self, kind: str) -> list[str]:
        """The files of a kind that are in the store, or in the data directory if there is none."""
        if self._objects is not None:
            return [name.removeprefix(f"{kind}/") for name, _ in self._objects.entries(kind)]
        return [path.name for path in self.folder(kind).iterdir()]

    def merge(self, stored: StoredFile) -> str | None:
        """Makes one object of a file's parts; returns its SHA-256, None if it stays in parts.

        The parts are still there: `forget_parts`, once no row names them.
        """
        if self._objects is None or self._borrowed or stored.committed > MERGED_BYTES:
            return None
        with self.open(stored) as file, _temporary(self._data) as whole:
            _, sha256 = write_hashed(pieces(file, stored.committed), whole.write)
            self._objects.put(stored.key, whole)
        reached("file-merged")
        return sha256

    def forget_parts(self, key: str, parts: tuple[int, ...]) -> None:
        """Takes parts away that no row names any more. May be done twice."""
        if self._objects is not None and not self._borrowed:
            for start in parts:
                self._objects.delete(part_key(key, start))

    def free_parts(self, files: Iterable[StoredFile], now: int) -> int:
        """Takes away parts that no row names and none will, of dead workers. Returns how many bytes."""
        if self._objects is None or self._borrowed:
            return 0
        known = {each.key: each for each in files}
        listed = [each for kind in ("rdf", "warc", "harvests") for each in self._objects.entries(kind)]
        unnamed = {name: size for name, size in listed if _is_unnamed(name, known, now)}
        for name in unnamed:
            self._objects.delete(name)
        return sum(unnamed.values())

    def forget_local(self, stored: StoredFile) -> None:
        """Remove the local copy of a file that is in the store."""
        if self._objects is not None and stored.in_store:
            for ending in ("", OPEN, ".cdxj"):
                with suppress(OSError):
                    self.path(stored).with_name(stored.name + ending).unlink(missing_ok=True)


class FileUpload:
    """The upload of a growing file to the store. Where that is a folder there is nothing to send."""

    def __init__(self, store: FileStore, key: str, parts: tuple[int, ...] = (), sent: int = 0) -> None:
        self._store = store
        self._key = key
        self.parts = parts
        self._sent = sent

    def send(self, path: Path, length: int) -> None:
        """Sends what the file has up to a length and the store has not. May be repeated when it fails."""
        if not self._store.is_elsewhere:
            return
        with path.open("rb") as file:
            while self._sent < length:
                file.seek(self._sent)
                part = file.read(min(PART_BYTES, length - self._sent))
                self._store.put(part_key(self._key, self._sent), part)
                reached("part-uploaded")
                self.parts += (self._sent,)
                self._sent += len(part)

    @property
    def is_full(self) -> bool:
        """Return whether it has so many parts that another file is to be begun."""
        return len(self.parts) >= MOST_PARTS


def file_store(session: Session, data: Path, patience: float = 60.0) -> FileStore:
    """Open the store of an archive's files; wait some seconds for one that cannot be reached."""
    place = elsewhere(session)
    if place is None:
        return FileStore(data)
    if (folder := folder_of(place)) is not None:
        return FileStore(data, folder)
    from tamias.archive.blobs.objects import ObjectClient, open_bucket

    client = ObjectClient(open_bucket(place, os.environ), patience)
    return FileStore(data, objects=client, borrowed=is_borrowed(session))


def segments_of(session: Session, data: Path, patience: float = 60.0) -> Callable[[int], BinaryIO]:
    """Opens files of quads by the numbers that captures have, wherever they are; for the session's thread."""
    return segment_opener(partial(find_segment, session), file_store(session, data, patience).open)


def part_key(key: str, start: int) -> str:
    """The object that holds a file from a byte on.

    >>> part_key("rdf/1.nq.zst", 4096)
    'rdf/1.nq.zst.000000004096'
    """
    return f"{key}.{start:012d}"


def _is_unnamed(name: str, known: Mapping[str, StoredFile], now: int) -> bool:
    """Return whether an object is a part that no row names, nor will."""
    part = _PART.fullmatch(name)
    if part is None:
        return False
    stored = known.get(part[1])
    if stored is None:
        return now - (UUID(part[2]).int >> 80) > _UNNAMED_MS
    return stored.sealed and int(part[3]) not in stored.parts


def _patched(content: bytes, start: int, changes: Mapping[int, bytes]) -> bytes:
    """Bytes from a place on, some of them replaced."""
    patched = bytearray(content)
    for at, new in changes.items():
        low, high = max(at, start), min(at + len(new), start + len(content))
        if low < high:
            patched[low - start : high - start] = new[low - at : high - at]
    return bytes(patched)


def pieces(file: BinaryIO, length: int) -> Iterator[bytes]:
    """The first bytes of a file, a piece at a time. Raises `OSError` where there are fewer."""
    while length:
        piece = file.read(min(length, _BUFFER))
        if not piece:
            raise OSError(errno.EIO, f"it ends {length:,} bytes too early")
        length -= len(piece)
        yield piece


class _ObjectReader(io.RawIOBase):
    """A file of the store, by the objects that it is made of."""

    def __init__(self, store: FileStore, key: str, length: int, parts: tuple[int, ...]) -> None:
        self._store = store
        self._key = key
        self._length = length
        self._parts = parts
        self._place = 0
        self.name = key
        """For messages, as open files have one."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._length}[whence]
        self._place = max(0, start + offset)
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, into: object) -> int:
        room = memoryview(into)  # type: ignore[arg-type]
        size = min(len(room), self._length - self._place)
        if size <= 0:
            return 0
        content = self._content(self._place, size)
        room[: len(content)] = content
        self._place += len(content)
        return len(content)

    def _content(self, place: int, size: int) -> bytes:
        """Read from a part, or from the whole if there are no parts or they were merged meanwhile."""
        number = bisect_right(self._parts, place)
        if number:
            start = self._parts[number - 1]
            end = self._parts[number] if number < len(self._parts) else self._length
            size = min(size, end - place)
            content = self._store.get(part_key(self._key, start), place - start, size)
            if content is not None:
                return content
        content = self._store.get(self._key, place, size)
        if content is None:
            raise OSError(
                errno.ENOENT, f"{self._key} is not in the store, or ends before byte {place + size}"
            )
        return content


def _temporary(data: Path) -> BinaryIO:
    folder = data / "spool"
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    return tempfile.TemporaryFile(dir=folder)
