"""The catalogue as one `data.json` (DCAT-US 1.1), sent while it is written."""

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.features.dcat.terms import CatalogueBases, bases_of
from tamias.features.published.catalogue import CataloguePage, catalogue_page, last_page
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.url import host

_SCHEMA: Final = "https://project-open-data.cio.gov/v1.1/schema"
_JSON: Final = "application/json"


ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    "/data.json",
    ResponseSpec("All datasets", media_types=(_JSON,)),
    Parameter("portal", "the URL of a portal: the datasets that it describes, by its stored records"),
)
async def data_json(request: Request, service: Service) -> Response:
    """The catalogue as a data.json (DCAT-US 1.1)."""
    bases, portal = bases_of(service.settings.serve), parameter(request, "portal")

    async def records(page: int) -> tuple[list[bytes], int]:
        return await service.pool.run(lambda db: _records(db, bases, portal, page))

    first, total = await records(1)

    async def pieces() -> AsyncIterator[bytes]:
        head = {"@context": f"{_SCHEMA}/catalog.jsonld", "@type": "dcat:Catalog", "conformsTo": _SCHEMA}
        yield msgspec.json.encode(head).removesuffix(b"}") + b',"dataset":[' + b",".join(first)
        for page in range(2, last_page(total) + 1):
            try:
                following, _ = await records(page)
            except HttpProblem:
                break  # Datasets were removed meanwhile.
            yield b"".join(b"," + each for each in following)
        yield b"]}"

    return StreamingResponse(pieces(), headers={"Cache-Control": "no-cache"}, media_type=_JSON)


def _records(
    db: ServiceSession, bases: CatalogueBases, portal: str | None, page: int
) -> tuple[list[bytes], int]:
    found = catalogue_page(db, bases, portal, page)
    publisher = bases.publisher if portal is None else host(portal) or portal
    return [msgspec.json.encode(each) for each in _pod_records(found, publisher)], found.total


def _pod_records(found: CataloguePage, publisher: str) -> list[dict[str, Any]]:
    # Only who asks for this loads the readers of DCAT.
    from tamias.features.dcat.datasets.from_dcat import datasets_in
    from tamias.features.published.pod_records import pod_record

    return [pod_record(each, publisher) for each in datasets_in(found.quads, found.catalogue.value)]
