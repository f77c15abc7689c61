"""The index of WARC files beside the files themselves: each row must name a record that can be replayed."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tamias.archive.blobs import BlobDamaged
from tamias.archive.blobs.packs import Packs
from tamias.crawl.verbs.check import Looked
from tamias.database.connect import Session
from tamias.features.warc.folder import bring_warcs
from tamias.features.warc.index import WarcExtent, indexed_besides, records_in
from tamias.features.warc.messages import read_response
from tamias.features.warc.warc_files import OPEN, WarcPart, WarcRecord, indexed, records, warc_parts

_ADVICE = "these captures cannot be replayed: restore the file from a backup, or crawl the URLs again"


class WarcComparison:
    """The rows that name one file. They and the records of the file come in the order of their places."""

    def __init__(self, session: Session, part: WarcPart) -> None:
        self._part = part
        self._rows = records_in(session, part.name)
        self._row = next(self._rows, None)
        self._file = part.path.open("rb")
        self._wrong: dict[str, tuple[int, WarcExtent]] = {}
        """How many rows are wrong in a way, and the first of them."""

    def add(self, record: WarcRecord) -> None:
        """The next record of the file. One without a row is no fault: its visit was never committed."""
        while self._row is not None and self._row.position <= record.offset:
            there = self._row.position == record.offset
            self._note(self._problem(self._row, record) if there else "no record begins there")
            self._row = next(self._rows, None)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong, when all records have been added."""
        with closing(self._file):
            while self._row is not None:
                # It may have been written since the file was read, or completed, which takes its ending away.
                path = (
                    self._part.path
                    if self._part.path.exists()
                    else self._part.path.with_name(self._part.name)
                )
                late = next(records(path, self._row.position), None)
                self._note(self._problem(self._row, late) if late else "no whole record begins there")
                self._row = next(self._rows, None)
        for problem, (count, first) in self._wrong.items():
            rows = "1 row of the index is" if count == 1 else f"{count:,} rows of the index are"
            yield f"{rows} wrong, the first at byte {first.position} ({first.url}): {problem}; {_ADVICE}"

    def _note(self, problem: str | None) -> None:
        if problem is not None and self._row is not None:
            count, first = self._wrong.get(problem, (0, self._row))
            self._wrong[problem] = count + 1, first

    def _problem(self, row: WarcExtent, record: WarcRecord) -> str | None:
        if row.length != record.length:
            return "the record there has another length"
        found = indexed(record, self._part.name)
        if found is None or found[1].url != row.url:
            return "the record there is of another URL"
        if row.revisit or row.sha256 is None:
            return None
        try:
            read_response(self._file, row, len)
        except BlobDamaged:
            return "the body there has another digest"
        return None


def check_warcs(
    session: Session, _rows: Session, data: Path, _packs: Packs, looked: Looked
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with WARC files, and with the index of them."""
    folder = bring_warcs(session, data)
    parts = warc_parts(folder)
    for part in parts:
        end, comparison = 0, WarcComparison(session, part)
        for record in records(part.path):
            end = record.offset + record.length
            comparison.add(record)
        looked.warc_files += 1
        looked.warc_bytes += min(end, part.length)
        name = f"warc/{part.path.name}"
        if end < part.length:
            yield name, f"there is no sound record at byte {end} of {part.length}"
        yield from ((name, problem) for problem in comparison.problems())
    for file, count, url in indexed_besides(session, [part.name for part in parts]):
        if not any((folder / (file + ending)).exists() for ending in ("", OPEN)):
            problem = f"it is not there, and the index has {count:,} records of it, such as {url}; {_ADVICE}"
            yield f"warc/{file}", problem
