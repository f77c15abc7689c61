"""What the archive holds, resource by resource, for those who write packages of it."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tamias.archive.exchanges import Exchange, read_exchanges
from tamias.archive.library import Archive, NotArchived
from tamias.archive.resources import read_versions
from tamias.model.resource import Resource, Version

_ENDINGS = {
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "text/plain": ".txt",
    "text/html": ".html",
    "text/turtle": ".ttl",
    "application/json": ".json",
    "application/geo+json": ".geojson",
    "application/ld+json": ".jsonld",
    "application/x-ndjson": ".ndjson",
    "application/n-triples": ".nt",
    "application/n-quads": ".nq",
    "application/trig": ".trig",
    "application/rdf+xml": ".rdf",
    "application/xml": ".xml",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
    "application/gzip": ".gz",
    "application/vnd.apache.parquet": ".parquet",
    "application/vnd.ms-excel": ".xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.oasis.opendocument.spreadsheet": ".ods",
}


class Holding(msgspec.Struct, frozen=True):
    """One resource with its versions, and how they came."""

    resource: Resource
    versions: Sequence[Version]
    exchanges: dict[str, Exchange]
    """By the id of the capture; those that are still known."""

    @property
    def title(self) -> str:
        """What a person calls it."""
        return self.resource.title or self.resource.url

    def path(self, version: Version) -> str:
        """Its place in a package. Nothing from outside is in it."""
        return f"{self.resource.id}/{version.number}{_ENDINGS.get(version.media_type or '', '.bin')}"


def holdings(archive: Archive, urls: Iterable[str] = ()) -> Iterator[Holding]:
    """The resources named, or all; those that have a version. Raises `NotArchived` for a name without one."""
    named = list(urls)
    chosen = {each.id: each for each in map(archive.resource, named)} if named else None
    for resource in archive.resources() if chosen is None else chosen.values():
        versions = read_versions(archive.session, [resource.id])[resource.id]
        if versions:
            captures = [version.capture for version in versions]
            yield Holding(resource, versions, read_exchanges(archive.session, captures))
        elif named:
            raise NotArchived(f"{resource.url} is under watch, but there is no version of it yet")
