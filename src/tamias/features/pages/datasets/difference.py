"""The page that compares two versions of a resource."""

import msgspec
from starlette.requests import Request

from tamias.archive.moments import rfc3339, shown
from tamias.archive.reader.library import NotArchived
from tamias.archive.tombstones import check_forgotten
from tamias.archive.versions.resources import read_versions
from tamias.features.pages.html.page import CsvTable, HtmlPage
from tamias.features.pages.queries import resource_named
from tamias.features.service.files.comparison import compare, turns
from tamias.features.service.http.params import number
from tamias.features.service.http.secret import may_read_all
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import check_open
from tamias.features.service.service import Service
from tamias.model.diff import Diff
from tamias.model.resource import Resource, Version

MOST_CHOICE = 200
_MOST_NUMBER = 999_999_999


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a comparison."""

    id: str
    url: str
    title: str | None
    a: int
    b: int
    newest: int
    versions: list[tuple[int, str, int]]
    """Number, time and size of those that can be compared, newest first."""
    noindex: bool
    diff: Diff


async def difference(request: Request, service: Service) -> Difference:
    """Compare the versions with the numbers `a` and `b`; without them, the last two."""
    named = request.path_params["id"]
    a, b = (number(request, name, 0, 1, _MOST_NUMBER) for name in "ab")
    owner = may_read_all(request)
    async with turns:
        return await service.pool.run(
            lambda db: _difference(db, resource_named(db, named), a, b, owner=owner)
        )


def _difference(db: ServiceSession, resource: Resource, a: int, b: int, *, owner: bool) -> Difference:
    versions = {each.number: each for each in read_versions(db.session, [resource.id])[resource.id]}
    newest = max(versions, default=0)
    b = b or newest
    a = a or max((each for each in versions if each < b), default=0)
    for wanted in (a, b):
        if wanted not in versions:
            check_forgotten(db.session, resource.id, wanted)
            raise NotArchived(f"{resource.url} has no version {wanted}; the newest is {newest}")
    said = check_open(db, [versions[each] for each in (a, b)], owner=owner)
    return shown(
        Difference,
        resource,
        a=a,
        b=b,
        newest=newest,
        versions=_choice(list(versions.values()), {a, b}),
        noindex=any(each.noindex for each in said.values()),
        diff=compare(db, resource, versions[a], versions[b]),
    )


def _choice(versions: list[Version], wanted: set[int]) -> list[tuple[int, str, int]]:
    listed = [each for each in versions if each.number in wanted or each.number > len(versions) - MOST_CHOICE]
    return [(each.number, rfc3339(each.captured_at), each.byte_size) for each in reversed(listed)]


def _table(view: Difference) -> CsvTable:
    rows = [(each.what.value, each.where, each.old, each.new) for each in view.diff.changes]
    return CsvTable(("what", "where", "old", "new"), rows)


PAGE = HtmlPage(
    path="/dataset/{id}/diff",
    template="datasets/difference.html",
    view=difference,
    data="/dataset/{id}/diff.json",
    table=_table,
)
