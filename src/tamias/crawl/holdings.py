"""What the archive holds, given to those who write packages: bags, crates and WARC files."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from tamias import __version__
from tamias.archive.content import Content
from tamias.archive.descriptions import DatasetDescription, describe
from tamias.archive.exchanges import Exchange, read_exchanges
from tamias.archive.library import Archive, NotArchived
from tamias.archive.moments import rfc3339
from tamias.archive.resources import read_versions
from tamias.model.capture import Body, Capture, Hop
from tamias.model.outcome import Outcome
from tamias.model.record import HopRecord
from tamias.model.resource import Resource, Version
from tamias.model.vocabulary import address_iri
from tamias.sinks.bagit import Bag
from tamias.sinks.cdxj import entries, timestamp
from tamias.sinks.packages import Package
from tamias.sinks.ro_crate import Crate, references
from tamias.sinks.warc import WarcExtent, WarcWriter
from tamias.sinks.warc_files import Part, warc_parts
from tamias.sinks.warc_records import Fields, warc_date

IN_MEMORY = 8 << 20
"""Larger bodies go by way of a file."""
SOFTWARE = f"Tamias {__version__}"

_TERMS = {
    "@id": "#terms",
    "name": "Terms of the publishers",
    "description": "Each file is as its publisher gave it out; its terms are those of its publisher.",
}
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


class Told(msgspec.Struct, frozen=True):
    """What a package says of a resource."""

    dataset: DatasetDescription
    files: dict[str, str]
    """Of each version, by its id."""
    captures: tuple[Exchange, ...]


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


def export_bag(archive: Archive, urls: Sequence[str], package: Package) -> int:
    """Writes every version of the resources named, or of all, as one bag; returns how many there were."""
    bag = Bag(package)
    count = 0
    for holding in holdings(archive, urls):
        for version in holding.versions:
            content = Content(holding.resource, version, archive.reader)
            bag.add(holding.path(version), content.pieces())
            count += 1
        bag.add(f"{holding.resource.id}/resource.json", [_told(holding)])
    _some(count)
    bag.complete(
        [
            *(("External-Identifier", url) for url in urls),
            ("External-Description", f"{count} versions of resources of the Web, as they were captured"),
            ("Bag-Software-Agent", SOFTWARE),
        ]
    )
    return count


def export_crate(archive: Archive, urls: Sequence[str], package: Package) -> int:
    """The same as one RO-Crate."""
    crate = Crate(package)
    crate.describe("#tamias", "SoftwareApplication", name="Tamias", version=__version__)
    count = 0
    titles = []
    for holding in holdings(archive, urls):
        _add_to_crate(crate, archive, holding)
        count += len(holding.versions)
        titles.append(holding.title)
    _some(count)
    name = titles[0] if len(titles) == 1 else f"{len(titles)} resources of the Web"
    crate.complete(
        name=f"{name}: {count} versions",
        description="Every version that the archive keeps, with the exact bytes as they were captured.",
        licence=_TERMS,
    )
    return count


def _some(count: int) -> None:
    if not count:
        raise NotArchived("the archive has no versions yet; 'tamias add' puts resources under watch")


def _add_to_crate(crate: Crate, archive: Archive, holding: Holding) -> None:
    resource, source = holding.resource, address_iri(holding.resource.url)
    paths = []
    for version in holding.versions:
        path = f"data/{holding.path(version)}"
        crate.add_file(
            path,
            Content(resource, version, archive.reader).pieces(),
            name=f"{holding.title}, version {version.number}",
            encodingFormat=version.media_type,
            version=str(version.number),
            dateModified=rfc3339(version.captured_at),
            isBasedOn={"@id": source},
        )
        _add_capture(crate, holding, version, path)
        paths.append(path)
    told = f"data/{resource.id}/resource.json"
    about = f"What is known of {holding.title}"
    crate.add_file(told, [_told(holding)], name=about, encodingFormat="application/json")
    crate.add_folder(
        f"data/{resource.id}/", [*paths, told], name=holding.title, identifier=resource.id, url=resource.url
    )
    crate.describe(source, "CreativeWork", name=holding.title, url=resource.url)


def _add_capture(crate: Crate, holding: Holding, version: Version, path: str) -> None:
    exchange = holding.exchanges.get(version.capture)
    crate.describe(
        f"#capture-{version.capture}",
        "CreateAction",
        name=f"Capture of version {version.number} of {holding.title}",
        startTime=rfc3339(version.captured_at),
        endTime=rfc3339(exchange.ended_at) if exchange else None,
        instrument={"@id": "#tamias"},
        object=references([address_iri(holding.resource.url)]),
        result=references([path]),
    )


def _told(holding: Holding) -> bytes:
    told = Told(
        describe(holding.resource, holding.versions),
        {version.id: holding.path(version) for version in holding.versions},
        tuple(holding.exchanges[v.capture] for v in holding.versions if v.capture in holding.exchanges),
    )
    return msgspec.json.format(msgspec.json.encode(told), indent=2)


def version_warcs(
    archive: Archive, urls: Sequence[str], folder: Path, crawled: Path | None
) -> Iterator[Part]:
    """Versions as WARC files of a scratch folder, each gone when the next is asked for; its index stays.

    What stands in the WARC files of `crawled` already is left out.
    """
    known = _answers(crawled) if crawled else frozenset()
    last: str | None = None
    with WarcWriter(folder, "versions", agent="", accept="", software=SOFTWARE, robots="") as writer:
        for holding in holdings(archive, urls):
            for version in holding.versions:
                extent = _write_version(writer, archive, holding, version, folder, known)
                if extent and last and extent.file != last:
                    yield from _given(folder, last)
                last = extent.file if extent else last
    if last:
        yield from _given(folder, last)


def _given(folder: Path, name: str) -> Iterator[Part]:
    path = folder / name
    yield Part(path, name, path.stat().st_size)
    path.unlink()


def _answers(folder: Path) -> frozenset[int]:
    """What stands in WARC files, as hashes of address, time and digest."""
    indexes = [part.index for part in warc_parts(folder)]
    return frozenset(
        hash((entry.url, time, entry.digest)) for index in indexes for time, entry in entries(index)
    )


def _write_version(
    writer: WarcWriter,
    archive: Archive,
    holding: Holding,
    version: Version,
    folder: Path,
    known: frozenset[int],
) -> WarcExtent | None:
    exchange = holding.exchanges.get(version.capture)
    hops = _hops(exchange, holding.resource.url, version)
    moment = timestamp(warc_date(version.captured_at))
    if hash((hops[-1].url, moment, f"sha256:{version.sha256}")) in known:
        return None
    content = Content(holding.resource, version, archive.reader)
    path = content.spooled(folder) if version.byte_size > IN_MEMORY else None
    body = Body(
        size=version.byte_size,
        sha256=version.sha256,
        data=None if path else content.bytes(),
        path=str(path) if path else None,
    )
    capture = Capture(
        url=holding.resource.url,
        started_at=version.captured_at,
        ended_at=exchange.ended_at if exchange else version.captured_at,
        outcome=Outcome.OK,
        reason="",
        hops=hops,
        body=body,
    )
    try:
        return writer.write_answers(capture, _fields(holding, version, exchange))
    finally:
        if path:
            path.unlink()


def _hops(exchange: Exchange | None, url: str, version: Version) -> tuple[Hop, ...]:
    """The answers as far as they are kept: of the headers, the type and where a redirect led."""
    if exchange is None or not exchange.hops:
        exchanged = (HopRecord(url=url, status=200, address=""),)
    else:
        exchanged = exchange.hops
    *before, last = exchanged
    told = (("Content-Type", version.told_type),) if version.told_type else ()
    redirects = [
        Hop(url=hop.url, status=hop.status, headers=_location(hop), address=hop.address, location=hop.location)
        for hop in before
    ]
    return (*redirects, Hop(url=last.url, status=last.status, headers=told, address=last.address))


def _location(hop: HopRecord) -> tuple[tuple[str, str], ...]:
    return (("Content-Length", "0"), *([("Location", hop.location)] if hop.location else []))


def _fields(holding: Holding, version: Version, exchange: Exchange | None) -> Fields:
    return [
        ("versionId", version.id),
        ("versionNumber", str(version.number)),
        ("foundType", version.media_type or ""),
        ("requestedUrl", holding.resource.url),
        ("captureId", version.capture),
        ("fetchTimeMs", str(exchange.ended_at - exchange.started_at) if exchange else ""),
        ("http-header-user-agent", exchange.agent if exchange else ""),
    ]
