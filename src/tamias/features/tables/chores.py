"""Periodic work on all tables of the archive: profiles of new bodies, and joins."""

import logging
import tempfile
import time
from pathlib import Path
from typing import Any

from tamias.archive.blobs import Blob, BlobDamaged, BlobMissing, BlobReader
from tamias.archive.sources.revisits import read_figure, write_figure
from tamias.database.connect import Session
from tamias.features.dcat.joins import (
    JoinCandidate,
    TableColumn,
    keep_joins,
    newest_table,
    sketched_columns,
)
from tamias.features.dcat.profiles import Unprofiled, keep_profiles, pack_profile, unprofiled
from tamias.features.tables.body import profile, small_profile
from tamias.features.tables.joins import ColumnSketch, candidates
from tamias.model.profile import Profile
from tamias.settings import Settings

_FIGURE = "joins_of_tables_until"
MOST_JOINS = 100_000
"""The surest joins, which are stored."""


def pack_small_profile(content: bytes, **about: Any) -> tuple[bytes, str | None] | None:
    """Return the profile of a small table as it is stored, while its bytes are in memory."""
    found = small_profile(content, **about)
    return None if found is None else pack_profile(found)


def find_joins(session: Session) -> int | None:
    """Return how many there are; None when no table is newer than those that were compared last."""
    newest = newest_table(session)
    if newest <= (read_figure(session, _FIGURE) or 0):
        return None
    columns: dict[tuple[str, str], TableColumn] = {}
    sketches = []
    for each in sketched_columns(session):
        column = each.column
        table, name = f"{column.resource}#{column.table}", str(column.number)
        columns[table, name] = column
        sketches.append(ColumnSketch(table=table, column=name, distinct=column.distinct, sketch=each.sketch))
    joins = [
        JoinCandidate(
            of=columns[join.of.table, join.of.column],
            within=columns[join.within.table, join.within.column],
            containment=join.containment,
            shared=join.shared,
        )
        for join in candidates(sketches)[:MOST_JOINS]
    ]
    keep_joins(session, joins)
    write_figure(session, _FIGURE, newest, session.now())
    return len(joins)


_log = logging.getLogger(__name__)

PROFILES_AT_ONCE = 100
_STORE_SECONDS = 3.0
"""The longest time that finished profiles wait for others to be stored with."""


def profile_and_join(session: Session, blobs: BlobReader, _settings: Settings) -> None:
    """Profile all bodies that wait for it, then find joins among their tables."""
    while profile_some(session, blobs):
        pass
    find_joins(session)


def profile_some(session: Session, blobs: BlobReader) -> int:
    """Profile some new bodies; return how many."""
    waiting = unprofiled(session, PROFILES_AT_ONCE)
    if not waiting:
        return 0
    chains = blobs.table.chains([each.sha256 for each in waiting])
    made: dict[str, Profile] = {}
    stored_at = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tamias-") as folder:
        try:
            for each in waiting:
                made[each.sha256] = _profile(blobs, each, chains.get(each.sha256), Path(folder))
                if time.monotonic() - stored_at > _STORE_SECONDS:
                    keep_profiles(session, made, session.now())
                    made, stored_at = {}, time.monotonic()
        finally:
            keep_profiles(session, made, session.now())
    return len(waiting)


def _profile(blobs: BlobReader, row: Unprofiled, chain: list[Blob] | None, folder: Path) -> Profile:
    path = folder / "body"
    try:
        with path.open("wb") as file:
            file.writelines(blobs.pieces_of(chain) if chain else blobs.pieces(row.sha256))
    except (BlobDamaged, BlobMissing) as error:
        _log.warning("%s", error)
        path.write_bytes(b"")
    return profile(path, media_type=row.media_type, declared_type=row.declared, name=row.url, scratch=folder)
