"""The catalogue as one `data.json` (DCAT-US 1.1 or 3), sent while it is written."""

from collections import defaultdict
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.features.dcat.terms import CatalogueBases, bases_of
from tamias.features.published.catalogue import catalogue_page, last_page, portal_page
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.dataset import Agent, Dataset
from tamias.model.finding import SourceRecord
from tamias.model.url import host

_SCHEMA: Final = "https://project-open-data.cio.gov/v1.1/schema"
_JSON: Final = "application/json"
_HEAD: Final = {"@context": f"{_SCHEMA}/catalog.jsonld", "@type": "dcat:Catalog", "conformsTo": _SCHEMA}
_VERSIONS: Final = ("1.1", "3")


ENDPOINTS = EndpointTable()


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
    page_of = partial(_page, bases, portal, version)
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


def _page(bases: CatalogueBases, portal: str | None, version: str, page: int, db: ServiceSession) -> _Page:
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
