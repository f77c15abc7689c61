"""Links of a dataset: a linkset (RFC 9264), and in short a Link header."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.features.dcat.terms import bases_of
from tamias.features.service.http.params import base_of
from tamias.features.service.http.rdf import MEDIA_TYPES
from tamias.features.service.queries.history import ResourceHistory
from tamias.features.service.service import Service
from tamias.model.resource import Resource, Version

LINKSET = "application/linkset+json"
MOST_ITEMS = 1000
"""Versions that a linkset names, the newest; its TimeMap names all."""


def link_header(named: str, base: str) -> str:
    """Return the Link header of a dataset."""
    links = [f'<{base}/dataset/{named}/linkset>; rel="linkset"; type="{LINKSET}"']
    for ending, media_type in MEDIA_TYPES.items():
        links.append(f'<{base}/dataset/{named}.{ending}>; rel="describedby"; type="{media_type}"')
    links.append(
        f'<{base}/api/v1/changes.atom?dataset={named}>; rel="alternate"; type="application/atom+xml"'
    )
    return ", ".join(links)


def version_link_header(named: str, number: int, base: str) -> str:
    """The same of one version: its forms, its file, and the dataset that it is of."""
    here = f"{base}/dataset/{named}/{number}"
    links = [
        f'<{here}.{ending}>; rel="describedby"; type="{media_type}"'
        for ending, media_type in MEDIA_TYPES.items()
    ]
    links.append(f'<{base}/api/v1/get/file/id/{named}_{number}>; rel="item"')
    links.append(f'<{base}/dataset/{named}>; rel="collection"')
    return ", ".join(links)


async def linkset(request: Request, service: Service, named: str) -> Response:
    """The links of one dataset and of its versions."""
    found = await service.histories.find(named)
    iri, base = bases_of(service.settings.serve), base_of(request)
    contexts = [
        _of_version(found.resource, version, iri.version(named, version.number).value, base)
        for version in found.versions[-MOST_ITEMS:]
    ]
    whole = _of_dataset(found, iri.dataset(named).value, base)
    content = msgspec.json.encode({"linkset": [whole, *contexts]})
    return Response(content, headers={"Cache-Control": "no-cache"}, media_type=LINKSET)


def _of_dataset(found: ResourceHistory, anchor: str, base: str) -> dict[str, Any]:
    named, url = found.resource.id, found.resource.url
    links: dict[str, Any] = {
        "anchor": anchor,
        "type": [{"href": "https://schema.org/Dataset"}],
        "describedby": [
            {"href": f"{base}/dataset/{named}.{ending}", "type": media_type}
            for ending, media_type in MEDIA_TYPES.items()
        ],
        "original": [{"href": url}],
        "timegate": [{"href": f"{base}/timegate/{url}"}],
        "timemap": [{"href": f"{base}/timemap/link/{url}", "type": "application/link-format"}],
        "alternate": [
            {"href": f"{base}/dataset/{named}", "type": "text/html"},
            {"href": f"{base}/api/v1/get/dataset/{named}", "type": "application/json"},
            {"href": f"{base}/api/v1/changes.atom?dataset={named}", "type": "application/atom+xml"},
        ],
    }
    if found.versions:
        links["latest-version"] = [{"href": f"{base}/dataset/{named}/{found.versions[-1].number}"}]
        links["item"] = [_file(found.versions[-1], base)]
    return links


def _of_version(resource: Resource, version: Version, anchor: str, base: str) -> dict[str, Any]:
    return {
        "anchor": anchor,
        "item": [_file(version, base)],
        "collection": [{"href": f"{base}/dataset/{resource.id}"}],
    }


def _file(version: Version, base: str) -> dict[str, Any]:
    place = {"href": f"{base}/api/v1/get/file/id/{version.id}"}
    return place if version.media_type is None else {**place, "type": version.media_type}
