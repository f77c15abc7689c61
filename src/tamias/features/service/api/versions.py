"""The versions of one resource, oldest first, page by page; and responses that are not versions."""

import re
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.reader.descriptions import VersionDescription, describe_suspect, describe_version
from tamias.archive.versions.resources import page_of_suspects
from tamias.archive.versions.same_content import same_content
from tamias.features.service.http.endpoints import ID, PAGED, URL, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.params import base_of, cursor, limit, parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.http.responses import Encoded, ListPage, encoded_page, page_answer, send_page
from tamias.features.service.queries.history import ResourceHistory
from tamias.features.service.service import Service
from tamias.model.item import NEVER

_NUMBER = re.compile(r"[0-9]{1,9}")
_SUSPECT = re.compile(r"([0-9]{1,18})-([0-9a-f]{24})")


ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    "/api/v1/versions",
    ResponseSpec("Versions", ListPage[VersionDescription]),
    Parameter("url", "the URL of the resource", URL),
    Parameter("id", "or its id", ID),
    Parameter(
        "suspicious",
        "1: responses that are stored but are not versions, of all resources unless one is named",
    ),
    Parameter("same_as", "1: each version with those of other resources that have the same content"),
    *PAGED,
)
async def listing(request: Request, service: Service) -> Response:
    """The versions of a resource, oldest first."""
    named = parameter(request, "url") or parameter(request, "id")
    if parameter(request, "suspicious") not in {None, "0"}:
        return await _suspicious(request, service, named)
    if named is None:
        raise HttpProblem(400, "name a resource: ?url=URL or ?id=ID")
    most, after, base = limit(request), cursor(request, _NUMBER), base_of(request)
    found = await service.histories.find(named)
    seen = int(after[0]) if after else 0
    if parameter(request, "same_as") not in {None, "0"}:
        return await _with_same(request, service, found, seen)
    form = found.form(("versions", base, seen, most), lambda: _page(found, seen, most, base))
    return send_page(request, form)


async def _with_same(request: Request, service: Service, found: ResourceHistory, seen: int) -> Response:
    """The same, with the versions of others that have the same content: these change without a visit here."""
    most, base = limit(request), base_of(request)
    later = [version for version in found.versions if version.number > seen]
    same = await service.pool.run(lambda db: same_content(db.session, later[:most]))
    items = [describe_version(version, base, same.get(version.id, ())) for version in later[:most]]
    return page_answer(request, items, str(items[-1].number) if len(later) > most else None)


async def _suspicious(request: Request, service: Service, named: str | None) -> Response:
    """Suspicious responses of a resource, or of all, the newest first."""
    most, after = limit(request), cursor(request, _SUSPECT)
    resource = None if named is None else (await service.histories.find(named)).resource.id
    before = (int(after[1]), after[2]) if after else (NEVER, "")
    read = partial(page_of_suspects, resource=resource, limit=most + 1, before=before)
    found = await service.pool.run(lambda db: read(db.session))
    last = found[most - 1] if len(found) > most else None
    items = [describe_suspect(each) for each in found[:most]]
    return page_answer(request, items, f"{last.seen_at}-{last.resource}" if last else None)


def _page(found: ResourceHistory, seen: int, most: int, base: str) -> Encoded:
    later = [version for version in found.versions if version.number > seen]
    items = [describe_version(version, base) for version in later[:most]]
    return encoded_page(items, str(items[-1].number) if len(later) > most else None)
