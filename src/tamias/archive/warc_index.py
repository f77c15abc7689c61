"""The index of WARC files in the database: written with the commit of the visits, read to replay them."""

from collections.abc import Iterator, Sequence

from tamias.database.columns import Texts
from tamias.database.connect import Cursor, Session
from tamias.database.row_schema import RowSchema
from tamias.model.warc import WarcExtent

_ROWS = RowSchema(WarcExtent, "warc_record")
_SQL = _ROWS.statements("tamias.archive", "warc_index.sql")
MOST_RECORDS = 100_000
_COPIES = 10
_PAGE = 1000


def insert_records(cursor: Cursor, records: Sequence[WarcExtent]) -> None:
    """Makes records known, inside the transaction of their visits. Does nothing where there are none."""
    if records:
        cursor.execute(_SQL["insert_records"].text, _ROWS.parameters(records))


def unindexed_files(session: Session, files: Sequence[str]) -> list[str]:
    """Return those of some files that have no row."""
    return [file for (file,) in session.fetch_all(_SQL["unindexed"], {"file": Texts(files)})]


def records_of(session: Session, urls: Sequence[str]) -> list[WarcExtent]:
    """Return what was captured of some URLs, oldest first."""
    rows = session.fetch_all(_SQL["records_of"], {"url": Texts(urls), "limit": MOST_RECORDS})
    return [_ROWS.decode(row) for row in rows]


def latest_records(session: Session, url: str, most: int) -> list[WarcExtent]:
    """Return what was captured of a URL, newest first."""
    return [
        _ROWS.decode(row) for row in session.fetch_all(_SQL["latest_records"], {"url": url, "limit": most})
    ]


def records_in(session: Session, file: str) -> Iterator[WarcExtent]:
    """Yield all of one file, in their order."""
    after = -1
    while rows := session.fetch_all(_SQL["records_in"], {"file": file, "after": after, "limit": _PAGE}):
        found = [_ROWS.decode(row) for row in rows]
        yield from found
        after = found[-1].position


def indexed_besides(session: Session, files: Sequence[str]) -> list[tuple[str, int, str]]:
    """Files that have records here and are none of some: how many, and the URL of one."""
    rows = session.fetch_all(_SQL["indexed_besides"], {"file": Texts(files)})
    return [(file, count, url) for file, count, url in rows]


def records_with(session: Session, sha256: str) -> list[WarcExtent]:
    """Return some records that hold a body."""
    values = {"sha256": bytes.fromhex(sha256), "limit": _COPIES}
    return [_ROWS.decode(row) for row in session.fetch_all(_SQL["records_with"], values)]


def positions_in(session: Session, file: str) -> set[int]:
    """Return where the records of a file begin that can be replayed."""
    return {position for (position,) in session.fetch_all(_SQL["positions"], {"file": file})}
