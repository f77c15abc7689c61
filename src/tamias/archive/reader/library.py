"""The archive for its readers: resources, their versions, and what each version holds."""

import os
import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from tamias.archive.blobs import BlobReader
from tamias.archive.blobs.store import packs_of
from tamias.archive.captures import document_states, named_captures
from tamias.archive.moments import Moment, milliseconds, rfc3339
from tamias.archive.reader.content import BodyReader, Content, GraphContent, Table
from tamias.archive.sources.source_records import RecordBodies, find_record, latest_records, record_versions
from tamias.archive.tombstones import check_forgotten, check_gone, check_moment, is_record
from tamias.archive.versions.resources import page_of_resources, read_resources, read_versions
from tamias.database.connect import Database
from tamias.database.sql import statements
from tamias.model.diff import CollectionDiff, Diff
from tamias.model.errors import TamiasError, UsageError
from tamias.model.finding import SourceRecord
from tamias.model.resource import Resource, Version, resource_id
from tamias.model.url import DEFAULT_SESSION_NAMES, fetch_url, url_key
from tamias.plugins import load

_SQL = statements("tamias.archive.reader", "library.sql")
_REDIRECTS = re.compile(r"^ok: redirects to (\S+), which is visited")
_NAME = re.compile(r"([0-9a-f]{24})(?:_([1-9][0-9]{0,8}))?")
_NUMBER = re.compile(r"[0-9]{1,9}")


class NotArchived(TamiasError):
    """The archive has no such resource, or no such version of it."""


class ArchiveReader:
    """An archive, opened for reading. Others may write to it meanwhile. Not for two threads at once."""

    def __init__(
        self,
        place: str | os.PathLike[str] = "tamias-data",
        *,
        data: str | os.PathLike[str] | None = None,
        session_names: frozenset[str] = DEFAULT_SESSION_NAMES,
        database: Database | None = None,
        create: bool = False,
    ) -> None:
        """`place` is a data directory, or the URL of a PostgreSQL database; then `data` is the directory
        where the bytes are (else `TAMIAS_DATA`, else `./tamias-data`). A `database` that is open already is
        not closed.

        Raises `DataMissing` when nothing is there, unless it is to `create` it.
        """
        url = place if isinstance(place, str) and place.startswith(("postgresql://", "postgres://")) else None
        self.data = Path(data or (os.environ.get("TAMIAS_DATA", "tamias-data") if url else place))
        self.session_names = session_names
        self._closes = database is None
        self.database = database or Database(self.data, url, create=create)
        self.session = self.database.session()
        self.reader = BlobReader(packs_of(self.session, self.data), self.session)

    def close(self) -> None:
        """Let go of the database. May be called twice."""
        self.session.close()
        if self._closes:
            self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def resources(
        self, *, host: str | None = None, media_type: str | None = None, portal: str | None = None
    ) -> Iterator[Resource]:
        """The resources under watch, all or some, page by page in the order of their ids."""
        after = ""
        while page := page_of_resources(self.session, after, host=host, media_type=media_type, portal=portal):
            yield from page
            after = page[-1].id

    def resource(self, url: str) -> Resource:
        """Return a resource by its URL, in any spelling, or by its id. Raises `NotArchived`."""
        return self._find(url)

    def _find(self, url: str) -> Resource:
        if record := self._record(url):
            return record
        if is_record(url):
            check_forgotten(self.session, resource_id(url))
        named = _NAME.fullmatch(url)
        name, address = (named[1], "") if named else (self._id(url), fetch_url(url))
        rows = self.session.fetch_all(_SQL["find_resource"], {"resource": name, "url": address})
        found = read_resources(self.session, [rows[0][0]]) if rows else []
        if not found:
            check_forgotten(self.session, name)
            if document_states(self.session, address):
                raise NotArchived(
                    f"{url} was crawled, not watched: 'tamias diff' compares its states; "
                    "'tamias add' stores its versions from now on"
                )
            raise NotArchived(f"{url} is not in the archive; 'tamias add' watches it")
        return found[0]

    def _record(self, url: str) -> Resource | None:
        """The record of a catalogue that is called so: `CATALOGUE#RECORD`, or by its id."""
        named = _NAME.fullmatch(url)
        if named is None and not is_record(url):
            return None
        return find_record(self.session, named[1] if named else resource_id(url))

    def versions(self, url: str) -> list[Version]:
        """Return the versions of a resource or a record, oldest first. Raises `NotArchived`."""
        return self._history(self._find(url))[0]

    def _history(self, resource: Resource) -> tuple[list[Version], BodyReader]:
        """Return all versions of a resource, and the reader of their bodies."""
        if versions := read_versions(self.session, [resource.id])[resource.id]:
            return versions, self.reader
        return record_versions(self.session, resource.id), RecordBodies(self.session, resource.id)

    def get(self, url: str, at: Moment | None = None, version: int | None = None) -> Content:
        """Return the current version, the one that was current at a moment, or the one of a number.

        A version's own id is a URL as well: `3b1f…_4`. Where the resource redirects to another one, the
        current version is that of the other. Raises `NotArchived`.
        """
        return self._content(url, at, version)

    def _content(self, url: str, at: Moment | None = None, version: int | None = None) -> Content:
        named = _NAME.fullmatch(url)
        if named and named[2]:
            version = int(named[2])
        if at is not None and version is not None:
            raise UsageError("a version has a number or a time, not both")
        resource = self._find(url)
        if at is None and version is None:
            resource = self._target(resource)
        versions, reader = self._history(resource)
        if version is not None and all(each.number != version for each in versions):
            check_forgotten(self.session, resource.id, version)
        if not versions:
            check_gone(self.session, resource.id, None)
            raise NotArchived(f"{resource.url} is watched, but has no version yet")
        chosen = _chosen(resource, versions, at, version)
        if at is not None:
            check_moment(self.session, resource.id, chosen.captured_at, milliseconds(at))
        return Content(resource, chosen, reader)

    def _target(self, resource: Resource) -> Resource:
        """Return the resource that one redirects to since its last visit, if it has versions; else itself."""
        found = self.session.fetch_one(_SQL["read_trouble"], {"resource": resource.id})
        moved = _REDIRECTS.search(found[0] or "") if found else None
        try:
            target = self._find(moved[1]) if moved else resource
        except NotArchived:
            return resource
        return target if target.versions else resource

    def history(self, url: str) -> Table:
        """The rows of all versions of a table as one: CSV, JSON, Parquet, or the first sheet of a workbook.

        `valid_from` is when the first version with the row was captured, `valid_to` when the first one
        without it was, both in UTC; null: it is in the current version. A row that comes back is there twice.
        Columns are those of all versions; of different types of a column, the one that holds both. Raises
        `NotArchived` and `NoTable`.
        """
        resource = self._find(url)
        versions, reader = self._history(resource)
        if not versions:
            raise NotArchived(f"{resource.url} is watched, but has no version yet")
        contents = [Content(resource, each, reader).table_version for each in versions]
        found: Table = load("table_readers", "table")(contents, history=True)
        return found

    def diff(
        self,
        url: str,
        a: int | Moment | None = None,
        b: int | Moment | None = None,
        *,
        key: str | None = None,
    ) -> Diff:
        """Return the changes between two versions, named by numbers or moments; by default the last two.

        Of a document that was crawled and is not archived, between two states of its statements.
        `key` is the column that tells rows apart; without one it is guessed. Raises `NotArchived`.
        """
        old, new = self._pair(url, a, b)
        with tempfile.TemporaryDirectory(prefix="tamias-diff-") as folder:
            files = [content.spooled(Path(folder)) for content in (old, new)]
            found: Diff = load("comparisons", "diff")(
                files[0], files[1], new.text_type, old_type=old.text_type, key=key, base=new.url
            )
            return found

    def diff_update(
        self,
        url: str,
        a: int | Moment | None = None,
        b: int | Moment | None = None,
        *,
        form: str = "sparql_update",
    ) -> str:
        """SPARQL, or an `rdf_patch`, that turns the graph of one version into that of another.

        Raises `UsageError` if it is no RDF.
        """
        from tamias.content.formats import is_rdf
        from tamias.model.document import Unreadable

        old, new = self._pair(url, a, b)
        was, now = (each.media_type or "" for each in (old, new))
        for media_type in (now, was):
            if not is_rdf(media_type):
                raise UsageError(f"{url} is {media_type}, not RDF: it has no statements to compare")
        with tempfile.TemporaryDirectory(prefix="tamias-diff-") as folder:
            files = [content.spooled(Path(folder)) for content in (old, new)]
            try:
                found: str = load("comparisons", form)(files[0], files[1], now, old_type=was, base=new.url)
            except Unreadable as fault:
                raise UsageError(f"the versions of {url} cannot be compared as graphs: {fault}") from fault
        return found

    def records(self, portal: str) -> Iterator[SourceRecord]:
        """The records of a catalogue as it last gave them. Raises `NotArchived` where none are kept."""
        for name in _spellings(portal):
            found = latest_records(self.session, name)
            if first := next(found, None):
                yield first
                yield from found
                return
        raise NotArchived(f"no records of {portal} are kept; they are with 'tamias crawl KIND:URL'")

    def diff_portal(self, portal: str, a: Moment, b: Moment) -> CollectionDiff:
        """The resources of a portal that came, changed or went between two moments. Raises `NotArchived`."""
        named = self._portal(portal)
        values = {"portal": named, "before": milliseconds(a), "after": milliseconds(b)}
        rows = self.session.fetch_all(_SQL["portal_between"], values)
        return CollectionDiff(
            added=sorted(url for url, before, after in rows if after and not before),
            changed=sorted(url for url, before, after in rows if before and after and before != after),
            gone=sorted(url for url, before, after in rows if before and not after),
        )

    def _portal(self, url: str) -> str:
        """The portal as the archive knows it, with its slash or without."""
        for name in _spellings(url):
            if self.session.fetch_all(_SQL["is_portal"], {"portal": name})[0][0]:
                return name
        raise NotArchived(f"{url} is not a watched portal; 'tamias add --portal' watches it")

    def _pair(
        self, url: str, a: int | Moment | None, b: int | Moment | None
    ) -> tuple[Content | GraphContent, Content | GraphContent]:
        try:
            self._find(url)
        except NotArchived:
            states: tuple[GraphContent, GraphContent] | None = load("comparisons", "states")(self, url, a, b)
            if states is None:
                raise
            return states
        newest = self._content(url) if b is None else self._at(url, b)
        if a is not None:
            return self._at(url, a), newest
        versions, _ = self._history(self._find(url))
        before = [each.number for each in versions if each.number < newest.version.number]
        if not before:
            raise NotArchived(
                f"{newest.resource.url} has nothing to compare yet: its first version is the only one"
            )
        return self._content(url, version=before[-1]), newest

    def _at(self, url: str, which: int | Moment) -> Content:
        if isinstance(which, int) or (isinstance(which, str) and _NUMBER.fullmatch(which)):
            return self._content(url, version=int(which))
        return self._content(url, at=which)

    def _id(self, url: str) -> str:
        return resource_id(url_key(url, self.session_names))


def redirect_of(archive: ArchiveReader, content: Content, url: str) -> str | None:
    """Return the address that a content was captured from, where it is not the one that was named."""
    if _NAME.fullmatch(url) or is_record(url):
        return None
    captured = named_captures(archive.session, [content.version.capture])
    final = captured[0].final_url if captured else content.resource.url
    keys = {url_key(each, archive.session_names) for each in (url, final)}
    return final if len(keys) > 1 else None


def _spellings(url: str) -> list[str]:
    """A portal's address with its slash and without."""
    return list(dict.fromkeys((url, fetch_url(url), url.rstrip("/"), url.rstrip("/") + "/")))


def _chosen(resource: Resource, versions: list[Version], at: Moment | None, number: int | None) -> Version:
    if number is not None:
        found = next((version for version in versions if version.number == number), None)
        if found is None:
            last = versions[-1].number
            has = "only version 1" if last == 1 else f"1 to {last}"
            raise NotArchived(f"{resource.url} has no version {number}; it has {has}")
        return found
    if at is None:
        return versions[-1]
    place = bisect_right(versions, milliseconds(at), key=lambda version: version.captured_at)
    if not place:
        first = rfc3339(versions[0].captured_at)
        raise NotArchived(f"there was no version of {resource.url} at {at}; the first is of {first}")
    return versions[place - 1]
