"""Regular work for the whole archive: thresholds, quality, and the chores of features."""

from tamias.archive.blobs import BlobReader
from tamias.archive.quality import measure_portals, measure_resources
from tamias.crawl.revisit.timetable import set_thresholds
from tamias.database.connect import Session
from tamias.plugins import load_all
from tamias.settings import Settings


def keep_house(session: Session, blobs: BlobReader, settings: Settings) -> None:
    """Do all of it once. Each part may be repeated, and is harmless when two do it at the same time."""
    measure_resources(session)
    set_thresholds(session, settings.schedule)
    for chore in load_all("chores").values():
        chore(session, blobs)
    measure_portals(session)
