"""WARC files in a store, brought to this machine for those who read them from a folder."""

import os
from pathlib import Path

from tamias.archive.file_store import FileStore, file_store, pieces
from tamias.archive.stored_files import StoredFile, files_of
from tamias.database.connect import Session
from tamias.model.errors import TamiasError
from tamias.sinks.warc.warc_files import index_warc


def bring_warcs(session: Session, data: Path) -> Path:
    """The folder with all WARC files of an archive; what only a store has is copied there first."""
    store = file_store(session, data)
    folder = store.folder("warc")
    if store.is_elsewhere:
        for stored in files_of(session, "warc"):
            if stored.in_store:
                _bring(store, stored)
        store.close()
    return folder


def _bring(store: FileStore, stored: StoredFile) -> None:
    """Copy a file from the store; one that is written on this machine is up to date already."""
    path = store.path(stored)
    try:
        with store.open(stored) as file:
            if file.name != stored.key:
                return
            partial = path.with_name(stored.name + ".part")
            with partial.open("wb") as copy:
                copy.writelines(pieces(file, stored.committed))
                copy.flush()
                os.fsync(copy.fileno())
    except OSError as error:
        raise TamiasError(f"{stored.key} cannot be brought from the store: {error.strerror}") from error
    index_warc(partial, stored.name)
    partial.rename(path)
