"""The versions of one resource, oldest first, page by page."""

import re

from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.reader.descriptions import VersionDescription, describe_version
from tamias.serve.http.endpoints import ID, PAGED, URL, Endpoint, Parameter, ResponseSpec
from tamias.serve.http.params import base_of, cursor, limit, parameter
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.responses import Encoded, ListPage, encoded_page, send_page
from tamias.serve.queries.history import ResourceHistory
from tamias.serve.service import Service

_NUMBER = re.compile(r"[0-9]{1,9}")


async def listing(request: Request, service: Service) -> Response:
    """The history of a URL."""
    named = parameter(request, "url") or parameter(request, "id")
    if named is None:
        raise HttpProblem(400, "name a resource: ?url=URL or ?id=ID")
    most, after, base = limit(request), cursor(request, _NUMBER), base_of(request)
    found = await service.histories.find(named)
    seen = int(after[0]) if after else 0
    form = found.form(("versions", base, seen, most), lambda: _page(found, seen, most, base))
    return send_page(request, form)


def _page(found: ResourceHistory, seen: int, most: int, base: str) -> Encoded:
    later = [version for version in found.versions if version.number > seen]
    items = [describe_version(version, base) for version in later[:most]]
    return encoded_page(items, str(items[-1].number) if len(later) > most else None)


ENDPOINTS = [
    Endpoint(
        path="/api/v1/versions",
        handle=listing,
        about="The versions of a resource, oldest first",
        parameters=(
            Parameter("url", "the URL of the resource", URL),
            Parameter("id", "or its id", ID),
            *PAGED,
        ),
        answers={200: ResponseSpec("Versions", ListPage[VersionDescription])},
    )
]
