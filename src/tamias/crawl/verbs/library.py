"""The archive with its catalogue: what `tamias.Archive` is. Its times are datetimes in UTC."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, Unpack

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
from tamias.archive.reader.library import ArchiveReader, NotArchived
from tamias.crawl.revisit.watches import Added
from tamias.crawl.store.progress import CrawlSnapshot
from tamias.crawl.verbs.crawl import CrawlKeywords, RunningCrawl, revisit
from tamias.crawl.verbs.run_policy import RunPlace
from tamias.crawl.verbs.seed_check import named_seeds
from tamias.crawl.verbs.watch import plan_watch, put_watched, stop_watched
from tamias.model.errors import UsageError
from tamias.model.event import Event
from tamias.model.resource import Resource, Source, State, Version
from tamias.settings import resolve

Found = QuerySolutions | QueryBoolean | Iterator[Triple]
"""The answer to SELECT, to ASK, to CONSTRUCT and DESCRIBE."""


Step = Callable[[int | None], tuple[int, list[Event]]]
"""Returns some of the events after a number, and the number to go on from; after None only that."""
ReadEvents = Callable[[Any, int | None, str | None, str | None, str | None], tuple[int, list[Event]]]
"""Does so with a session, for a resource, a host, and a portal."""
LOOK_SECONDS = 1.0
"""How often somebody who watches looks for what is new."""


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
    """An archive. Others may work with it meanwhile. Not for two threads at once.

    It can be pickled: another process opens the same archive for itself.
    """

    def __init__(
        self,
        place: str | os.PathLike[str] = "tamias-data",
        *,
        data: str | os.PathLike[str] | None = None,
        create: bool = False,
    ) -> None:
        """Open `place`: a data directory, or the URL of a PostgreSQL database.

        With a URL, `data` is the directory of the bytes (else `TAMIAS_DATA`, else `./tamias-data`). Raises
        `DataMissing` when nothing is there, unless it is to `create` it.
        """
        self._queries: AnswerQueries | None = None
        super().__init__(place, data=data, create=create)
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

    def add(
        self,
        *urls: str,
        portal: bool = False,
        title: str | None = None,
        format: str | None = None,  # noqa: A002 (as the option is called)
        every: str | None = None,
        priority: float | None = None,
    ) -> Added:
        """Put URLs under watch, due now, as `tamias add` does: `visit` or `tamias serve` visits them.

        A source is named with its kind, such as `ckan:https://…`, or is a `portal`. `every` is an interval
        such as `12h`. Addresses that a filter keeps out are in `refused`. Raises `UsageError` for what is no
        URL.
        """
        settings, session = resolve().settings, self.session
        plan = plan_watch(
            settings,
            named_seeds(urls, ()),
            portal=portal,
            title=title,
            format_name=format,
            every=every,
            priority=priority,
        )
        return put_watched(session, self.data, settings, plan)

    def remove(self, *urls: str) -> None:
        """Stop watching URLs; their versions stay. Raises `NotArchived` for those that were not watched."""
        if unknown := stop_watched(self.session, self.data, resolve().settings, urls):
            raise NotArchived(f"not watched: {', '.join(unknown)}")

    def visit(self, *urls: str, **options: Unpack[CrawlKeywords]) -> CrawlSnapshot:
        """Visit watched URLs now, without any those that are due, and return when they are visited.

        Requests are sent by the options of the archive's crawl, or by these. Raises `UsageError` for a URL
        that is not watched.
        """
        with self.start_visit(*urls, **options) as running:
            return running.wait()

    def start_visit(self, *urls: str, **options: Unpack[CrawlKeywords]) -> RunningCrawl:
        """Start to `visit` and return at once: use it in `with`, as `tamias.start_crawl`."""
        db = self._place if "://" in self._place else None
        return revisit(RunPlace(self.data, db, None), urls, options)

    def watch(
        self,
        url: str | None = None,
        *,
        host: str | None = None,
        portal: str | None = None,
        after: int | None = None,
    ) -> Iterator[Event]:
        """Follow what happens: yield new versions and changes of state, whoever brings them, without end.

        All, or those of a URL, a host, or a portal; from now on, or `after` the event of a number, which may
        be from an earlier program. Raises `NotArchived`.
        """
        step = self.events(url, host, portal)
        number, _ = step(None)
        return _follow(step, number if after is None else after)

    def events(self, url: str | None, host: str | None, portal: str | None) -> Step:
        """Return what reads the events after one, and the number to go on from: for a loop of your own."""
        resource, session = None if url is None else self._find(url).id, self.session
        read: ReadEvents = plugins.load("queries", "events")
        return lambda after: read(session, after, resource, host, portal)


def _follow(step: Step, number: int) -> Iterator[Event]:
    while True:
        number, found = step(number)
        yield from found
        if not found:
            time.sleep(LOOK_SECONDS)


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
