"""What is done now and then for the archive as a whole: thresholds, profiles, joins, quality."""

import logging
import tempfile
from pathlib import Path

from tamias.analyse.profile import profile
from tamias.archive.blobs import BlobDamaged, BlobMissing, BlobReader
from tamias.archive.catalogue.stored_profiles import Unprofiled, keep_profile, unprofiled
from tamias.archive.quality import measure_portals, measure_resources
from tamias.crawl.revisit.joining import find_joins
from tamias.crawl.revisit.timetable import set_thresholds
from tamias.database.connect import Session
from tamias.settings import Settings

_log = logging.getLogger(__name__)

PROFILES_AT_ONCE = 100


def keep_house(session: Session, blobs: BlobReader, settings: Settings) -> None:
    """All of it, once. Each part may be repeated, and is harmless when two do it at the same time."""
    set_thresholds(session, settings.schedule)
    while profile_some(session, blobs):
        pass
    find_joins(session)
    measure_resources(session)
    measure_portals(session)


def profile_some(session: Session, blobs: BlobReader, most: int = PROFILES_AT_ONCE) -> int:
    """Looks into new bodies; returns into how many."""
    waiting = unprofiled(session, most)
    for each in waiting:
        _profile(session, blobs, each)
    return len(waiting)


def _profile(session: Session, blobs: BlobReader, each: Unprofiled) -> None:
    with tempfile.TemporaryDirectory(prefix="tamias-") as folder:
        path = Path(folder) / "body"
        try:
            with path.open("wb") as file:
                file.writelines(blobs.pieces(each.sha256))
        except (BlobDamaged, BlobMissing) as error:
            _log.warning("%s", error)
            path.write_bytes(b"")
        found = profile(path, media_type=each.media_type, told_type=None, name=each.url, scratch=Path(folder))
    keep_profile(session, each.sha256, found, session.now())
