"""`/api/v1/changes.rdfp`: changes of RDF documents as RDF Patch, for stores that follow the archive.

The format: https://afs.github.io/rdf-delta/rdf-patch.html
"""

import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from pyoxigraph import RdfFormat, parse
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.reader.content import Content
from tamias.archive.versions.resources import read_resources, read_versions
from tamias.content.blank_nodes import Colours, canonical_nquads, divide_blank
from tamias.content.formats import is_rdf
from tamias.database.sql import statements
from tamias.features.archive.canonical.statements import BrokenDocument, recovered_lines, statement_lines
from tamias.features.service.events.log import latest_event
from tamias.features.service.files.comparison import LARGEST, turns
from tamias.features.service.http.endpoints import FOR_TRAINING, LIMIT, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import base_of, limit, number
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import bulk_words, usages
from tamias.features.service.service import Service
from tamias.model.diff import DiffLimits
from tamias.model.document import Unreadable
from tamias.model.resource import Resource, Version
from tamias.model.usage import refusal
from tamias.sinks.segments.naming import Naming

RDF_PATCH = "application/rdf-patch"


def rdf_patch(old: Path, new: Path, media_type: str, *, old_type: str, base: str | None = None) -> str:
    """Return a patch that turns the graph of one file into that of another. Raises `Unreadable`."""
    was, now = (stable_lines(path, kind, base) for path, kind in ((old, old_type), (new, media_type)))
    return "".join(transaction(sorted(was - now), sorted(now - was)))


def transaction(removed: Iterable[bytes], added: Iterable[bytes]) -> list[str]:
    """Return the lines of a transaction; none where nothing changed."""
    rows = [f"{sign} {line.decode()}\n" for sign, lines in (("D", removed), ("A", added)) for line in lines]
    return ["TX .\n", *rows, "TC .\n"] if rows else []


def stable_lines(path: Path, media_type: str, base: str | None) -> set[bytes]:
    """Return the statements as N-Quads; labels of blank nodes depend on nothing but the graph.

    So the statements that one patch adds are those that the next one removes. Raises `Unreadable`.
    """
    try:
        lines = statement_lines(path, media_type, DiffLimits().held_bytes, base)
    except BrokenDocument:
        lines = recovered_lines(path, media_type, base)
    ground, blank = divide_blank(lines)
    colours = Colours(blank).of
    names = {node: b"_:b" + colour.hex().encode() for node, colour in colours.items()}
    if len(set(names.values())) == len(names):
        return {*ground, *(each.written(names) for each in blank)}
    # There are nodes of which the same is said.
    text = b"".join(each.written({node: node for node in each.nodes}) + b"\n" for each in blank)
    return {*ground, *canonical_nquads(text).splitlines()}


PATH: Final = "/api/v1/changes.rdfp"
_MOST_EVENT = 1 << 62
_SQL = statements("tamias.features.rdf_patch", "patch.sql")

ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    PATH,
    ResponseSpec("A patch", media_types=(RDF_PATCH,)),
    Parameter("after", "the event that the last patch ended with", {"type": "integer", "minimum": 0}),
    LIMIT,
    FOR_TRAINING,
)
async def changes_as_patch(request: Request, service: Service) -> Response:
    """Changes of RDF documents, from the oldest to the newest, as one RDF Patch."""
    after, most, withheld = number(request, "after", 0, 0, _MOST_EVENT), limit(request), bulk_words(request)
    async with turns:
        last, text = await service.pool.run(partial(_patch, after=after, most=most, withheld=withheld))
    purpose = "&for=training" if request.query_params.get("for") == "training" else ""
    next_page = f"{base_of(request)}{PATH}?after={last}&limit={most}{purpose}"
    headers = {"Cache-Control": "no-cache", "Link": f'<{next_page}>; rel="next"'}
    return Response(f"H next <{next_page}> .\n{text}", media_type=RDF_PATCH, headers=headers)


def _patch(db: ServiceSession, after: int, most: int, withheld: tuple[str, ...]) -> tuple[int, str]:
    """Return the changes of so many new versions, and the event that the next patch begins after."""
    latest_event(db.session)
    rows = db.session.fetch_all(_SQL["versions_after"], {"after": after, "limit": most})
    names = list({row[1] for row in rows})
    resources = {each.id: each for each in read_resources(db.session, names)}
    versions = {each.id: each for found in read_versions(db.session, names).values() for each in found}
    said = usages(db, [each.capture for each in versions.values()])
    shown = {
        name: each for name, each in versions.items() if not refusal(said[each.capture].verdict, withheld)
    }
    text, size = [], 0
    for event, name, count, at, before, before_at in rows:
        after = event
        if f"{name}_{count}" not in versions or (before_at is not None and before_at > at):
            continue  # forgotten, or older than what is known
        pair = (shown.get(f"{name}_{each}") for each in (before, count))
        was, now = (_statements(db, resources[name], version) for version in pair)
        lines = transaction(sorted(was - now), sorted(now - was))
        text += lines
        size += sum(map(len, lines))
        if size > LARGEST:
            break
    return after, "".join(text)


def _statements(db: ServiceSession, resource: Resource, version: Version | None) -> set[bytes]:
    """Return the statements of a version in the graphs of its document; none where they cannot be read."""
    if version is None or not is_rdf(version.media_type) or version.byte_size > LARGEST:
        return set()
    content = Content(resource, version, db.reader)
    with (
        tempfile.TemporaryDirectory(prefix="tamias-patch-") as folder,
        suppress(Unreadable, BlobDamaged, BlobMissing),
    ):
        lines = stable_lines(content.spooled(Path(folder)), content.text_type or "", resource.url)
        quads = list(parse(b"\n".join(sorted(lines)), format=RdfFormat.N_QUADS))
        return set(Naming(resource.url, "", numbered=None).nquads(quads).splitlines())
    return set()
