"""Where the files of a package go: into a folder, or into a zip file that may be a pipe."""

import hashlib
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

import msgspec

from tamias.model.errors import TamiasError, UsageError


class Packed(msgspec.Struct, frozen=True):
    """A file of a package."""

    path: str
    size: int
    sha256: str


class Package(Protocol):
    """Takes files, one after the other."""

    def add(self, path: str, content: Iterable[bytes]) -> Packed:
        """Writes a file. The path is one of ours, relative, and new. Raises `OSError`."""
        ...


class FolderPackage:
    """Files of a new folder. Raises `UsageError` where something is in its place."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise UsageError(f"{folder} already exists; name a new folder") from None
        self._folder = folder

    def add(self, path: str, content: Iterable[bytes]) -> Packed:
        place = self._folder.joinpath(*_checked(path).parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            return _written(path, content, file)


class ZipPackage:
    """Files in a zip, all below one folder if a name for it is given."""

    def __init__(self, zipped: zipfile.ZipFile, folder: str = "") -> None:
        self._zip = zipped
        self._folder = f"{folder}/" if folder else ""

    def add(self, path: str, content: Iterable[bytes]) -> Packed:
        entry = zipfile.ZipInfo(f"{self._folder}{_checked(path)}", datetime.now(UTC).timetuple()[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        with self._zip.open(entry, "w", force_zip64=True) as file:
            return _written(path, content, file)


def _checked(path: str) -> PurePosixPath:
    checked = PurePosixPath(path)
    if checked.is_absolute() or ".." in checked.parts or not checked.parts:
        raise TamiasError(f"{path!r} is not a path in a package")
    return checked


class _Writable(Protocol):
    def write(self, content: bytes, /) -> object: ...


def _written(path: str, content: Iterable[bytes], file: "_Writable | BinaryIO") -> Packed:
    digest = hashlib.sha256()
    size = 0
    for piece in content:
        digest.update(piece)
        size += len(piece)
        file.write(piece)
    return Packed(path, size, digest.hexdigest())
