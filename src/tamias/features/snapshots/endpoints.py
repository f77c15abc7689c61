"""Snapshots of the corpus: all, one with its licences, and its metadata for DataCite."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.features.service.http.endpoints import EndpointTable, ResponseSpec, path_parameter
from tamias.features.service.http.exchange import ListPage, json_answer, page_answer
from tamias.features.service.service import Service
from tamias.features.snapshots.datacite import citation
from tamias.features.snapshots.entries import SnapshotAbout
from tamias.features.snapshots.licences import DeclaredLicence
from tamias.features.snapshots.rows import CorpusSnapshot, find_snapshot, list_snapshots

DATACITE = "application/vnd.datacite.datacite+json"


class CitableSnapshot(msgspec.Struct, frozen=True):
    """A snapshot, how to cite it, and which licences its sources declare."""

    snapshot: SnapshotAbout
    citation: str
    licences: list[DeclaredLicence]
    datacite: dict[str, Any]


ENDPOINTS = EndpointTable()
_NAME = path_parameter("name", "the name of the snapshot")


@ENDPOINTS.get("/api/v1/snapshots", ResponseSpec("Snapshots", ListPage[SnapshotAbout]))
async def listing(request: Request, service: Service) -> Response:
    """The snapshots of the corpus, the oldest state first."""
    found = await service.pool.run(lambda db: list_snapshots(db.session))
    return page_answer(request, [each.about for each in found], None)


@ENDPOINTS.get("/api/v1/snapshots/{name}", ResponseSpec("The snapshot", CitableSnapshot), _NAME)
async def one(request: Request, service: Service) -> Response:
    """A snapshot: what is in it, how to cite it, the licences that its sources declare."""
    return json_answer(request, citable(await named_snapshot(request, service)))


@ENDPOINTS.get("/api/v1/snapshots/{name}/datacite", ResponseSpec("Metadata", media_types=(DATACITE,)), _NAME)
async def metadata(request: Request, service: Service) -> Response:
    """The metadata of a snapshot in JSON for DataCite."""
    return Response((await named_snapshot(request, service)).datacite, media_type=DATACITE)


async def named_snapshot(request: Request, service: Service) -> CorpusSnapshot:
    """The one that the path names. Raises `NotArchived`."""
    name = request.path_params["name"]
    return await service.pool.run(lambda db: find_snapshot(db.session, name))


def citable(found: CorpusSnapshot) -> CitableSnapshot:
    """A snapshot for whoever wants to cite it."""
    return CitableSnapshot(
        found.about,
        citation(found.about),
        msgspec.json.decode(found.licences, type=list[DeclaredLicence]),
        msgspec.json.decode(found.datacite),
    )
