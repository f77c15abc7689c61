"""The index of WARC files in the database: written with the commit of the visits, read to replay them."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from tamias.database.columns import RowSchema, Texts
from tamias.database.connect import Cursor, Session
from tamias.model.capture import Column


class WarcExtent(msgspec.Struct, frozen=True, kw_only=True):
    """A response or revisit record, and its row of the table `warc_record`."""

    file: Annotated[str, Column("text")]
    """The name that the file has when it is complete."""
    position: Annotated[int, Column("int8")]
    length: Annotated[int, Column("int8")]
    """Of the record as it is compressed."""
    url: Annotated[str, Column("text")]
    captured_at: Annotated[int, Column("int8")]
    status: Annotated[int, Column("int2")]
    sha256: Annotated[str | None, Column("bytea")] = None
    """Of the body; None where the server said that it has not changed."""
    revisit: Annotated[bool, Column("bool")] = False
    """Whether the body stands in another record."""
    declared_type: Annotated[str | None, Column("text")] = msgspec.field(default=None, name="told_type")
    crawl: Annotated[int | None, Column("int4")] = None
    capture: Annotated[str | None, Column("uuid")] = None
    """The visit; None where it is not known."""


_ROWS = RowSchema(WarcExtent, "warc_record")
_SQL = _ROWS.statements("tamias.features.warc", "index.sql")
MOST_RECORDS = 100_000
_COPIES = 10
_PAGE = 1000


def insert_records(cursor: Cursor, records: Sequence[WarcExtent]) -> None:
    """Makes records known, inside the transaction of their visits. Does nothing where there are none."""
    if records:
        cursor.execute(_SQL["insert_records"].text, _ROWS.parameters(records))


def resolve_revisits(cursor: Cursor, revisits: Sequence[WarcExtent]) -> None:
    """Add the digests of their bodies to revisits whose originals were not known before."""
    known = [each for each in revisits if each.sha256 is not None]
    if known:
        cursor.execute(_SQL["resolve_revisits"].text, _ROWS.parameters(known))


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


def newest_bodies(session: Session) -> dict[tuple[str, str], int]:
    """Return when bodies were captured, by URL and SHA-256; those of imports are not, which may be coded."""
    rows = session.fetch_all(_SQL["newest_bodies"], {"limit": MOST_RECORDS})
    return {(url, sha256): at for url, sha256, at in rows}


def positions_in(session: Session, file: str) -> set[int]:
    """Return where the records of a file begin that can be replayed."""
    return {position for (position,) in session.fetch_all(_SQL["positions"], {"file": file})}
