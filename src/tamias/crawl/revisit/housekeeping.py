"""Regular work for the whole archive: thresholds, and the chores of features."""

from tamias.archive.blobs import BlobReader
from tamias.crawl.revisit.timetable import set_thresholds
from tamias.database.connect import Session
from tamias.plugins import load_all
from tamias.settings import Settings


def keep_house(session: Session, blobs: BlobReader, settings: Settings) -> None:
    """Do all of it once. Each part may be repeated, and is harmless when two do it at the same time."""
    set_thresholds(session, settings.schedule)
    for chore in load_all("chores").values():
        chore(session, blobs)
