"""Where an archive keeps its bodies: a folder of its data directory, or an S3-compatible store.

Said once, when the first body is kept, and known to the database ever after: so that every process finds it.
"""

import os
from pathlib import Path

from tamias.archive.blobs.local import LocalPacks
from tamias.archive.blobs.packs import Packs
from tamias.archive.sources.revisits import read_figure, write_figure
from tamias.database.connect import Session
from tamias.model.errors import ConfigError

_FIGURE = "blob_store"
BORROWED = "store_borrowed"
"""The figure of an archive that was restored beside the one that owns the store."""


def packs_of(session: Session, data: Path, patience: float = 60.0) -> Packs:
    """The packs of an archive; a store that cannot be reached is waited for so many seconds."""
    place = elsewhere(session)
    if place is None:
        return LocalPacks(data / "blobs")
    from tamias.archive.blobs.s3 import S3Packs, s3_address

    borrowed = bool(read_figure(session, BORROWED))
    address = s3_address(place, os.environ)
    return S3Packs(address, data / "spool" / "s3", patience, is_borrowed=borrowed)


def elsewhere(session: Session) -> str | None:
    """The store that bodies are kept in, if it is not the folder of the data directory."""
    place = read_figure(session, _FIGURE)
    return None if place is None else str(place)


def choose_store(session: Session, place: str | None) -> None:
    """Settles where bodies are kept. Raises `ConfigError` when the archive is somewhere else already."""
    if place is None:
        return
    known = read_figure(session, _FIGURE)
    if known == place:
        return
    if known is not None or session.fetch_one(b"SELECT FROM pack LIMIT 1") is not None:
        there = known or "the folder blobs of the data directory"
        raise ConfigError(f"archive.store is {place}, but this archive keeps its bodies in {there}")
    from tamias.archive.blobs.s3 import s3_address

    s3_address(place, os.environ)
    write_figure(session, _FIGURE, place, session.now())
