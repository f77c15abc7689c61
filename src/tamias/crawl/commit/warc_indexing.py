"""Makes WARC files known that were written before there was an index in the database."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from tamias.archive.moments import first_millisecond
from tamias.archive.warc_index import insert_records, unindexed_files
from tamias.database.connect import Cursor, Session
from tamias.model.errors import UsageError
from tamias.model.warc import WarcExtent
from tamias.sinks.warc.cdxj import CdxjFields, entries
from tamias.sinks.warc.warc_files import WarcPart, warc_parts
from tamias.sinks.warc.warc_writer import OPEN

AT_ONCE = 5000
_REVISIT = "warc/revisit"


def index_warcs(session: Session, folder: Path) -> int:
    """Indexes complete files of which no record is known; returns how many. May be done twice."""
    parts = {part.name: part for part in warc_parts(folder) if not part.path.name.endswith(OPEN)}
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
        try:
            yield _extent(stamp, entry)
        except (ValueError, UsageError):  # a line that is damaged; `tamias check` tells
            continue


def _extent(stamp: str, entry: CdxjFields) -> WarcExtent:
    return WarcExtent(
        file=entry.filename,
        position=int(entry.offset),
        length=int(entry.length),
        url=entry.url,
        captured_at=first_millisecond(stamp),
        status=int(entry.status or 0),
        sha256=entry.digest.partition(":")[2] or None,
        revisit=entry.mime == _REVISIT,
        told_type=None if entry.mime == _REVISIT else entry.mime or None,
    )
