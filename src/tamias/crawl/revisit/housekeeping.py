"""What is done now and then for the archive as a whole: thresholds, profiles, joins, quality."""

import logging
import tempfile
import time
from pathlib import Path

from tamias.analyse.profile import profile
from tamias.analyse.profile.joins import ColumnSketch, Join, candidates
from tamias.archive.blobs import Blob, BlobDamaged, BlobMissing, BlobReader
from tamias.archive.catalogue.joins import (
    JoinCandidate,
    TableColumn,
    keep_joins,
    newest_table,
    sketched_columns,
)
from tamias.archive.catalogue.profiles import Unprofiled, keep_profiles, unprofiled
from tamias.archive.quality import measure_portals, measure_resources
from tamias.archive.sources.revisits import read_figure, write_figure
from tamias.crawl.revisit.timetable import set_thresholds
from tamias.database.connect import Session
from tamias.model.profile import Profile
from tamias.settings import Settings

_FIGURE = "joins_of_tables_until"
MOST_JOINS = 100_000
"""That are kept, the surest."""


def find_joins(session: Session) -> int | None:
    """Returns how many there are; None when no table is newer than those that were compared last."""
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
    joins = [_kept(join, columns) for join in candidates(sketches)[:MOST_JOINS]]
    keep_joins(session, joins)
    write_figure(session, _FIGURE, newest, session.now())
    return len(joins)


def _kept(join: Join, columns: dict[tuple[str, str], TableColumn]) -> JoinCandidate:
    return JoinCandidate(
        of=columns[join.of.table, join.of.column],
        within=columns[join.within.table, join.within.column],
        containment=join.containment,
        shared=join.shared,
    )


_log = logging.getLogger(__name__)

PROFILES_AT_ONCE = 100
_KEPT_SECONDS = 3.0
"""So long at most profiles that are made wait for others, to be kept with them."""


def keep_house(session: Session, blobs: BlobReader, settings: Settings) -> None:
    """All of it, once. Each part may be repeated, and is harmless when two do it at the same time."""
    measure_resources(session)
    set_thresholds(session, settings.schedule)
    while profile_some(session, blobs):
        pass
    find_joins(session)
    measure_portals(session)


def profile_some(session: Session, blobs: BlobReader) -> int:
    """Looks into new bodies; returns into how many."""
    waiting = unprofiled(session, PROFILES_AT_ONCE)
    if not waiting:
        return 0
    chains = blobs.table.chains([each.sha256 for each in waiting])
    made: dict[str, Profile] = {}
    kept_at = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tamias-") as folder:
        try:
            for each in waiting:
                made[each.sha256] = _profile(blobs, each, chains.get(each.sha256), Path(folder))
                if time.monotonic() - kept_at > _KEPT_SECONDS:
                    keep_profiles(session, made, session.now())
                    made, kept_at = {}, time.monotonic()
        finally:
            keep_profiles(session, made, session.now())
    return len(waiting)


def _profile(blobs: BlobReader, each: Unprofiled, chain: list[Blob] | None, folder: Path) -> Profile:
    path = folder / "body"
    try:
        with path.open("wb") as file:
            file.writelines(blobs.pieces_of(chain) if chain else blobs.pieces(each.sha256))
    except (BlobDamaged, BlobMissing) as error:
        _log.warning("%s", error)
        path.write_bytes(b"")
    return profile(path, media_type=each.media_type, told_type=each.told_type, name=each.url, scratch=folder)
