"""What changed from one version of a resource to another."""

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request

from tamias.archive.forgetting.tombstones import check_forgotten
from tamias.archive.moments import rfc3339
from tamias.archive.reader.content import Content
from tamias.archive.reader.library import NotArchived
from tamias.archive.versions.resources import read_versions
from tamias.content.formats import type_with_charset
from tamias.model.resource import Resource, Version
from tamias.serve.http.params import number
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.secret import may_read_all
from tamias.serve.pages.html.page import HtmlPage
from tamias.serve.pages.html.tables import CsvTable
from tamias.serve.pages.queries import resource_named
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.replay.usage import check_open
from tamias.serve.service import Service

if TYPE_CHECKING:
    from tamias.archive.diffs import Diff

LARGEST = 64 << 20
"""Bytes of a version that is compared for a page; `tamias diff` takes any."""
MOST_CHOICE = 200
_HELD = 16 << 20
_AT_ONCE = 2
_MOST_NUMBER = 999_999_999
turns = asyncio.Semaphore(_AT_ONCE)
"""Comparing takes long: most sessions are left to those who only read."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    id: str
    url: str
    title: str | None
    a: int
    b: int
    newest: int
    versions: list[tuple[int, str, int]]
    """Number, time and size of those that can be compared, newest first."""
    noindex: bool
    diff: "Diff"


async def difference(request: Request, service: Service) -> Difference:
    """Of the versions with the numbers `a` and `b`; without them, of the last two."""
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
    return Difference(
        id=resource.id,
        url=resource.url,
        title=resource.title,
        a=a,
        b=b,
        newest=newest,
        versions=_choice(list(versions.values()), {a, b}),
        noindex=any(each.noindex for each in said.values()),
        diff=compared(db, resource, versions[a], versions[b]),
    )


def _choice(versions: list[Version], wanted: set[int]) -> list[tuple[int, str, int]]:
    told = [each for each in versions if each.number in wanted or each.number > len(versions) - MOST_CHOICE]
    return [(each.number, rfc3339(each.captured_at), each.byte_size) for each in reversed(told)]


def compared(db: ServiceSession, resource: Resource, old: Version, new: Version) -> "Diff":
    """What changed from one version to another. Raises `HttpProblem` where one is too large."""
    from tamias.archive.diffs import DiffLimits, diff

    if max(old.byte_size, new.byte_size) > LARGEST:
        raise HttpProblem(422, f"versions over {LARGEST} bytes are not compared here; use 'tamias diff'")
    limits = DiffLimits(read_bytes=LARGEST, held_bytes=_HELD, unpacked_bytes=LARGEST)
    with tempfile.TemporaryDirectory(prefix="tamias-diff-") as folder:
        was, now = (Content(resource, each, db.reader).spooled(Path(folder)) for each in (old, new))
        types = [type_with_charset(each.media_type, each.told_type) for each in (old, new)]
        return diff(was, now, types[1], old_type=types[0], limits=limits, base=resource.url)


def _table(view: Difference) -> CsvTable:
    told = [(each.what.value, each.where, each.old, each.new) for each in view.diff.changes]
    return CsvTable(("what", "where", "old", "new"), told)


PAGE = HtmlPage(
    path="/dataset/{id}/diff",
    template="datasets/difference.html",
    view=difference,
    data="/dataset/{id}/diff.json",
    table=_table,
)
