"""The hosts of the archive, by name, with how much each has."""

import re

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.serve.http.endpoints import PAGED, Endpoint, ResponseSpec
from tamias.serve.http.params import base_of, cursor, limit
from tamias.serve.http.responses import ListPage, page_answer
from tamias.serve.service import Service

_NAME = re.compile(r".{1,300}")


class HostDescription(msgspec.Struct, frozen=True):
    """A host."""

    host: str
    datasets: int
    resources: str
    """Where its resources are listed."""


async def listing(request: Request, service: Service) -> Response:
    """All hosts."""
    most, after, base = limit(request), cursor(request, _NAME), base_of(request)
    asked = {"after": after[0] if after else "", "limit": most}
    rows = await service.pool.run(lambda db: db.rows("hosts", asked))
    items = [HostDescription(host, n, f"{base}/api/v1/resources?host={host}") for host, n in rows]
    return page_answer(request, items, items[-1].host if len(items) == most else None)


ENDPOINTS = [
    Endpoint(
        path="/api/v1/hosts",
        handle=listing,
        about="The hosts of the archive, by name",
        parameters=PAGED,
        answers={200: ResponseSpec("Hosts", ListPage[HostDescription])},
    )
]
