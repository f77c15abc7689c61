"""Join candidates: columns of the archive's tables whose values are among those of another's."""

import re

from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.catalogue.joins import JoinCandidate, read_joins
from tamias.serve.http.endpoints import PAGED, URL, Endpoint, Parameter, ResponseSpec
from tamias.serve.http.params import cursor, limit, parameter
from tamias.serve.http.responses import ListPage, page_answer
from tamias.serve.service import Service

_SKIP = re.compile(r"[0-9]{1,9}")


async def listing(request: Request, service: Service) -> Response:
    """All, or those of one resource."""
    most, after, named = limit(request), cursor(request, _SKIP), parameter(request, "url")
    resource = (await service.histories.find(named)).resource.id if named else None
    skip = int(after[0]) if after else 0
    items = await service.pool.run(lambda db: read_joins(db.session, resource, skip=skip, limit=most))
    return page_answer(request, items, str(skip + most) if len(items) == most else None)


ENDPOINTS = [
    Endpoint(
        path="/api/v1/joins",
        handle=listing,
        about="Join candidates: columns whose values are contained in another, best first",
        parameters=(Parameter("url", "only those of this resource, on either side", URL), *PAGED),
        answers={200: ResponseSpec("Candidates", ListPage[JoinCandidate])},
    )
]
