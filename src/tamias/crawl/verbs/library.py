"""The archive with its catalogue: what `tamias.Archive` is. Its times are datetimes in UTC."""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import msgspec
from pyoxigraph import (
    QueryBoolean,
    QuerySolutions,
    Triple,
)

from tamias import plugins
from tamias.archive.moments import Moment, as_datetime
from tamias.archive.reader.content import Content
from tamias.archive.reader.graph_history import GraphHistory
from tamias.archive.reader.library import ArchiveReader
from tamias.model.errors import UsageError
from tamias.model.resource import Resource, Source, State, Version
from tamias.settings import resolve

Found = QuerySolutions | QueryBoolean | Iterator[Triple]
"""The answer to SELECT, to ASK, to CONSTRUCT and DESCRIBE."""


class AnswerQueries(Protocol):
    """Answer queries to an archive; made from an `ArchiveReader` and the settings."""

    def find(self, query: str, at: Moment | None = None) -> Found:
        """Return the answer, up to date or as of a time. Raises `UsageError` for what is no query."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...


class ArchivedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a resource. Numbers begin at 1."""

    id: str
    """Such as `3b1f…_4`; `Archive.get` takes it as well."""
    resource: str
    number: int
    captured_at: datetime
    sha256: str
    byte_size: int
    media_type: str | None
    """As found."""
    declared_type: str | None = msgspec.field(name="told_type")
    """As its server says."""
    noise: str | None
    """Why only its bytes differ from those of the version before; None where its content does."""
    suspicious: str | None
    """Why it was suspicious before it was accepted because it stayed; None where it never was."""
    capture: str
    """The visit that brought it."""


class ArchivedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of which every version is stored."""

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
    """The content of a version, read on demand. Raises `BlobDamaged` where its digest differs."""

    resource: ArchivedResource  # type: ignore[assignment]
    version: ArchivedVersion  # type: ignore[assignment]


class Archive(ArchiveReader):
    """An archive, opened for reading. Others may write to it meanwhile. Not for two threads at once.

    It can be pickled: another process opens the same archive for itself.
    """

    def __init__(
        self, place: str | os.PathLike[str] = "tamias-data", *, data: str | os.PathLike[str] | None = None
    ) -> None:
        """Open `place`: a data directory, or the URL of a PostgreSQL database.

        With a URL, `data` is the directory of the bytes (else `TAMIAS_DATA`, else `./tamias-data`). Raises
        `DataMissing` when nothing is there.
        """
        self._queries: AnswerQueries | None = None
        super().__init__(place, data=data)
        is_url = isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))
        self._place = str(place) if is_url else str(Path(place).absolute())

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._place, self.data.absolute())

    def __repr__(self) -> str:
        return f"<archive at {self.data.absolute()}{'' if 'session' in vars(self) else ', closed'}>"

    def __getattr__(self, name: str) -> Any:
        if name == "session":
            raise UsageError(
                f"the archive at {self.data.absolute()} is closed; open it again with tamias.Archive(…)"
            )
        raise AttributeError(name)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the catalogue and the database. May be called twice."""
        queries, self._queries = self._queries, None
        if queries is not None:
            queries.close()
        if "session" in vars(self):
            super().close()
            del self.session

    def resources(  # type: ignore[override]
        self, *, host: str | None = None, media_type: str | None = None, portal: str | None = None
    ) -> Iterator[ArchivedResource]:
        """Yield the resources under watch, all or some, in the order of their ids."""
        yield from map(_resource, super().resources(host=host, media_type=media_type, portal=portal))

    def resource(self, url: str) -> ArchivedResource:  # type: ignore[override]
        """Return a resource by its URL, in any spelling, or by its id. Raises `NotArchived`."""
        return _resource(self._find(url))

    def versions(self, url: str) -> list[ArchivedVersion]:  # type: ignore[override]
        """Return the versions of a resource or a record, oldest first. Raises `NotArchived`."""
        return [_version(each) for each in super().versions(url)]

    def get(self, url: str, at: Moment | None = None, version: int | None = None) -> ArchivedContent:
        """Return the current version, the one that was current at a moment, or the one of a number.

        A version's own id is a URL as well: `3b1f…_4`. Raises `NotArchived`.
        """
        found = self._content(url, at, version)
        return ArchivedContent(_resource(found.resource), _version(found.version), found.reader)  # type: ignore[arg-type]

    def graph_history(self, url: str) -> GraphHistory:
        """Return the statements of a crawled document in all its states, for lookups within milliseconds.

        Raises `NotArchived`.
        """
        found: GraphHistory = plugins.load("comparisons", "graph_history")(self, url)
        return found

    def query(self, sparql: str, at: Moment | None = None) -> Found:
        """Answer a SPARQL query over the catalogue and the crawled graphs, up to date or as of a time.

        A query may be FROM versions, each a graph called by its IRI in the catalogue, its file's or its
        Memento's. The usual prefixes need not be declared. Raises `UsageError` for what is no query, and
        `StoreError` when the answer takes too long or is too large.
        """
        assert self.session
        if self._queries is None:
            self._queries = plugins.load("queries", "sparql")(self, resolve().settings)
        return self._queries.find(sparql, at)


def _reopen(place: str, data: Path) -> Archive:
    return Archive(place, data=data)


def _version(version: Version) -> ArchivedVersion:
    fields = {name: getattr(version, name) for name in ArchivedVersion.__struct_fields__}
    return ArchivedVersion(**fields | {"captured_at": as_datetime(version.captured_at)})


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
