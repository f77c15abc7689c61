"""The event stream (LDES): every version as a member, in pages that never change once they are full."""

from collections.abc import Iterator
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from tamias.database.sql import statements
from tamias.features.dcat.terms import (
    PREFIXES,
    CatalogueBases,
    GraphBuilder,
    address,
    bases_of,
    catalogue_graph,
    media_type_iri,
    moment,
    text,
    typed,
)
from tamias.features.service.events.log import latest_event
from tamias.features.service.http.callers import may_read_all
from tamias.features.service.http.endpoints import FOR_TRAINING, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import number
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.http.rdf import MEDIA_TYPES, rdf_answer, wanted_form
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import bulk_words, usages, wants_training
from tamias.features.service.service import Service
from tamias.model.usage import refusal
from tamias.model.vocabulary import word

EVENTS_A_PAGE: Final = 200
MOST_PAGE: Final = 100_000_000
_SQL = statements("tamias.features.feeds", "feeds.sql")
_TREE: Final = "https://w3id.org/tree#"
_LDES: Final = "https://w3id.org/ldes#"
_TYPE: Final = NamedNode(PREFIXES["rdf"] + "type")
_GRAPH: Final = catalogue_graph()
Row = tuple[Any, ...]


ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    "/ldes",
    ResponseSpec("A page of the stream", media_types=tuple(MEDIA_TYPES.values())),
    Parameter("page", "from 1 on", {"type": "integer", "minimum": 1, "maximum": MOST_PAGE}),
    FOR_TRAINING,
)
async def stream(request: Request, service: Service) -> Response:
    """Return the versions as members of an event stream (LDES), oldest page first."""
    page, bases = number(request, "page", 1, 1, MOST_PAGE), bases_of(service.settings.serve)
    purpose = "for=training" if wants_training(request) else ""
    withheld = bulk_words(request)
    latest, rows = await service.pool.run(lambda db: _read(db, page, withheld))
    full = latest >= page * EVENTS_A_PAGE
    graph = GraphBuilder(_GRAPH)
    graph.quads += _about(bases, page, rows, purpose, full=full)
    for row in rows:
        _describe_member(graph, row, bases)
    scope = "private" if may_read_all(request) else "public"
    headers = {"Cache-Control": f"{scope}, max-age=604800, immutable"} if full else {}
    return await rdf_answer(request, graph.quads, wanted_form(request) or "ttl", headers)


def _read(db: ServiceSession, page: int, withheld: tuple[str, ...]) -> tuple[int, list[Row]]:
    latest = latest_event(db.session)
    after = (page - 1) * EVENTS_A_PAGE
    if page > 1 and after > latest:
        raise HttpProblem(404, f"the event stream has no page {page}; it has {latest // EVENTS_A_PAGE + 1}")
    rows = db.session.fetch_all(_SQL["members"], {"after": after, "until": after + EVENTS_A_PAGE})
    said = usages(db, [row[-1] for row in rows])
    return latest, [row for row in rows if refusal(said[row[-1]].verdict, withheld) is None]


def _about(bases: CatalogueBases, page: int, rows: list[Row], purpose: str, *, full: bool) -> Iterator[Quad]:
    """The stream, this page of it, and the page that follows, which leaves out what this one does."""
    whole, here = NamedNode(f"{bases.service}/ldes#stream"), _page(bases, page, purpose)
    yield Quad(whole, _TYPE, NamedNode(_LDES + "EventStream"), _GRAPH)
    yield Quad(whole, NamedNode(_LDES + "timestampPath"), word("dct:issued"), _GRAPH)
    yield Quad(whole, NamedNode(_LDES + "versionOfPath"), word("dcat:isVersionOf"), _GRAPH)
    yield Quad(whole, word("dct:title"), Literal(f"{bases.title}: every version"), _GRAPH)
    yield Quad(whole, NamedNode(_TREE + "view"), _page(bases, 1, purpose), _GRAPH)
    yield Quad(here, _TYPE, NamedNode(_TREE + "Node"), _GRAPH)
    for row in rows:
        yield Quad(whole, NamedNode(_TREE + "member"), bases.version(row[2], row[3]), _GRAPH)
    if full:
        # A plain relation: members come in the order in which they became known, not in that of their times.
        relation = NamedNode(f"{here.value}#next")
        yield Quad(here, NamedNode(_TREE + "relation"), relation, _GRAPH)
        yield Quad(relation, _TYPE, NamedNode(_TREE + "Relation"), _GRAPH)
        yield Quad(relation, NamedNode(_TREE + "node"), _page(bases, page + 1, purpose), _GRAPH)


def _describe_member(graph: GraphBuilder, row: Row, bases: CatalogueBases) -> None:
    """A version, by itself: what is told of it never changes."""
    _, at, resource, count, digest, size, media_type, url, title, _ = row
    node, file = bases.version(resource, count), f"{bases.service}/api/v1/get/file/id/{resource}_{count}"
    form, checksum = NamedNode(node.value + "#distribution"), NamedNode(node.value + "#checksum")
    graph.are([node], "dcat:Dataset")
    about = {
        "dcat:isVersionOf": bases.dataset(resource),
        "dcat:version": text(str(count)),
        "dct:identifier": text(f"{resource}_{count}"),
        "dct:title": text(f"{title or url}, version {count}"),
        "dct:issued": moment(at),
        "dct:source": address(url),
    }
    graph.each(node, about)
    graph.typed(node, "dcat:distribution", form, "dcat:Distribution")
    graph.each(form, {"dcat:downloadURL": NamedNode(file), "dcat:accessURL": NamedNode(file)})
    graph.add(form, "dcat:byteSize", typed(size, "nonNegativeInteger"))
    graph.add(form, "dcat:mediaType", media_type_iri(media_type))
    graph.typed(form, "spdx:checksum", checksum, "spdx:Checksum")
    graph.add(checksum, "spdx:algorithm", word("spdx:checksumAlgorithm_sha256"))
    graph.add(checksum, "spdx:checksumValue", typed(digest, "hexBinary"))


def _page(bases: CatalogueBases, page: int, purpose: str) -> NamedNode:
    query = "&".join(filter(None, (f"page={page}" if page > 1 else "", purpose)))
    return NamedNode(f"{bases.service}/ldes?{query}".rstrip("?"))
