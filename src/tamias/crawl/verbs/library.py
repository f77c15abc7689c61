"""The archive with its catalogue: what `tamias.Archive` is. Its times are datetimes in UTC.

It stands before the reader that the rest of Tamias uses, which has milliseconds.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec
from pyoxigraph import (
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    Triple,
    parse,
    parse_query_results,
)

from tamias.archive.moments import Moment, as_datetime
from tamias.archive.reader.content import Content
from tamias.archive.reader.library import ArchiveReader
from tamias.archive.reader.tables import Table
from tamias.crawl.catalogue.catalogue import Catalogue, options_of
from tamias.crawl.catalogue.errors import QueryRefused
from tamias.crawl.catalogue.exchange import Answer
from tamias.crawl.verbs.past_queries import PastQueries, names_versions
from tamias.model.errors import UsageError
from tamias.model.finding import SourceRecord
from tamias.model.resource import Resource, Source, State, Version
from tamias.settings import resolve

if TYPE_CHECKING:
    from tamias.archive.diffs import CollectionDiff, Diff

_RESULTS = "application/sparql-results+json"
_ACCEPT = f"{_RESULTS}, application/n-triples;q=0.9"

Found = QuerySolutions | QueryBoolean | Iterator[Triple]
"""To SELECT, to ASK, to CONSTRUCT and DESCRIBE."""


class ArchivedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a resource. Numbers begin at 1."""

    id: str
    """Such as `3b1f…_4`; `Archive.get` takes it as well."""
    resource: str
    number: int
    captured_at: datetime
    sha256: str
    byte_size: int
    media_type: str | None
    """As found."""
    told_type: str | None
    """As its server says."""
    noise: str | None
    """Why only its bytes differ from those of the version before; None where its content does."""
    suspicious: str | None
    """Why it was suspicious before it was accepted because it stayed; None where it never was."""
    capture: str
    """The visit that brought it."""


class ArchivedResource(msgspec.Struct, frozen=True, kw_only=True):
    """One URL of which every version is kept."""

    id: str
    url: str
    state: State
    title: str | None
    media_type: str | None
    """Of the current version, as found."""
    expected: str | None
    """What its sources say it is."""
    added_at: datetime
    next_visit: datetime | None
    change_rate: float | None
    """Changes a day, as far as it is known."""
    versions: int
    every: timedelta | None
    """How often the user wants it visited; None leaves it to the schedule."""
    priority: float | None
    last_error: str | None
    """The reason of the latest visit that brought nothing; it stays when later visits succeed."""
    last_error_at: datetime | None
    sources: tuple[Source, ...]


class ArchivedContent(Content):
    """What a version holds, read when it is asked for. Raises `BlobDamaged` where it is not what it was."""

    resource: ArchivedResource  # type: ignore[assignment]
    version: ArchivedVersion  # type: ignore[assignment]


class Archive:
    """An archive, opened for reading. Others may write to it meanwhile. Not for two threads at once.

    It can be pickled: another process opens the same archive for itself.
    """

    def __init__(
        self, place: str | os.PathLike[str] = "tamias-data", *, data: str | os.PathLike[str] | None = None
    ) -> None:
        """`place` is a data directory, or the URL of a PostgreSQL database; then `data` is the directory
        where the bytes are (else `TAMIAS_DATA`, else `./tamias-data`).

        Raises `DataMissing` when nothing is there.
        """
        self._reader: ArchiveReader | None = None
        self._catalogue: Catalogue | None = None
        self._reader = ArchiveReader(place, data=data)
        is_url = isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))
        self._place = str(place) if is_url else str(Path(place).absolute())
        self._data = self._reader.data.absolute()

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._place, self._data)

    def __repr__(self) -> str:
        return f"<archive at {self._data}{', closed' if self._reader is None else ''}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the catalogue and the database. May be called twice."""
        catalogue, self._catalogue = self._catalogue, None
        reader, self._reader = self._reader, None
        if catalogue is not None:
            catalogue.close()
        if reader is not None:
            reader.close()

    @property
    def _open(self) -> ArchiveReader:
        if self._reader is None:
            raise UsageError(f"the archive at {self._data} is closed; open it again with tamias.Archive(…)")
        return self._reader

    def resources(
        self, *, host: str | None = None, media_type: str | None = None, portal: str | None = None
    ) -> Iterator[ArchivedResource]:
        """The resources under watch, all or some, page by page in the order of their ids."""
        found = self._open.resources(host=host, media_type=media_type, portal=portal)
        return (_resource(each) for each in found)

    def resource(self, url: str) -> ArchivedResource:
        """A resource by its URL, in any spelling, or by its id. Raises `NotArchived`."""
        return _resource(self._open.resource(url))

    def versions(self, url: str) -> list[ArchivedVersion]:
        """The versions of a resource or a record, oldest first. Raises `NotArchived`."""
        return [_version(each) for each in self._open.versions(url)]

    def get(self, url: str, at: Moment | None = None, version: int | None = None) -> ArchivedContent:
        """The current version, the one that was current at a moment, or the one of a number.

        A version's own id is a URL as well: `3b1f…_4`. Raises `NotArchived`.
        """
        found = self._open.get(url, at, version)
        return ArchivedContent(_resource(found.resource), _version(found.version), found.reader)  # type: ignore[arg-type]

    def history(self, url: str) -> Table:
        """The rows of all versions of a table as one: CSV, JSON, Parquet, or the first sheet of a workbook.

        `valid_from` is when the first version with the row was captured, `valid_to` when the first one
        without it was, both in UTC; null: it is in the current version. A row that comes back is there twice.
        Columns are those of all versions; of different types of a column, the one that holds both. Raises
        `NotArchived` and `NoTable`.
        """
        return self._open.history(url)

    def diff(
        self,
        url: str,
        a: int | Moment | None = None,
        b: int | Moment | None = None,
        *,
        key: str | None = None,
    ) -> "Diff":
        """What changed from one version to another, named by numbers or moments; else in the last step.

        `key` is the column that tells rows apart; without one it is guessed. Raises `NotArchived`.
        """
        return self._open.diff(url, a, b, key=key)

    def diff_update(self, url: str, a: int | Moment | None = None, b: int | Moment | None = None) -> str:
        """SPARQL that turns the graph of one version into that of another; `UsageError` if it is no RDF."""
        return self._open.diff_update(url, a, b)

    def records(self, portal: str) -> Iterator[SourceRecord]:
        """The records of a catalogue as it last gave them. Raises `NotArchived` where none are kept."""
        return self._open.records(portal)

    def diff_portal(self, portal: str, a: Moment, b: Moment) -> "CollectionDiff":
        """The resources of a portal that came, changed or went between two moments. Raises `NotArchived`."""
        return self._open.diff_portal(portal, a, b)

    def query(self, sparql: str, at: Moment | None = None) -> Found:
        """The answer to a SPARQL query over the catalogue and the crawled graphs, up to date or as of a time.

        A query may be FROM versions, each a graph called by its IRI in the catalogue, its file's or its
        Memento's. The usual prefixes need not be declared. Raises `UsageError` for what is no query, and
        `StoreError` when the answer takes too long or is too large.
        """
        reader = self._open
        if self._catalogue is None:
            self._catalogue = Catalogue(reader.data, options_of(resolve().settings.serve), reader.database)
        if at is None and self._catalogue.is_filled_by_us:
            with closing(self._catalogue.refresher(reader.session)) as refresher:
                refresher.round()
        try:
            if at is None and not names_versions(sparql):
                return _found(self._catalogue.ask(sparql, _ACCEPT))
            past = PastQueries(reader, resolve().settings, self._catalogue.options)
            if at is not None:
                return _found(past.ask_at(sparql, _ACCEPT, at))
            return _found(past.ask_versions(sparql, _ACCEPT, self._catalogue))
        except QueryRefused as error:
            raise UsageError(f"the query cannot be answered: {error}") from error


def _reopen(place: str, data: Path) -> Archive:
    return Archive(place, data=data)


def _version(version: Version) -> ArchivedVersion:
    told = msgspec.structs.asdict(version)
    del told["fingerprint"]
    return ArchivedVersion(**{**told, "id": version.id, "captured_at": as_datetime(version.captured_at)})


def _resource(resource: Resource) -> ArchivedResource:
    error, every = resource.last_error, resource.every
    times = {
        "added_at": as_datetime(resource.added_at),
        "next_visit": _moment(resource.next_visit),
        "every": None if every is None else timedelta(milliseconds=every),
        "last_error": None if error is None else error.reason,
        "last_error_at": None if error is None else _moment(error.at),
    }
    return ArchivedResource(**{**msgspec.structs.asdict(resource), **times})


def _moment(at: int | None) -> datetime | None:
    return None if at is None else as_datetime(at)


def _found(answer: Answer) -> Found:
    with closing(answer.content) as content:
        told = content.read()
    if answer.media_type.startswith(_RESULTS):
        found: QuerySolutions | QueryBoolean = parse_query_results(told, format=QueryResultsFormat.JSON)
        return found
    return (quad.triple for quad in parse(told, format=RdfFormat.N_TRIPLES))
