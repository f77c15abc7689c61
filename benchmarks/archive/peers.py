"""Others that keep versions: each file by itself with zstd, and the backup programs borg and restic."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from backports import zstd

from benchmarks.measuring.peers import Skipped, children_seconds, skipped_program

LEVEL = 3
_SECONDS = 600
_DEBIAN = {"borg": "borgbackup", "restic": "restic"}


class PeerFigures(msgspec.Struct, frozen=True):
    """Bytes on disk and seconds of processor time for all versions."""

    stored: int
    seconds: float


class ArchivePeer(msgspec.Struct, frozen=True):
    """One that is here; it keeps the files, oldest first, in a folder."""

    name: str
    keep: Callable[[Sequence[Path], Path], PeerFigures]


def peers() -> list[ArchivePeer | Skipped]:
    """All, in the order of the report."""
    return [ArchivePeer("zstd -3", per_file), _program("borg", _borg), _program("restic", _restic)]


def per_file(files: Sequence[Path], folder: Path) -> PeerFigures:
    """From one file to another, as the zstd tool does it, and synced as ours is."""
    folder.mkdir()
    started = time.process_time()
    stored = 0
    for number, path in enumerate(files):
        with (folder / f"{number}.zst").open("wb") as file:
            stored += file.write(zstd.compress(path.read_bytes(), LEVEL))
            os.fdatasync(file.fileno())
    return PeerFigures(stored, time.process_time() - started)


def _program(name: str, commands: Callable[[Path, Path], list[list[str]]]) -> ArchivePeer | Skipped:
    return skipped_program(name, _DEBIAN[name]) or ArchivePeer(name, partial(_kept, commands))


def _borg(store: Path, source: Path) -> list[list[str]]:
    """Making a store, then what is done for each version."""
    kept = f"{store}::{{now:%H%M%S%f}}"
    return [
        ["borg", "init", "--encryption=none", str(store)],
        ["borg", "create", f"--compression=zstd,{LEVEL}", kept, str(source)],
    ]


def _restic(store: Path, source: Path) -> list[list[str]]:
    return [
        ["restic", "init", "--repo", str(store)],
        ["restic", "backup", "--quiet", "--repo", str(store), str(source)],
    ]


def _kept(
    commands: Callable[[Path, Path], list[list[str]]], files: Sequence[Path], folder: Path
) -> PeerFigures:
    """Each version under the same name, for a program that looks at names."""
    folder.mkdir()
    store, source = folder / "store", folder / files[0].name
    make, keep = commands(store, source)
    words = {
        **os.environ,
        "HOME": str(folder),
        "RESTIC_PASSWORD": "bench",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    run = partial(
        subprocess.run,
        check=True,
        env=words,
        timeout=_SECONDS,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    run(make)
    before = children_seconds()
    for path in files:
        shutil.copyfile(path, source)
        run(keep)
    seconds = children_seconds() - before
    source.unlink()
    return PeerFigures(sum(path.stat().st_size for path in store.rglob("*") if path.is_file()), seconds)
