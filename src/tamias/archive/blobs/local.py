"""Packs as files of one folder. The writer of a pack holds a lock on it as long as it lives."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from uuid import UUID

from tamias.archive.blobs.frames import ERASED_MAGIC, FRAME_HEADER
from tamias.archive.blobs.packs import Pack, PackError, PackMissing
from tamias.database.disk import sync_path, write_all, write_errors
from tamias.model.faults import reached

_ENDING = ".pack"
_PIECE = 1024 * 1024


class LocalPacks:
    """`FOLDER/PACK.pack`; the folder is made when the first pack is."""

    is_elsewhere: ClassVar[bool] = False
    waits_for: str | None = None

    def __init__(self, folder: Path, *, is_borrowed: bool = False) -> None:
        self.folder = folder
        self.is_borrowed = is_borrowed

    def probe(self) -> None:
        """A folder is always there."""

    def create(self, pack: UUID) -> "LocalWriter":
        with write_errors(self.folder, PackError):
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
                sync_path(self.folder.parent)
        return LocalWriter(self._path(pack), pack)

    def read(self, pack: UUID, start: int, length: int) -> bytes:
        with self._opened(pack) as file:
            content = os.pread(file, length, start)
            while content and len(content) < length:  # Linux gives no more than 2 GB at once
                more = os.pread(file, length - len(content), start + len(content))
                if not more:
                    break
                content += more
        if len(content) < length:
            raise PackMissing(f"pack {self._path(pack)} ends before byte {start + length}")
        return content

    def find(self, pack: UUID) -> Pack | None:
        try:
            with self._opened(pack) as file:
                return Pack(pack, os.fstat(file).st_size)
        except PackMissing:
            return None

    def all(self) -> Iterator[Pack]:
        for path in sorted(self.folder.glob(f"*{_ENDING}")):
            pack = _named(path)
            found = self.find(pack) if pack else None
            if found:
                yield found

    def is_held(self, pack: UUID, age: float) -> bool:
        try:
            with self._opened(pack) as file:
                return not _lock_is_free(file)
        except PackMissing:
            return False

    def cut(self, pack: UUID, length: int) -> None:
        path = self._path(pack)
        with write_errors(path, PackError):
            file = os.open(path, os.O_RDWR)
            try:
                if os.fstat(file).st_size > length:
                    os.ftruncate(file, length)
                    os.fsync(file)
            finally:
                os.close(file)

    def erase(self, pack: UUID, start: int, length: int) -> bool:
        path = self._path(pack)
        with write_errors(path, PackError):
            try:
                file = os.open(path, os.O_WRONLY)
            except FileNotFoundError:
                return True
            try:
                _write_zeros(file, start, length)
                os.fsync(file)
            finally:
                os.close(file)
        return True

    def remove(self, pack: UUID) -> None:
        if self.is_borrowed:
            raise PackError(
                f"pack {self._path(pack)} is another archive's, of which this is a copy; it stays"
            )
        with write_errors(self._path(pack), PackError):
            self._path(pack).unlink(missing_ok=True)
            if self.folder.is_dir():
                sync_path(self.folder)

    def _path(self, pack: UUID) -> Path:
        return self.folder / f"{pack}{_ENDING}"

    @contextmanager
    def _opened(self, pack: UUID) -> Iterator[int]:
        path = self._path(pack)
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise PackMissing(f"pack {path} is not there") from None
        except OSError as error:
            raise PackError(f"cannot read pack {path}: {error.strerror}") from error
        try:
            yield file
        except OSError as error:
            raise PackMissing(f"pack {path} cannot be read: {error.strerror}") from error
        finally:
            os.close(file)


class FileWriter:
    """Appends to a file, given by its descriptor."""

    def __init__(self, file: int, path: Path, pack: UUID) -> None:
        self.pack = pack
        self.length = 0
        self._file = file
        self._path = path

    @property
    def is_open(self) -> bool:
        return self._file >= 0

    def append(self, record: list[bytes]) -> int:
        start = self.length
        with write_errors(self._path, PackError):
            try:
                for part in record:
                    write_all(self._file, part)
                    reached("blob-part-written")
            except OSError:
                # A full disk may have taken a part of the record, which would garble those that follow.
                self._cut(start)
                raise
        self.length += sum(map(len, record))
        return start

    def take_back(self, length: int) -> None:
        if self.is_open:
            with write_errors(self._path, PackError):
                self._cut(length)
            self.length = length

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _cut(self, length: int) -> None:
        os.ftruncate(self._file, length)
        os.lseek(self._file, length, os.SEEK_SET)


class LocalWriter(FileWriter):
    """Appends to one file, on which it holds a lock."""

    def __init__(self, path: Path, pack: UUID) -> None:
        with write_errors(path, PackError):
            super().__init__(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), path, pack)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            sync_path(path.parent)

    def sync(self) -> None:
        with write_errors(self._path, PackError):
            try:
                os.fdatasync(self._file)
            except OSError:
                self.close()
                raise


def _write_zeros(file: int, start: int, length: int) -> None:
    """A skippable frame of zeros, which the zstd tool passes over; the frame is there as a whole at once."""
    os.pwrite(file, ERASED_MAGIC + (length - FRAME_HEADER).to_bytes(4, "little"), start)
    at, end = start + FRAME_HEADER, start + length
    while at < end:
        at += os.pwrite(file, bytes(min(_PIECE, end - at)), at)


def _lock_is_free(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _named(path: Path) -> UUID | None:
    try:
        return UUID(path.stem)
    except ValueError:
        return None
