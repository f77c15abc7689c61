"""Snapshots of the corpus: which there are, and of each how to cite it; the landing page of a DOI."""

from typing import Any

from starlette.requests import Request

from tamias.features.pages.html.page import page, table_of
from tamias.features.service.http.exchange import base_of
from tamias.features.service.service import Service
from tamias.features.snapshots.endpoints import citable, named_snapshot
from tamias.features.snapshots.entries import SnapshotAbout
from tamias.features.snapshots.rows import list_snapshots

MOST_LICENCES = 200
_COLUMNS = (
    "name", "at", "title", "versions", "version_bytes", "graphs", "statements", "doi", "manifest",
)  # fmt: skip


@page("/snapshots", "snapshots.html", table=table_of("snapshots", *_COLUMNS))
async def snapshots(_request: Request, service: Service) -> dict[str, Any]:
    """Return all snapshots; there are few."""
    found = await service.pool.run(lambda db: list_snapshots(db.session))
    return {"snapshots": [each.about for each in found]}


@page(
    "/snapshot/{name}",
    "snapshot.html",
    table=table_of("licences", "source", "declared_by", "licence", "versions", "graphs"),
)
async def snapshot(request: Request, service: Service) -> dict[str, Any]:
    """The one that the path names, with the licences that cover most. Raises `NotArchived`."""
    found = citable(await named_snapshot(request, service))
    covered = sorted(found.licences, key=lambda each: -each.versions - each.graphs)
    return {
        "snapshot": found.snapshot,
        "citation": found.citation,
        "licences": covered[:MOST_LICENCES],
        "licence_count": len(covered),
        "json_ld": _json_ld(found.snapshot, found.citation, base_of(request)),
    }


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
