"""The beginning of a version as a person reads it: rows, statements or lines. Nothing of it is trusted."""

import tempfile
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from io import BytesIO
from itertools import islice
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import msgspec
from pyoxigraph import Literal, NamedNode, Quad, parse
from starlette.requests import Request

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.reader.content import Content
from tamias.archive.versions.resources import read_versions
from tamias.content.formats import Form, form_of, load_analyser, syntax_of
from tamias.features.archive.canonical.tables import found_table
from tamias.features.pages.html.page import CsvTable, page
from tamias.features.pages.queries import Record
from tamias.features.service.http.callers import may_read_all
from tamias.features.service.http.exchange import number
from tamias.features.service.queries.history import resource_named, version_numbered
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import check_open
from tamias.features.service.service import Service
from tamias.model.document import Document, Unreadable
from tamias.model.finding import Quads
from tamias.model.resource import Resource, Version

MOST_RAYS = 10
_LONGEST = 26
_WIDE, _HIGH = 215.0, 135.0
"""Half of the drawing's width and height, less the room for names."""


def star(quads: Iterable[Quad], subject: Any) -> Record:
    """Draw the first statements about a thing around it: each object where it stands, and its predicate."""
    about = list({(quad.predicate, quad.object): quad for quad in quads if quad.subject == subject}.values())
    rays = []
    for place, quad in enumerate(about[:MOST_RAYS]):
        # A quarter turn back: the first stands above. Half a place on: none is right beside the middle.
        angle = 2 * pi * (place + 0.5) / len(about[:MOST_RAYS]) - pi / 2
        at = {"x": round(_WIDE * cos(angle), 1), "y": round(_HIGH * sin(angle), 1)}
        literal = isinstance(quad.object, Literal)
        rays.append(
            {**at, "predicate": short(quad.predicate), "object": short(quad.object), "literal": literal}
        )
    return {"subject": short(subject), "rays": rays}


def short(term: Any) -> str:
    """A term as it fits beside a dot.

    >>> short(NamedNode("http://www.w3.org/2004/02/skos/core#prefLabel")), short(Literal("Wien"))
    ('prefLabel', 'Wien')
    """
    if isinstance(term, Literal):
        return _cut(term.value, _LONGEST)
    if not isinstance(term, NamedNode):
        return _cut(str(term), _LONGEST)
    tail = term.value.rstrip("/#").replace("#", "/").rpartition("/")[2]
    return _cut(tail or term.value, _LONGEST)


AT_ONCE = 1 << 20
"""Bytes of a version that is shown together with its dataset; of a larger one on request."""
LARGEST = 32 << 20
MOST_ROWS = 20
MOST_COLUMNS = 30
MOST_STATEMENTS = 40
MOST_LINES = 40
LONGEST_CELL = 200
_MOST_NUMBER = 999_999_999
_TERMS = ("subject", "predicate", "object")


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a file in one of three forms, or why there is nothing to show."""

    columns: list[str] = []
    rows: list[list[str]] = []
    statements: list[Record] = []
    """Of RDF, their terms as N-Triples writes them."""
    star: Record | None = None
    """The thing that most of them are about, with what is said of it."""
    lines: list[str] = []
    more: bool = False
    note: str | None = None


def _table(view: Record) -> CsvTable:
    part: Preview = view["preview"]
    if part.statements:
        return CsvTable(_TERMS, [list(each.values()) for each in part.statements])
    return CsvTable(part.columns or ["line"], part.rows or [[line] for line in part.lines])


@page("/dataset/{id}/preview", "datasets/preview.html", table=_table)
async def preview_page(request: Request, service: Service) -> Record:
    """Show the version with the number `version`; without it, the newest."""
    named, wanted = request.path_params["id"], number(request, "version", 0, 1, _MOST_NUMBER)
    owner = may_read_all(request)
    return await service.pool.run(lambda db: _page(db, resource_named(db, named), wanted, owner=owner))


def preview(db: ServiceSession, resource: Resource, version: Version) -> Preview:
    """The beginning of a version."""
    if version.byte_size > LARGEST:
        return Preview(note=f"larger than the {LARGEST >> 20} MiB that are shown here; download it")
    content = Content(resource, version, db.reader)
    form = form_of(version.media_type)
    try:
        if form is Form.ROWS:
            return _rows(content)
        if form is Form.STATEMENTS:
            return preview_of_statements(list(islice(_quads(content), MOST_STATEMENTS + 1)))
        if form in (Form.JSON, Form.JSON_LINES, Form.TEXT):
            lines = content.text().splitlines()
            shown = [_cut(line, 400) for line in lines[:MOST_LINES]]
            return Preview(lines=shown, more=len(lines) > MOST_LINES)
    except (Unreadable, SyntaxError, ValueError, BlobMissing, BlobDamaged) as error:
        return Preview(note=f"it cannot be shown: {error}")
    return Preview(note=f"there is no preview of {version.media_type or 'an unknown type'}; download it")


def small_preview(
    db: ServiceSession, resource: Resource, version: Version | None, withheld: Container[str]
) -> Preview | None:
    """The beginning of a version; None where there is none, or it is large or withheld."""
    if version is None or version.capture in withheld or version.byte_size > AT_ONCE:
        return None
    return preview(db, resource, version)


def _page(db: ServiceSession, resource: Resource, wanted: int, *, owner: bool) -> Record:
    versions = read_versions(db.session, [resource.id])[resource.id]
    version = version_numbered(db, resource, versions, wanted or (versions[-1].number if versions else 0))
    said = check_open(db, [version], owner=owner)
    return {
        "id": resource.id,
        "url": resource.url,
        "title": resource.title,
        "number": version.number,
        "noindex": any(each.noindex for each in said.values()),
        "preview": preview(db, resource, version),
    }


def _rows(content: Content) -> Preview:
    with tempfile.TemporaryDirectory(prefix="tamias-preview-") as folder:
        table = found_table(content.spooled(Path(folder)), LARGEST, content_type=content.text_type)
        found = list(islice(table.rows(), MOST_ROWS + 1))
    return Preview(
        columns=[_cut(name) for name in table.columns[:MOST_COLUMNS]],
        rows=[[_cut(cell) for cell in row[:MOST_COLUMNS]] for row in found[:MOST_ROWS]],
        more=len(found) > MOST_ROWS or table.width > MOST_COLUMNS,
    )


def preview_of_statements(quads: list[Quad], most: int = MOST_STATEMENTS) -> Preview:
    """Show the first statements, `most` at most."""
    return Preview(
        statements=[{name: _cut(str(getattr(quad, name))) for name in _TERMS} for quad in quads[:most]],
        # The thing that most of the statements are about is in the middle.
        star=star(quads, Counter(quad.subject for quad in quads).most_common(1)[0][0]) if quads else None,
        more=len(quads) > most,
    )


def _quads(content: Content) -> Iterator[Quad]:
    media_type, url = content.version.media_type or "", content.resource.url
    syntax = syntax_of(media_type)
    if syntax is not None:
        return parse(content.bytes(), format=syntax, base_iri=url, lenient=True)
    analyser = load_analyser(media_type)
    if analyser is None:
        return iter(())
    findings = analyser().analyse(Document(url=url, stream=BytesIO(content.bytes()), media_type=media_type))
    return (quad for finding in findings if isinstance(finding, Quads) for quad in finding.quads)


def _cut(text: str, most: int = LONGEST_CELL) -> str:
    return text if len(text) <= most else text[:most] + "…"
