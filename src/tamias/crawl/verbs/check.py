"""The parts of features that verify what they store, and those that finish what was interrupted."""

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from tamias.archive.blobs.packs import Packs
from tamias.database.connect import Database, Session
from tamias.plugins import load_all
from tamias.settings import Settings

Repair = Callable[[Database, Path, Settings], list[str]]
"""Finishes what was interrupted, and returns what is left for later."""


def finish_interrupted(database: Database, data: Path, settings: Settings) -> list[str]:
    """Let every feature finish what was interrupted; return what is left for later."""
    repairs: list[Repair] = list(load_all("repairs").values())
    return [left for finish in repairs for left in finish(database, data, settings)]


class Looked(msgspec.Struct):
    """The amount that a check has read."""

    blobs: int = 0
    blob_bytes: int = 0
    segments: int = 0
    segment_bytes: int = 0
    warc_files: int = 0
    warc_bytes: int = 0


CheckPart = Callable[[Session, Session, Path, Packs, Looked], Iterable[tuple[str, str]]]
"""Yields names and problems of what is damaged; it may use two sessions, one of them for long answers."""
