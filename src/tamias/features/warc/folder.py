"""WARC files on this machine: brought from a store, completed after a crash, saved, and indexed."""

import os
from collections.abc import Container, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from tamias.archive.file_store import FileStore, file_store, pieces
from tamias.archive.moments import first_millisecond
from tamias.archive.stored_files import StoredFile, files_of
from tamias.database.connect import Cursor, Session
from tamias.features.warc.cdxj import REVISIT, entries
from tamias.features.warc.index import WarcExtent, insert_records, unindexed_files
from tamias.features.warc.warc_files import (
    OPEN,
    PREFIX,
    WarcPart,
    index_warc,
    is_imported,
    mend_warcs,
    prefix_of,
    warc_parts,
)
from tamias.model.errors import TamiasError, UsageError
from tamias.settings import Settings

AT_ONCE = 5000


async def index_at_start(pool: Any, data: Path, _settings: Settings) -> None:
    """Index the files when a service starts."""
    with suppress(TamiasError, OSError):
        await pool.run(lambda db: index_warcs(db.session, data / "warc"))


def index_warcs(session: Session, folder: Path) -> int:
    """Indexes complete files of which no record is known; returns how many. May be done twice.

    Not those of imports: what is not indexed there was never committed.
    """
    found = (part for part in warc_parts(folder) if not part.path.name.endswith(OPEN))
    parts = {part.name: part for part in found if not is_imported(part.name)}
    wanted = unindexed_files(session, list(parts)) if parts else []
    for name in wanted:
        # One transaction: a file of which some records are known counts as indexed.
        session.transact(partial(_index, part=parts[name]))
    return len(wanted)


def _index(cursor: Cursor, part: WarcPart) -> None:
    extents = _extents(part)
    while some := list(islice(extents, AT_ONCE)):
        insert_records(cursor, some)


def _extents(part: WarcPart) -> Iterator[WarcExtent]:
    for stamp, entry in entries(part.index):
        is_revisit = entry.mime == REVISIT
        with suppress(ValueError, UsageError):  # a line that is damaged; `tamias check` tells
            yield WarcExtent(
                file=entry.filename,
                position=int(entry.offset),
                length=int(entry.length),
                url=entry.url,
                captured_at=first_millisecond(stamp),
                status=int(entry.status or 0),
                sha256=entry.digest.partition(":")[2] or None,
                revisit=is_revisit,
                declared_type=None if is_revisit else entry.mime or None,
            )


def complete_warcs(store: FileStore, worker: int | None) -> None:
    """Complete what a dead worker left open, or what a backup had of any."""
    mend_warcs(store.folder("warc"), PREFIX if worker is None else prefix_of(worker))


def warcs_to_save(data: Path, stored: Container[str]) -> Iterator[tuple[str, int, Path]]:
    """Yield the files of a backup that have no row: the name there, how long they are sound, and their place.

    They are saved as if they were being written: a restore completes them, and makes their indexes again.
    """
    parts = (part for part in warc_parts(data / "warc") if part.name not in stored)
    yield from ((f"warc/{part.name}{OPEN}", part.length, part.path) for part in parts)


def bring_warcs(session: Session, data: Path) -> Path:
    """The folder with all WARC files of an archive; what only a store has is copied there first."""
    store = file_store(session, data)
    folder = store.folder("warc")
    if store.is_elsewhere:
        for stored in files_of(session, "warc"):
            if stored.in_store:
                _bring(store, stored)
    return folder


def _bring(store: FileStore, stored: StoredFile) -> None:
    """Copy a file from the store; one that is written on this machine is up to date already."""
    path = store.path(stored)
    try:
        with store.open(stored) as file:
            if file.name != stored.key:
                return
            copied = path.with_name(stored.name + ".part")
            with copied.open("wb") as copy:
                copy.writelines(pieces(file, stored.committed))
                copy.flush()
                os.fsync(copy.fileno())
    except OSError as error:
        raise TamiasError(f"{stored.key} cannot be brought from the store: {error.strerror}") from error
    index_warc(copied, stored.name)
    copied.rename(path)
