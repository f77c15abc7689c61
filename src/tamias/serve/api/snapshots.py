"""Snapshots of the corpus: all, one with its licences, and its metadata for DataCite."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.snapshots import CorpusSnapshot, SnapshotAbout, find_snapshot, list_snapshots
from tamias.crawl.verbs.snapshots.datacite import citation
from tamias.crawl.verbs.snapshots.licences import DeclaredLicence
from tamias.serve.http.endpoints import Endpoint, ResponseSpec, path_parameter
from tamias.serve.http.responses import ListPage, json_answer, page_answer
from tamias.serve.service import Service

DATACITE = "application/vnd.datacite.datacite+json"


class CitableSnapshot(msgspec.Struct, frozen=True):
    """A snapshot, how to cite it, and which licences its sources declare."""

    snapshot: SnapshotAbout
    citation: str
    licences: list[DeclaredLicence]
    datacite: dict[str, Any]


async def listing(request: Request, service: Service) -> Response:
    """All of them; there are few."""
    found = await service.pool.run(lambda db: list_snapshots(db.session))
    return page_answer(request, [each.about for each in found], None)


async def one(request: Request, service: Service) -> Response:
    """One by its name. Raises `NotArchived`."""
    return json_answer(request, citable(await named_snapshot(request, service)))


async def metadata(request: Request, service: Service) -> Response:
    """The metadata of one, as it is exported. Raises `NotArchived`."""
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


_NAME = path_parameter("name", "the name of the snapshot")
ENDPOINTS = [
    Endpoint(
        path="/api/v1/snapshots",
        handle=listing,
        about="The snapshots of the corpus, the oldest state first",
        answers={200: ResponseSpec("Snapshots", ListPage[SnapshotAbout])},
    ),
    Endpoint(
        path="/api/v1/snapshots/{name}",
        handle=one,
        about="A snapshot: what is in it, how to cite it, the licences that its sources declare",
        parameters=(_NAME,),
        answers={200: ResponseSpec("The snapshot", CitableSnapshot)},
    ),
    Endpoint(
        path="/api/v1/snapshots/{name}/datacite",
        handle=metadata,
        about="The metadata of a snapshot in JSON for DataCite",
        parameters=(_NAME,),
        answers={200: ResponseSpec("Metadata", media_types=(DATACITE,))},
    ),
]
