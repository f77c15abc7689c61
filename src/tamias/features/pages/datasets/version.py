"""Pages of one version, and of two that are compared."""

from functools import partial

from msgspec import to_builtins
from starlette.requests import Request

from tamias.archive.moments import rfc3339
from tamias.archive.versions.resources import read_versions
from tamias.features.archive.descriptions import describe_version
from tamias.features.dcat.profiles import read_profile
from tamias.features.pages.datasets.preview import small_preview
from tamias.features.pages.html.page import CsvTable, page
from tamias.features.pages.queries import Record
from tamias.features.service.files.comparison import COMPARED_AT_ONCE, compare, turns
from tamias.features.service.files.delivery import memento_paths
from tamias.features.service.http.callers import may_read_all
from tamias.features.service.http.exchange import number, version_number
from tamias.features.service.queries.history import resource_named, version_numbered
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import check_open, usages
from tamias.features.service.service import Service
from tamias.model.resource import Resource, Version
from tamias.plugins import parts


def _table(view: Record) -> CsvTable:
    """The columns of the tables in it."""
    names = ("name", "datatype", "nulls", "distinct", "min", "max")
    tables = view["profile"].tables if view["profile"] else ()
    rows = [
        [each.name, *(getattr(column, name) for name in names)] for each in tables for column in each.columns
    ]
    return CsvTable(("table", *names), rows)


@page("/dataset/{id}/{number}", "datasets/version.html", table=_table)
async def version_page(request: Request, service: Service) -> Record:
    """Return the page of the version with a number. Raises `NotArchived`."""
    named, text = request.path_params["id"], request.path_params["number"]
    owner = may_read_all(request)
    view, pair = await service.pool.run(partial(_version, named=named, number=text, owner=owner))
    if pair is None:
        return view
    async with turns:
        found = await service.pool.run(lambda db: compare(db, *pair))
    counts = {name: getattr(found, name) for name in ("added", "removed", "changed")}
    return {**view, "changed": {"kind": found.kind.value, **counts}}


def _version(
    db: ServiceSession, named: str, number: str, *, owner: bool
) -> tuple[Record, tuple[Resource, Version, Version] | None]:
    """The page without what changed, and the versions to compare where that is done at once."""
    resource = resource_named(db, named)
    versions = read_versions(db.session, [resource.id])[resource.id]
    place = versions.index(version_numbered(db, resource, versions, version_number(number)))
    version, around = versions[place], versions[max(0, place - 1) : place + 1]
    said = usages(db, [each.capture for each in around])
    withheld = {capture for capture, each in said.items() if each.noarchive and not owner}
    is_open = len(around) == 2 and not withheld and "diff" in parts("comparisons")
    dataset_page = f"/dataset/{resource.id}"
    view = {
        **to_builtins(describe_version(version, "")),
        "declared_type": version.declared_type,
        "dataset": resource.id,
        "url": resource.url,
        "title": resource.title,
        "newest": versions[-1].number,
        "grown": version.byte_size - around[0].byte_size if place else None,
        "changed": None,
        "compare": f"{dataset_page}/diff?a={version.number - 1}&b={version.number}" if is_open else None,
        "memento": memento_paths(resource.url, versions)[place],
        "withheld": version.capture in withheld,
        "usage": said[version.capture],
        "profile": read_profile(db.session, version.sha256),
        "preview": small_preview(db, resource, version, withheld),
    }
    at_once = is_open and max(version.byte_size, around[0].byte_size) <= COMPARED_AT_ONCE
    return view, (resource, around[0], version) if at_once else None


MOST_CHOICE = 200
_MOST_NUMBER = 999_999_999


def _table_of_changes(view: Record) -> CsvTable:
    rows = [(each.what.value, each.where, each.old, each.new) for each in view["diff"].changes]
    return CsvTable(("what", "where", "old", "new"), rows)


@page("/dataset/{id}/diff", "datasets/difference.html", table=_table_of_changes)
async def difference(request: Request, service: Service) -> Record:
    """Compare the versions with the numbers `a` and `b`; without them, the last two."""
    named = request.path_params["id"]
    a, b = (number(request, name, 0, 1, _MOST_NUMBER) for name in "ab")
    owner = may_read_all(request)
    async with turns:
        return await service.pool.run(
            lambda db: _difference(db, resource_named(db, named), a, b, owner=owner)
        )


def _difference(db: ServiceSession, resource: Resource, a: int, b: int, *, owner: bool) -> Record:
    versions = read_versions(db.session, [resource.id])[resource.id]
    newest = versions[-1].number if versions else 0
    b = b or newest
    a = a or max((each.number for each in versions if each.number < b), default=0)
    old, new = (version_numbered(db, resource, versions, each) for each in (a, b))
    said = check_open(db, [old, new], owner=owner)
    listed = [each for each in versions if each.number in {a, b} or each.number > len(versions) - MOST_CHOICE]
    return {
        "id": resource.id,
        "url": resource.url,
        "title": resource.title,
        "a": a,
        "b": b,
        "newest": newest,
        "versions": [(each.number, rfc3339(each.captured_at), each.byte_size) for each in reversed(listed)],
        "noindex": any(each.noindex for each in said.values()),
        "diff": compare(db, resource, old, new),
    }
