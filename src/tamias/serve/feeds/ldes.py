"""The event stream (LDES): every version as a member, in pages that never change once they are full."""

from collections.abc import Iterator
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.catalogue import PREFIXES, CatalogueBases, catalogue_graph
from tamias.archive.catalogue.terms import address, media_type_iri, moment, text, typed, word
from tamias.crawl.catalogue.catalogue import bases_of
from tamias.database.sql import statements
from tamias.model.usage import refusal
from tamias.serve.events.log import latest_event
from tamias.serve.http.endpoints import FOR_TRAINING, Endpoint, Parameter, ResponseSpec
from tamias.serve.http.params import number
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.secret import may_read_all
from tamias.serve.published.serialisation import MEDIA_TYPES, rdf_answer, wanted_form
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.replay.usage import feed_words, usages
from tamias.serve.service import Service

EVENTS_A_PAGE: Final = 200
MOST_PAGE: Final = 100_000_000
_SQL = statements("tamias.serve.feeds", "feeds.sql")
_TREE: Final = "https://w3id.org/tree#"
_LDES: Final = "https://w3id.org/ldes#"
_TYPE: Final = NamedNode(PREFIXES["rdf"] + "type")
_GRAPH: Final = catalogue_graph()
Row = tuple[Any, ...]


async def stream(request: Request, service: Service) -> Response:
    """One page. The first one is where a client begins."""
    page, bases = number(request, "page", 1, 1, MOST_PAGE), bases_of(service.settings.serve)
    withheld = feed_words(request, search=False)
    latest, rows = await service.pool.run(lambda db: _read(db, page, withheld))
    full = latest >= page * EVENTS_A_PAGE
    quads = [*_about(bases, page, rows, full=full)]
    for row in rows:
        quads += _member(row, bases)
    kept = "public" if not may_read_all(request) else "private"
    headers = {"Cache-Control": f"{kept}, max-age=604800, immutable"} if full else {}
    return await rdf_answer(request, quads, wanted_form(request) or "ttl", headers)


def _read(db: ServiceSession, page: int, withheld: tuple[str, ...]) -> tuple[int, list[Row]]:
    latest = latest_event(db.session)
    after = (page - 1) * EVENTS_A_PAGE
    if page > 1 and after > latest:
        raise HttpProblem(404, f"the event stream has no page {page}; it has {latest // EVENTS_A_PAGE + 1}")
    rows = db.session.fetch_all(_SQL["members"], {"after": after, "until": after + EVENTS_A_PAGE})
    said = usages(db, [row[-1] for row in rows])
    return latest, [row for row in rows if refusal(said[row[-1]].verdict, withheld) is None]


def _about(bases: CatalogueBases, page: int, rows: list[Row], *, full: bool) -> Iterator[Quad]:
    """The stream, this page of it, and the page that follows."""
    whole, here = NamedNode(f"{bases.service}/ldes#stream"), _page(bases, page)
    yield Quad(whole, _TYPE, NamedNode(_LDES + "EventStream"), _GRAPH)
    yield Quad(whole, NamedNode(_LDES + "timestampPath"), word("dct:issued"), _GRAPH)
    yield Quad(whole, NamedNode(_LDES + "versionOfPath"), word("dcat:isVersionOf"), _GRAPH)
    yield Quad(whole, word("dct:title"), Literal(f"{bases.title}: every version"), _GRAPH)
    yield Quad(whole, NamedNode(_TREE + "view"), _page(bases, 1), _GRAPH)
    yield Quad(here, _TYPE, NamedNode(_TREE + "Node"), _GRAPH)
    for row in rows:
        yield Quad(whole, NamedNode(_TREE + "member"), bases.version(row[2], row[3]), _GRAPH)
    if full:
        # A plain relation: members come in the order in which they became known, not in that of their times.
        relation = NamedNode(f"{here.value}#next")
        yield Quad(here, NamedNode(_TREE + "relation"), relation, _GRAPH)
        yield Quad(relation, _TYPE, NamedNode(_TREE + "Relation"), _GRAPH)
        yield Quad(relation, NamedNode(_TREE + "node"), _page(bases, page + 1), _GRAPH)


def _member(row: Row, bases: CatalogueBases) -> Iterator[Quad]:
    """A version, by itself: what is told of it never changes."""
    _, at, resource, count, digest, size, media_type, url, title, _ = row
    node = bases.version(resource, count)
    form, checksum = NamedNode(node.value + "#distribution"), NamedNode(node.value + "#checksum")
    file = NamedNode(f"{bases.service}/api/v1/get/file/id/{resource}_{count}")
    told: list[tuple[NamedNode, str, NamedNode | Literal | None]] = [
        (node, "rdf:type", word("dcat:Dataset")),
        (node, "dcat:isVersionOf", bases.dataset(resource)),
        (node, "dcat:version", text(str(count))),
        (node, "dct:identifier", text(f"{resource}_{count}")),
        (node, "dct:title", text(f"{title or url}, version {count}")),
        (node, "dct:issued", moment(at)),
        (node, "dct:source", address(url)),
        (node, "dcat:distribution", form),
        (form, "rdf:type", word("dcat:Distribution")),
        (form, "dcat:downloadURL", file),
        (form, "dcat:accessURL", file),
        (form, "dcat:byteSize", typed(size, "nonNegativeInteger")),
        (form, "dcat:mediaType", media_type_iri(media_type)),
        (form, "spdx:checksum", checksum),
        (checksum, "rdf:type", word("spdx:Checksum")),
        (checksum, "spdx:algorithm", word("spdx:checksumAlgorithm_sha256")),
        (checksum, "spdx:checksumValue", typed(digest, "hexBinary")),
    ]
    for subject, predicate, value in told:
        if value is not None:
            yield Quad(subject, word(predicate), value, _GRAPH)


def _page(bases: CatalogueBases, page: int) -> NamedNode:
    return NamedNode(f"{bases.service}/ldes" + (f"?page={page}" if page > 1 else ""))


ENDPOINTS = [
    Endpoint(
        path="/ldes",
        handle=stream,
        about="Every version as a member of an event stream (LDES), oldest page first",
        parameters=(
            Parameter("page", "from 1 on", {"type": "integer", "minimum": 1, "maximum": MOST_PAGE}),
            FOR_TRAINING,
        ),
        answers={200: ResponseSpec("A page of the stream", media_types=tuple(MEDIA_TYPES.values()))},
    )
]
