"""The store of an archive's bytes: its data directory, another folder, or an S3-compatible store.

Said once, before the first bytes are kept, and known to the database ever after: every process finds it.
"""

import os
from pathlib import Path

from tamias.archive.blobs.local import LocalPacks
from tamias.archive.blobs.packs import Packs
from tamias.archive.sources.revisits import read_figure, write_figure
from tamias.database.connect import Session
from tamias.database.disk import make_data_folder
from tamias.model.errors import ConfigError

_FIGURE = "blob_store"
BORROWED = "store_borrowed"
"""The figure of an archive that was restored beside the one that owns the store."""


def packs_of(session: Session, data: Path, patience: float = 60.0) -> Packs:
    """The packs of an archive; a store that cannot be reached is waited for so many seconds."""
    place = elsewhere(session)
    if place is None:
        return LocalPacks(data / "blobs")
    if (folder := folder_of(place)) is not None:
        return LocalPacks(folder / "blobs", is_borrowed=is_borrowed(session))
    from tamias.archive.blobs.objects import ObjectPacks, open_bucket

    bucket = open_bucket(place, os.environ)
    return ObjectPacks(bucket, data / "spool" / "s3", patience, is_borrowed=is_borrowed(session))


def elsewhere(session: Session) -> str | None:
    """The store that bytes are kept in, if it is not the data directory."""
    place = read_figure(session, _FIGURE)
    return None if place is None else str(place)


def folder_of(place: str) -> Path | None:
    """The folder that a store is, if it is one."""
    return None if place.startswith("s3://") else Path(place)


def is_borrowed(session: Session) -> bool:
    """Return whether the store is another archive's, of which this one is a copy."""
    return bool(read_figure(session, BORROWED))


def choose_store(session: Session, place: str | None) -> None:
    """Settles where bytes are kept. Raises `ConfigError` when the archive is somewhere else already."""
    if place is None:
        return
    if "://" not in place:
        place = str(Path(place).absolute())
    known = read_figure(session, _FIGURE)
    if known == place:
        return
    if known is not None or session.fetch_one(b"SELECT FROM pack LIMIT 1") is not None:
        there = known or "the folder blobs of the data directory"
        raise ConfigError(f"archive.store is {place}, but this archive keeps its bodies in {there}")
    if "://" in place:
        from tamias.archive.blobs.objects import open_bucket

        open_bucket(place, os.environ)
    else:
        make_data_folder(Path(place))
    write_figure(session, _FIGURE, place, session.now())
