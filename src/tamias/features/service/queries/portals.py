"""The datasets that a portal listed at a time, their files, and the times when each was absent."""

from collections import defaultdict

import msgspec

from tamias.archive.moments import rfc3339, rfc3339_or_none
from tamias.database.connect import Session
from tamias.database.sql import statements

_SQL = statements("tamias.archive.reader", "library.sql")


class ListedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a dataset, as it was at the time."""

    url: str
    title: str | None
    format: str | None
    title_from: str
    """The start of the harvest that brought the title and the format, as with datasets."""
    version: str | None
    """The id of the version that was current then; null: none was captured until then."""
    captured_at: str | None
    sha256: str | None
    byte_size: int | None
    gone: bool
    """Whether its server said then that it was gone."""


class ListedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a portal listed, and its files."""

    record: str
    """The portal's own identifier."""
    iri: str
    title: str
    title_from: str
    """The start of the harvest that brought the title and the IRI. If it is later than the time asked for,
    nothing of that time is stored, and they are the earliest known ones."""
    files: list[ListedFile]


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """A time during which a dataset or a file was not there."""

    record: str
    iri: str
    title: str
    url: str | None
    """Of the file; null: the dataset as a whole."""
    gone_at: str
    back_at: str | None
    """Null while it lasts."""


def datasets_at(session: Session, portal: str, at: int, after: str, limit: int) -> list[ListedDataset]:
    """Return datasets that a portal listed at a time in milliseconds, in the order of their records."""
    values = {"portal": portal, "at": at, "after": after, "limit": limit}
    datasets = session.fetch_all(_SQL["datasets_at"], values)
    files: dict[str, list[ListedFile]] = defaultdict(list)
    named = {"portal": portal, "at": at, "record": [record for record, *_ in datasets]}
    for record, *row in session.fetch_all(_SQL["files_at"], named):
        url, title, form, titled_at, version, captured_at, sha256, byte_size, gone = row
        files[record].append(
            ListedFile(
                url=url, title=title, format=form, title_from=rfc3339(titled_at), version=version,
                captured_at=rfc3339_or_none(captured_at),
                sha256=sha256, byte_size=byte_size, gone=gone,
            )
        )  # fmt: skip
    return [
        ListedDataset(record=record, iri=iri, title=title, title_from=rfc3339(titled_at), files=files[record])
        for record, iri, title, titled_at in datasets
    ]


def absences(session: Session, portal: str, skip: int, limit: int) -> list[Absence]:
    """Return the latest absences of a portal, newest first."""
    found = session.fetch_all(_SQL["absences"], {"portal": portal, "skip": skip, "limit": limit})
    return [
        Absence(
            record=record, iri=iri, title=title, url=url or None, gone_at=rfc3339(gone_at),
            back_at=rfc3339_or_none(back_at),
        )
        for record, iri, title, url, gone_at, back_at in found
    ]  # fmt: skip
