"""A snapshot in the terms of DataCite 4.5 (JSON), and as a sentence to cite. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tamias.features.snapshots.entries import SnapshotAbout
from tamias.features.snapshots.licences import DeclaredLicence

SCHEMA: Final = "http://datacite.org/schema/kernel-4"
MOST_LISTED: Final = 100
"""Licences, and sources, that the metadata name; the summary of licences has all."""


def datacite(about: SnapshotAbout, licences: Sequence[DeclaredLicence]) -> bytes:
    """The metadata of a snapshot. The same snapshot always gives the same bytes."""
    metadata: dict[str, Any] = {
        "types": {"resourceTypeGeneral": "Dataset", "resourceType": "Snapshot of a Web archive"},
        "creators": [{"name": name} for name in about.creators],
        "titles": [{"title": about.title}],
        "publisher": {"name": about.publisher},
        "publicationYear": about.at[:4],
        "dates": [{"date": about.at, "dateType": "Created"}, {"date": about.at, "dateType": "Collected"}],
        "alternateIdentifiers": [
            {"alternateIdentifier": about.manifest, "alternateIdentifierType": "SHA-256 of the manifest"}
        ],
        "relatedIdentifiers": [
            {"relatedIdentifier": url, "relatedIdentifierType": "URL", "relationType": "IsDerivedFrom"}
            for url in _sources(about, licences)
        ],
        "sizes": [
            f"{about.versions} versions of {about.resources} resources",
            f"{about.version_bytes} bytes",
            f"{about.graphs} graphs with {about.statements} statements",
        ],
        "formats": ["application/n-quads", "BagIt 1.0", "RO-Crate 1.2"],
        "version": about.name,
        "rightsList": _rights(about, licences),
        "descriptions": [
            {"description": about.description, "descriptionType": "Abstract"},
            {"description": f"Made with {about.software}.", "descriptionType": "TechnicalInfo"},
        ],
        "schemaVersion": SCHEMA,
    }
    if about.doi:
        metadata["doi"] = about.doi
    return readable({name: value for name, value in metadata.items() if value != []})


def citation(about: SnapshotAbout) -> str:
    """Return how to cite it, in the order that DataCite recommends."""
    where = f"https://doi.org/{about.doi}" if about.doi else f"sha256:{about.manifest}"
    people = "; ".join(about.creators)
    return (
        f"{people} ({about.at[:4]}): {about.title}. Version {about.name}. {about.publisher}. Dataset. {where}"
    )


def readable(value: Any) -> bytes:
    """JSON for people, the same bytes for the same value."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _sources(about: SnapshotAbout, licences: Sequence[DeclaredLicence]) -> list[str]:
    portals = [row.source for row in licences if row.declared_by == "portal"]
    return list(dict.fromkeys([*about.urls, *about.portals, *portals]))[:MOST_LISTED]


def _rights(about: SnapshotAbout, licences: Sequence[DeclaredLicence]) -> list[dict[str, str]]:
    named = dict.fromkeys(each for each in [about.licence, *(row.licence for row in licences)] if each)
    return [
        {"rights": each, "rightsUri": each} if each.startswith(("http://", "https://")) else {"rights": each}
        for each in list(named)[:MOST_LISTED]
    ]
