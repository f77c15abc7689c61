"""The index of WARC files beside the files themselves: each row must name a record that can be replayed."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from tamias.archive.blobs import BlobDamaged
from tamias.archive.blobs.packs import Packs
from tamias.crawl.verbs.check import Looked
from tamias.database.connect import Session
from tamias.features.warc.folder import bring_warcs
from tamias.features.warc.index import WarcExtent, indexed_besides, records_in
from tamias.features.warc.messages import read_response
from tamias.features.warc.warc_files import OPEN, WarcPart, WarcRecord, indexed, records, warc_parts

_ADVICE = "these captures cannot be replayed: restore the file from a backup, or crawl the URLs again"


def check_warcs(
    session: Session, _rows: Session, data: Path, _packs: Packs, looked: Looked
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with WARC files, and with the index of them."""
    folder = bring_warcs(session, data)
    parts = warc_parts(folder)
    for part in parts:
        looked.warc_files += 1
        yield from ((f"warc/{part.path.name}", problem) for problem in _problems(session, part, looked))
    for file, count, url in indexed_besides(session, [part.name for part in parts]):
        if not any((folder / (file + ending)).exists() for ending in ("", OPEN)):
            problem = f"it is not there, and the index has {count:,} records of it, such as {url}; {_ADVICE}"
            yield f"warc/{file}", problem


def _problems(session: Session, part: WarcPart, looked: Looked) -> Iterator[str]:
    """Yield what is wrong with a file. A record without a row is no fault: its visit was never committed."""
    rows = {row.position: row for row in records_in(session, part.name)}
    wrong: dict[str, list[WarcExtent]] = {}
    end = 0
    with closing(part.path.open("rb")) as file:
        for record in records(part.path):
            end = record.offset + record.length
            if (row := rows.pop(record.offset, None)) and (problem := _problem(file, part, row, record)):
                wrong.setdefault(problem, []).append(row)
        for row in rows.values():
            # It may have been written since the file was read, or completed, which takes its ending away.
            path = part.path if part.path.exists() else part.path.with_name(part.name)
            late = next(records(path, row.position), None) if row.position >= end else None
            missing = "no whole record begins there" if row.position >= end else "no record begins there"
            if problem := _problem(file, part, row, late) if late else missing:
                wrong.setdefault(problem, []).append(row)
    looked.warc_bytes += min(end, part.length)
    if end < part.length:
        yield f"there is no sound record at byte {end} of {part.length}"
    for problem, found in wrong.items():
        first = min(found, key=lambda row: row.position)
        are = "1 row of the index is" if len(found) == 1 else f"{len(found):,} rows of the index are"
        yield f"{are} wrong, the first at byte {first.position} ({first.url}): {problem}; {_ADVICE}"


def _problem(file: BinaryIO, part: WarcPart, row: WarcExtent, record: WarcRecord) -> str | None:
    """Return why a record is not the one of a row."""
    if row.length != record.length:
        return "the record there has another length"
    found = indexed(record, part.name)
    if found is None or found[1].url != row.url:
        return "the record there is of another URL"
    if row.revisit or row.sha256 is None:
        return None
    try:
        read_response(file, row, len)
    except BlobDamaged:
        return "the body there has another digest"
    return None
