"""Packs what the archive holds into bags and crates."""

from collections.abc import Sequence

import msgspec

from tamias import __version__
from tamias.archive.moments import rfc3339
from tamias.archive.reader.content import Content
from tamias.archive.reader.library import ArchiveReader, NotArchived
from tamias.features.archive.descriptions import describe
from tamias.features.exports.holdings import Holding, holdings
from tamias.features.exports.packages import Bag, Crate, Package, references
from tamias.features.exports.usage_gate import UsageGate
from tamias.model.resource import Version
from tamias.model.vocabulary import address_iri, sound_iri

SOFTWARE = f"Tamias {__version__}"

_TERMS = {
    "@id": "#terms",
    "name": "Terms of the publishers",
    "description": "Each file is as its publisher gave it out; its terms are those of its publisher.",
}


_EXCHANGE = "url final_url started_at ended_at status reason declared_type hops agent"
"""What is told of an attempt. Times are milliseconds UTC."""


def export_bag(archive: ArchiveReader, urls: Sequence[str], gate: UsageGate, package: Package) -> int:
    """Writes every version of the resources named, or of all, as one bag; returns how many there were."""
    bag = Bag(package)
    count = 0
    for holding in holdings(archive, urls, gate):
        for version in holding.versions:
            content = Content(holding.resource, version, archive.reader)
            bag.add(holding.path(version), content.pieces())
            count += 1
        bag.add(f"{holding.resource.id}/resource.json", [_describe_holding(holding)])
    _some(count, gate)
    bag.complete(
        [
            *(("External-Identifier", url) for url in urls),
            ("External-Description", f"{count} versions of resources of the Web, as they were captured"),
            ("Bag-Software-Agent", SOFTWARE),
        ]
    )
    return count


def export_crate(archive: ArchiveReader, urls: Sequence[str], gate: UsageGate, package: Package) -> int:
    """The same as one RO-Crate."""
    crate = Crate(package)
    crate.describe_software(__version__)
    count = 0
    titles = []
    for holding in holdings(archive, urls, gate):
        _add_to_crate(crate, archive, holding)
        count += len(holding.versions)
        titles.append(holding.title)
    _some(count, gate)
    name = titles[0] if len(titles) == 1 else f"{len(titles)} resources of the Web"
    crate.complete(
        name=f"{name}: {count} versions",
        description="Every version that the archive keeps, with the exact bytes as they were captured.",
        licence=_TERMS,
    )
    return count


def _some(count: int, gate: UsageGate) -> None:
    if not count and gate.left_out:
        raise NotArchived("every version is withheld by its server; --include-reserved exports them")
    if not count:
        raise NotArchived("the archive has no versions yet; 'tamias add' watches resources")


def _add_to_crate(crate: Crate, archive: ArchiveReader, holding: Holding) -> None:
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
    file = f"data/{resource.id}/resource.json"
    about = f"What is known of {holding.title}"
    crate.add_file(file, [_describe_holding(holding)], name=about, encodingFormat="application/json")
    crate.add_folder(
        f"data/{resource.id}/",
        [*paths, file],
        name=holding.title,
        identifier=resource.id,
        url=resource.url,
        license=[{"@id": each} if sound_iri(each, web=True) else each for each in resource.licences],
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


def _describe_holding(holding: Holding) -> bytes:
    """The description of a resource in a package: its dataset, the file of each version, and the attempts."""
    exchanges = [
        holding.exchanges[each.capture] for each in holding.versions if each.capture in holding.exchanges
    ]
    description = {
        "dataset": describe(holding.resource, holding.versions),
        "files": {version.id: holding.path(version) for version in holding.versions},
        "captures": [
            {"capture": each.id, **{name: getattr(each, name) for name in _EXCHANGE.split()}}
            for each in exchanges
        ],
    }
    return msgspec.json.format(msgspec.json.encode(description), indent=2)
