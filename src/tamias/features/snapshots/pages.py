"""Snapshots of the corpus: which there are, and of each how to cite it; the landing page of a DOI."""

from typing import Any

import msgspec
from starlette.requests import Request

from tamias.features.pages.html.page import HtmlPage, table_of
from tamias.features.service.http.exchange import base_of
from tamias.features.service.service import Service
from tamias.features.snapshots.endpoints import citable, named_snapshot
from tamias.features.snapshots.entries import SnapshotAbout
from tamias.features.snapshots.licences import DeclaredLicence
from tamias.features.snapshots.rows import list_snapshots

MOST_LICENCES = 200


class SnapshotList(msgspec.Struct, frozen=True):
    """The data of the list."""

    snapshots: list[SnapshotAbout]


class SnapshotPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page of a snapshot."""

    snapshot: SnapshotAbout
    citation: str
    licences: list[DeclaredLicence]
    """Those that cover most."""
    licence_count: int
    json_ld: dict[str, Any]


async def snapshots(_request: Request, service: Service) -> SnapshotList:
    """Return all snapshots; there are few."""
    found = await service.pool.run(lambda db: list_snapshots(db.session))
    return SnapshotList([each.about for each in found])


async def snapshot(request: Request, service: Service) -> SnapshotPage:
    """The one that the path names. Raises `NotArchived`."""
    found = citable(await named_snapshot(request, service))
    covered = sorted(found.licences, key=lambda each: -each.versions - each.graphs)
    return SnapshotPage(
        snapshot=found.snapshot,
        citation=found.citation,
        licences=covered[:MOST_LICENCES],
        licence_count=len(covered),
        json_ld=_json_ld(found.snapshot, found.citation, base_of(request)),
    )


def _json_ld(about: SnapshotAbout, citation: str, base: str) -> dict[str, Any]:
    """Describe a snapshot in the terms of schema.org."""
    properties = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "@id": f"https://doi.org/{about.doi}" if about.doi else f"{base}/snapshot/{about.name}",
        "name": about.title,
        "description": about.description,
        "url": f"{base}/snapshot/{about.name}",
        "version": about.name,
        "datePublished": about.at,
        "identifier": f"https://doi.org/{about.doi}" if about.doi else f"sha256:{about.manifest}",
        "creator": [{"@type": "Organization", "name": name} for name in about.creators],
        "publisher": {"@type": "Organization", "name": about.publisher},
        "license": about.licence,
        "creditText": citation,
        "size": f"{about.version_bytes} bytes",
    }
    return {name: value for name, value in properties.items() if value is not None}


LIST = HtmlPage(
    path="/snapshots",
    template="snapshots.html",
    view=snapshots,
    data="/snapshots.json",
    table=table_of(
        "snapshots",
        "name",
        "at",
        "title",
        "versions",
        "version_bytes",
        "graphs",
        "statements",
        "doi",
        "manifest",
    ),
)
PAGE = HtmlPage(
    path="/snapshot/{name}",
    template="snapshot.html",
    view=snapshot,
    data="/snapshot/{name}.json",
    table=table_of("licences", "source", "declared_by", "licence", "versions", "graphs"),
)
