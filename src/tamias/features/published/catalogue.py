"""The catalogue as DCAT-AP 3, page by page with Hydra's links, as one `data.json`, and the archive as a VoID
dataset.

`data.json` (DCAT-US 1.1 or 3) is sent while it is written.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlencode

import msgspec
from pyoxigraph import Literal, NamedNode, Quad
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from tamias.archive.sources.source_records import count_of_records, page_of_records, records_at
from tamias.features.dcat.terms import PREFIXES, CatalogueBases, GraphBuilder, bases_of, catalogue_graph
from tamias.features.published.graphs import (
    SQL,
    archive_graph,
    catalogue_graphs,
    dataset_graph,
    link_header,
    linkset,
    named_in,
    number_in,
    version_graph,
)
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec, path_parameter
from tamias.features.service.http.exchange import Answer, base_of, guarded_route, number, parameter, since
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.http.rdf import FORMS, MEDIA_TYPES, rdf_answer, wanted_form
from tamias.features.service.queries.history import resource_named
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.stats.figures import basic_figures
from tamias.model.dataset import Agent, Dataset
from tamias.model.finding import SourceRecord
from tamias.model.item import NEVER
from tamias.model.url import host

DATASETS_A_PAGE: Final = 100
MOST_PAGE: Final = 1_000_000
MOST_BYTES: Final = 64 << 20
"""Of what a portal says of its catalogue; a larger record is left out."""
_HYDRA: Final = "http://www.w3.org/ns/hydra/core#"
_TYPE: Final = NamedNode(PREFIXES["rdf"] + "type")
_VOCABULARIES: Final = ("dcat", "dct", "prov", "csvw", "dqv", "spdx")


class PortalPage(msgspec.Struct, frozen=True):
    """A page of the stored records of a portal, and what it says of its catalogue."""

    catalogue: str
    records: list[SourceRecord]
    total: int
    described: SourceRecord | None


class CataloguePage(msgspec.Struct, frozen=True):
    """A page of a catalogue."""

    catalogue: NamedNode
    quads: list[Quad]
    total: int


ENDPOINTS = EndpointTable()
_RDF = tuple(MEDIA_TYPES.values())


@ENDPOINTS.get(
    "/catalog.{form}",
    ResponseSpec("A page of the catalogue", media_types=_RDF),
    path_parameter("form", "the output format", {"type": "string", "enum": list(FORMS)}),
    Parameter("page", "from 1 on", {"type": "integer", "minimum": 1, "maximum": MOST_PAGE}),
    Parameter("modified_since", "only datasets with a version since this time: RFC 3339, or a day"),
    Parameter("portal", "the URL of a portal: the datasets that it describes, by its stored records"),
)
async def catalogue(request: Request, service: Service) -> Response:
    """The catalogue as DCAT-AP 3, a hundred datasets a page, with Hydra's links between pages."""
    ending = request.path_params["form"]
    if ending not in FORMS:
        raise HttpProblem(404, f"the catalogue is available as {', '.join(FORMS)}, not as {ending[:20]!r}")
    page, from_ = number(request, "page", 1, 1, MOST_PAGE), since(request, "modified_since")
    bases, portal = bases_of(service.settings.serve), parameter(request, "portal")
    found = await service.pool.run(lambda db: catalogue_page(db, bases, portal, page, from_))
    views = _views(request, ending, page, found.total)
    headers = {"Link": _links(views)} if "next" in views or "previous" in views else {}
    return await rdf_answer(request, [*found.quads, *_paging(views, found)], ending, headers)


@ENDPOINTS.get("/.well-known/void", ResponseSpec("Its description", media_types=_RDF))
async def void(request: Request, service: Service) -> Response:
    """The archive as a VoID dataset."""
    bases = bases_of(service.settings.serve)
    quads = await service.pool.run(lambda db: _void(db, bases))
    return await rdf_answer(request, quads, wanted_form(request) or "ttl")


async def _lead_on(request: Request) -> Response:
    """The IRI of the catalogue leads to its first page, or to the pages for people."""
    ending = wanted_form(request)
    place = "/" if ending is None else f"/catalog.{ending}"
    return RedirectResponse(place, 303, headers={"Vary": "Accept"})


def catalogue_page(
    db: ServiceSession, bases: CatalogueBases, portal: str | None, page: int, from_: int = 0
) -> CataloguePage:
    """A page of the archive's catalogue, or of what a portal describes. Raises `HttpProblem`."""
    if portal is None:
        return _page(db, bases, page, from_)
    found = portal_page(db, portal, page, from_)
    return CataloguePage(NamedNode(found.catalogue), list(_record_quads(found, page)), found.total)


def _page(db: ServiceSession, bases: CatalogueBases, page: int, from_: int) -> CataloguePage:
    values = {"since": from_, "start": (page - 1) * DATASETS_A_PAGE, "limit": DATASETS_A_PAGE}
    names = [row[0] for row in db.session.fetch_all(SQL["page_catalogue"], values)]
    total = _total(db, from_)
    if not names and page > 1:
        raise HttpProblem(404, f"the catalogue has no page {page}; it has {last_page(total)}")
    return CataloguePage(bases.catalogue(), catalogue_graphs(db.session, names, bases), total)


def portal_page(db: ServiceSession, portal: str, page: int, from_: int = 0) -> PortalPage:
    """Return what the harvests of a portal stored. Raises `HttpProblem`."""
    total = count_of_records(db.session, portal, from_)
    if not total and not (from_ and count_of_records(db.session, portal, 0)):
        raise HttpProblem(404, f"no records of {portal[:200]} are stored; `tamias list` names the portals")
    if page > last_page(total):
        raise HttpProblem(404, f"the catalogue has no page {page}; it has {last_page(total)}")
    start = (page - 1) * DATASETS_A_PAGE
    records = page_of_records(db.session, portal, start, DATASETS_A_PAGE, from_)
    named = records[0].catalogue if records else portal
    stored = records_at(db.session, portal, [f"{named}#catalogue"], NEVER, MOST_BYTES)
    return PortalPage(named, records, total, stored[0][0] if stored else None)


def _record_quads(found: PortalPage, page: int) -> Iterator[Quad]:
    """Yield DCAT-AP 3 again; what the portal says of its catalogue is on the first page."""
    # All harvesters are behind this import: a service that is never asked for records does not load them.
    from tamias.features.dcat.datasets.dcat import catalogue_quads
    from tamias.features.dcat.datasets.mapping import BAD, map_again

    if found.described is None:
        yield from catalogue_quads(found.catalogue, "", None, found.catalogue)
    whole = [found.described] if found.described is not None and page == 1 else []
    for record in [*whole, *found.records]:
        try:
            yield from map_again(record)
        except BAD:
            continue  # Written by an earlier version, by rules that are no more; `tamias stats` counts it.


def _total(db: ServiceSession, from_: int) -> int:
    if from_:
        return int(db.session.fetch_all(SQL["count_changed"], {"since": from_})[0][0])
    return basic_figures(db.session).datasets


def last_page(total: int) -> int:
    """The number of the last page of so many datasets."""
    return max(1, -(-total // DATASETS_A_PAGE))


def _views(request: Request, ending: str, page: int, total: int) -> dict[str, str]:
    """The addresses of this page and of those around it."""
    parameters = request.query_params
    filters = {name: parameters[name] for name in ("portal", "modified_since") if parameters.get(name)}
    pages = {"this": page, "first": 1, "last": last_page(total)}
    if page > 1:
        pages["previous"] = page - 1
    if page < last_page(total):
        pages["next"] = page + 1
    here = f"{base_of(request)}/catalog.{ending}"
    return {name: f"{here}?{urlencode({**filters, 'page': each})}" for name, each in pages.items()}


def _links(views: dict[str, str]) -> str:
    names = {"previous": "prev"}
    return ", ".join(f'<{views[each]}>; rel="{names.get(each, each)}"' for each in views if each != "this")


def _paging(views: dict[str, str], found: CataloguePage) -> list[Quad]:
    """Describe the pages in both forms of Hydra: ckanext-dcat follows only `hydra:PagedCollection`."""
    here, whole, graph = NamedNode(views["this"]), found.catalogue, catalogue_graph()
    total = Literal(found.total)
    statements: list[tuple[NamedNode, str, NamedNode | Literal]] = [
        (whole, "type", NamedNode(_HYDRA + "Collection")),
        (whole, "totalItems", total),
        (whole, "view", here),
        (here, "type", NamedNode(_HYDRA + "PartialCollectionView")),
        (here, "type", NamedNode(_HYDRA + "PagedCollection")),
        (here, "totalItems", total),
        (here, "itemsPerPage", Literal(DATASETS_A_PAGE)),
    ]
    for name, address in views.items():
        if name != "this":
            statements += [(here, name, NamedNode(address)), (here, f"{name}Page", NamedNode(address))]
    return [
        Quad(subject, _TYPE if name == "type" else NamedNode(_HYDRA + name), value, graph)
        for subject, name, value in statements
    ]


def _void(db: ServiceSession, bases: CatalogueBases) -> list[Quad]:
    graph, node = GraphBuilder(catalogue_graph()), NamedNode(f"{bases.service}/.well-known/void#archive")
    _, example = db.session.fetch_all(SQL["latest_change"])[0]
    graph.are([node], "void:Dataset")
    graph.each(
        node,
        {
            "dct:title": Literal(bases.title),
            "dct:publisher": NamedNode(bases.catalogue().value + "#publisher"),
            "void:sparqlEndpoint": NamedNode(f"{bases.service}/sparql"),
            "void:uriSpace": Literal(f"{bases.service}/dataset/"),
            "void:rootResource": bases.catalogue(),
            "void:entities": Literal(basic_figures(db.session).datasets),
            "void:exampleResource": None if example is None else bases.dataset(example),
        },
    )
    for name in _VOCABULARIES:
        graph.add(node, "void:vocabulary", NamedNode(PREFIXES[name]))
    for name in ("Turtle", "JSON-LD", "N-Triples", "RDF_XML"):
        graph.add(node, "void:feature", NamedNode(f"http://www.w3.org/ns/formats/{name}"))
    return graph.quads + archive_graph(bases)


_SCHEMA: Final = "https://project-open-data.cio.gov/v1.1/schema"
_JSON: Final = "application/json"
_HEAD: Final = {"@context": f"{_SCHEMA}/catalog.jsonld", "@type": "dcat:Catalog", "conformsTo": _SCHEMA}
_VERSIONS: Final = ("1.1", "3")


@ENDPOINTS.get(
    "/data.json",
    ResponseSpec("All datasets", media_types=(_JSON,)),
    Parameter("portal", "the URL of a portal: the datasets that it describes, by its stored records"),
    Parameter("version", "the version of DCAT-US, 1.1 if you name none", {"enum": list(_VERSIONS)}),
)
async def data_json(request: Request, service: Service) -> Response:
    """The catalogue as a data.json (DCAT-US 1.1 or 3)."""
    portal, version = parameter(request, "portal"), parameter(request, "version") or "1.1"
    if version not in _VERSIONS:
        raise HttpProblem(400, f"version is one of {' and '.join(_VERSIONS)}, not {version[:20]!r}")
    bases = bases_of(service.settings.serve)
    page_of = partial(_data_page, bases, portal, version)
    first = await service.pool.run(partial(page_of, 1))

    async def pages() -> AsyncIterator[list[Dataset]]:
        yield first.datasets
        for page in range(2, last_page(first.total) + 1):
            try:
                yield (await service.pool.run(partial(page_of, page))).datasets
            except HttpProblem:
                break  # Datasets were removed meanwhile.

    publisher = bases.publisher if portal is None else host(portal) or portal
    if version == "1.1":
        pieces = _first(pages(), publisher)
    else:
        contact = service.settings.fetch.contact
        email = contact.removeprefix("mailto:") if "@" in contact else f"postmaster@{host(bases.service)}"
        whole = first.whole or Dataset(
            iri=portal or bases.catalogue().value, record="catalogue", kind="dcat:Catalog",
            title=publisher if portal else bases.title,
        )  # fmt: skip
        pieces = _third(pages(), whole, publisher, Agent(name=bases.publisher, email=email))
    return StreamingResponse(pieces, headers={"Cache-Control": "no-cache"}, media_type=_JSON)


class _Page(msgspec.Struct):
    datasets: list[Dataset]
    total: int
    whole: Dataset | None = None
    """The catalogue, if a portal describes it."""


def _data_page(
    bases: CatalogueBases, portal: str | None, version: str, page: int, db: ServiceSession
) -> _Page:
    # Only who asks for this loads the readers of DCAT.
    from tamias.features.dcat.datasets.from_dcat import datasets_in

    if portal is None or version == "1.1":
        found = catalogue_page(db, bases, portal, page)
        return _Page(datasets_in(found.quads, found.catalogue.value), found.total)
    stored = portal_page(db, portal, page)
    datasets = list(filter(None, map(_dataset, stored.records)))
    return _Page(datasets, stored.total, _dataset(stored.described) if stored.described else None)


def _dataset(record: SourceRecord) -> Dataset | None:
    from tamias.features.dcat.datasets.mapping import BAD, dataset_again

    try:
        return dataset_again(record)
    except BAD:
        return None  # Written by an earlier version, by rules that are no more; `tamias stats` counts it.


async def _first(pages: AsyncIterator[list[Dataset]], publisher: str) -> AsyncIterator[bytes]:
    """Write version 1.1."""
    from tamias.features.published.pod_records import pod_record

    yield msgspec.json.encode(_HEAD).removesuffix(b"}") + b',"dataset":['
    comma = b""
    async for datasets in pages:
        if datasets:
            yield comma + b",".join(msgspec.json.encode(pod_record(each, publisher)) for each in datasets)
            comma = b","
    yield b"]}"


async def _third(
    pages: AsyncIterator[list[Dataset]], whole: Dataset, publisher: str, operator: Agent
) -> AsyncIterator[bytes]:
    """Write version 3; what a catalogue has beside its datasets comes at the end."""
    from tamias.features.published.us_records import holders_of, parts_of, us_contact, us_record

    head = us_record(whole, {"@type": "Organization", "name": publisher}, us_contact(operator))
    contacts, agent = head["contactPoint"], head["publisher"]
    holders, members = holders_of(whole), defaultdict[str, list[msgspec.Raw]](list)
    yield msgspec.json.encode(head).removesuffix(b"}") + b',"dataset":['
    comma = b""
    async for datasets in pages:
        records = []
        for each in datasets:
            record = msgspec.Raw(msgspec.json.encode(us_record(each, agent, contacts)))
            for holder in holders[each.iri]:
                members[holder.iri].append(record)
            if not any(holder.kind == "dcat:Catalog" for holder in holders[each.iri]):
                records.append(record)
        if records:
            yield comma + msgspec.json.encode(records)[1:-1]
            comma = b","
    rest = parts_of(whole, agent, contacts, members)
    yield b"]," + msgspec.json.encode(rest)[1:] if rest else b"]}"


DATASET = "/dataset/{id}"
VERSION = "/dataset/{id}/{number}"


def add_routes(service: Service, routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Return the routes of the service with those of datasets, whose pages are also available as RDF."""
    own: dict[str, Answer] = {
        f"{DATASET}/linkset": partial(linkset, service=service),
        **{
            f"{path}.{ending}": partial(_described, service=service, ending=ending)
            for path in (DATASET, VERSION)
            for ending in FORMS
        },
        **dict.fromkeys(("/catalogue", "/catalog"), _lead_on),
    }
    negotiated = [
        _negotiated(each, service) if isinstance(each, Route) and each.path in (DATASET, VERSION) else each
        for each in routes
    ]
    return [*(guarded_route(path, answer) for path, answer in own.items()), *negotiated]


def _negotiated(page: Route, service: Service) -> Route:
    shown: Answer = page.endpoint

    async def answer(request: Request) -> Response:
        ending = wanted_form(request)
        if ending is not None:
            return await _described(request, service, ending)
        response = await shown(request)
        response.headers.setdefault("Vary", "Accept")
        if response.status_code == 200:
            response.headers["Link"] = await link_header(request, service)
        return response

    return guarded_route(page.path, answer)


async def _described(request: Request, service: Service, ending: str) -> Response:
    """The statements on a dataset or a version."""
    named, bases = named_in(request), bases_of(service.settings.serve)
    version = number_in(request)

    def read(db: ServiceSession) -> list[Quad]:
        resource = resource_named(db, named)
        if version is None:
            return dataset_graph(db.session, resource, bases)
        return version_graph(db.session, resource, version, bases)

    quads = await service.pool.run(read)
    page = f"{base_of(request)}{request.url.path.removesuffix(f'.{ending}')}"
    links = f'<{page}>; rel="describes", {await link_header(request, service)}'
    return await rdf_answer(request, quads, ending, {"Link": links})
