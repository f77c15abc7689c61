"""Statements of the catalogue on a dataset, a version or a page of datasets, and links to each."""

import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec
from pyoxigraph import NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.reader.library import NotArchived
from tamias.archive.tombstones import check_forgotten
from tamias.archive.versions.resources import read_resources, read_versions
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.dcat.datasets.authority import licence_iri
from tamias.features.dcat.resource import resource_quads
from tamias.features.dcat.stream import archive_quads, quads_of_resources
from tamias.features.dcat.terms import (
    CatalogueBases,
    GraphBuilder,
    address,
    bases_of,
    catalogue_graph,
    moment,
    text,
)
from tamias.features.service.http.exchange import base_of
from tamias.features.service.http.rdf import MEDIA_TYPES
from tamias.features.service.queries.history import ResourceHistory
from tamias.features.service.service import Service
from tamias.model.resource import Resource, Version
from tamias.model.vocabulary import word

SQL = statements("tamias.features.published", "published.sql")
_TYPE: Final = word("rdf:type")
MOST_VERSIONS: Final = 1000
"""That a dataset's graph describes, the newest; its TimeMap names all."""


def dataset_graph(session: Session, resource: Resource, bases: CatalogueBases) -> list[Quad]:
    """Return the statements on a resource and its newest versions."""
    quads = quads_of_resources(session, [resource.id], bases)[resource.id]
    oldest = resource.versions - MOST_VERSIONS
    if oldest <= 0:
        return quads
    return [quad for quad in quads if _number(quad, resource.id) not in range(1, oldest + 1)]


def version_graph(session: Session, resource: Resource, number: int, bases: CatalogueBases) -> list[Quad]:
    """Return the statements on a version, its file and tables. Raises `NotArchived`."""
    quads = quads_of_resources(session, [resource.id], bases)[resource.id]
    found = [quad for quad in quads if _number(quad, resource.id) == number]
    if not found:
        check_forgotten(session, resource.id, number)
        raise NotArchived(f"{resource.url} has no version {number}; it has {resource.versions}")
    return found


def catalogue_graphs(session: Session, names: Sequence[str], bases: CatalogueBases) -> list[Quad]:
    """The catalogue with some of its datasets, each with the file of its current version.

    Versions are not described here: harvesters take every `dcat:Dataset` of a page for a dataset of its own.
    """
    versions = read_versions(session, names)
    found = archive_graph(bases)
    for resource in read_resources(session, names):
        found += _brief(resource, versions[resource.id], bases)
    return found


def archive_graph(bases: CatalogueBases) -> list[Quad]:
    """The archive itself: its title and publisher."""
    return [quad for quad in archive_quads(bases) if _is_under(quad, bases.catalogue())]


def _brief(resource: Resource, versions: Sequence[Version], bases: CatalogueBases) -> list[Quad]:
    node = bases.dataset(resource.id)
    current = bases.version(resource.id, versions[-1].number) if versions else None
    graph = GraphBuilder(catalogue_graph(resource.id))
    graph.add(node, "dct:issued", moment(versions[0].captured_at) if versions else None)
    if current is not None:
        graph.add(node, "dcat:version", text(str(versions[-1].number)))
        graph.add(node, "dcat:distribution", NamedNode(current.value + "#distribution"))
    made = resource_quads(resource, versions[-1:], bases=bases)
    left_out = {(node, word("dct:issued")), (node, word("dcat:hasVersion"))}
    shown = [
        quad
        for quad in made
        if quad.subject != current
        and (quad.subject, quad.predicate) not in left_out
        and (quad.predicate == _TYPE or _is_under(quad, node) or _is_under(quad, bases.catalogue()))
    ]
    return shown + graph.quads


def _is_under(quad: Quad, node: NamedNode) -> bool:
    """Return whether a statement is about a node, a part or a version of it."""
    name = quad.subject.value if isinstance(quad.subject, NamedNode) else ""
    return name == node.value or name.startswith((node.value + "#", node.value + "/"))


def _number(quad: Quad, resource: str) -> int | None:
    """Return the number of the version that a statement is about, by the IRI of it or of its file."""
    name = quad.subject.value if isinstance(quad.subject, NamedNode) else ""
    _, found, rest = name.partition(f"/{resource}")
    digits = rest[1:].partition("#")[0]
    return int(digits) if found and rest[:1] in ("/", "_") and digits.isdecimal() else None


LINKSET = "application/linkset+json"
MOST_ITEMS = 1000
"""Versions that a linkset names, the newest; its TimeMap names all."""


_SIGNPOSTS: Final = (
    "cite-as", "type", "license", "linkset", "describedby", "item", "collection", "alternate"
)  # fmt: skip
_ID: Final = re.compile(r"[0-9a-f]{24}")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
_UNSAFE: Final = re.compile(r"[^!#$%&'()*+,./:;=?@\[\]_~A-Za-z0-9-]")


def named_in(request: Request) -> str:
    """The id in the path. Raises `NotArchived` for what is none."""
    named = str(request.path_params["id"])
    if not _ID.fullmatch(named):
        raise NotArchived(f"{named[:100]} is not in the archive")
    return named


def number_in(request: Request) -> int | None:
    """The number of a version in the path, if there is one. Raises `NotArchived` for what is none."""
    if "number" not in request.path_params:
        return None
    digits = str(request.path_params["number"])
    if not _NUMBER.fullmatch(digits):
        raise NotArchived(f"{named_in(request)} has no version {digits[:20]}")
    return int(digits)


async def link_header(request: Request, service: Service) -> str:
    """Return the Link header of a dataset, or of one version of it (Signposting)."""
    number, named = number_in(request), named_in(request)
    found, base = await service.histories.find(named), base_of(request)
    if number is None:
        links = _of_dataset(found, base, bases_of(service.settings.serve))
        links["linkset"] = [{"href": f"{base}/dataset/{named}/linkset", "type": LINKSET}]
        links["alternate"] = links["alternate"][-1:]
    else:
        place = f"{base}/dataset/{named}/{number}"
        version = next((each for each in found.versions if each.number == number), None)
        links = {"describedby": _forms(place)} | (
            _of_version(found.resource, version, base, bases_of(service.settings.serve)) if version else {}
        )
    return ", ".join(
        f'<{_UNSAFE.sub(lambda unsafe: quote(unsafe[0]), target["href"])}>; rel="{relation}"'
        + (f'; type="{target["type"]}"' if "type" in target else "")
        for relation in _SIGNPOSTS
        for target in links.get(relation, ())
    )


async def linkset(request: Request, service: Service) -> Response:
    """The links of one dataset and of its versions."""
    found = await service.histories.find(named_in(request))
    bases, base = bases_of(service.settings.serve), base_of(request)
    contexts = [_of_version(found.resource, version, base, bases) for version in found.versions[-MOST_ITEMS:]]
    whole = _of_dataset(found, base, bases)
    content = msgspec.json.encode({"linkset": [whole, *contexts]})
    return Response(content, headers={"Cache-Control": "no-cache"}, media_type=LINKSET)


def _of_dataset(found: ResourceHistory, base: str, bases: CatalogueBases) -> dict[str, Any]:
    named, url = found.resource.id, found.resource.url
    links: dict[str, Any] = {
        **_about(found.resource, bases.dataset(named).value),
        "describedby": _forms(f"{base}/dataset/{named}"),
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


def _of_version(resource: Resource, version: Version, base: str, bases: CatalogueBases) -> dict[str, Any]:
    return {
        **_about(resource, bases.version(resource.id, version.number).value),
        "item": [_file(version, base)],
        "collection": [{"href": f"{base}/dataset/{resource.id}"}],
    }


def _about(resource: Resource, anchor: str) -> dict[str, Any]:
    """Return what to cite, its type, and the licences that portals name of it."""
    licences = [address(licence_iri(each) or each) for each in resource.licences]
    named = {"license": [{"href": each.value} for each in licences if each is not None]}
    return {
        "anchor": anchor,
        "cite-as": [{"href": anchor}],
        "type": [{"href": "https://schema.org/AboutPage"}, {"href": "https://schema.org/Dataset"}],
        **(named if named["license"] else {}),
    }


def _forms(place: str) -> list[dict[str, str]]:
    return [{"href": f"{place}.{ending}", "type": kind} for ending, kind in MEDIA_TYPES.items()]


def _file(version: Version, base: str) -> dict[str, Any]:
    place = {"href": f"{base}/api/v1/get/file/id/{version.id}"}
    return place if version.media_type is None else {**place, "type": version.media_type}
