"""The packages of CKAN as datasets: its own fields, extras, and the fields of DCAT-AP, in many languages."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tamias.features.dcat.datasets.location import box_polygon
from tamias.features.dcat.datasets.mapping import RecordMapping
from tamias.features.dcat.datasets.records import (
    by_language,
    checksum,
    decoded,
    one_text,
    properties,
    several,
    table,
    tables,
    text,
    translated,
)
from tamias.features.portals.fields import Fields, each_of, terms
from tamias.model.dataset import (
    Agent,
    AgentRole,
    DataService,
    Dataset,
    DcatProperty,
    Distribution,
    NamedPlace,
    Period,
    QualifiedRelation,
)
from tamias.model.vocabulary import sound_iri

SERVICES: Final = frozenset({"csw", "sparql", "wcs", "wfs", "wms", "wmts"})
_DIGESTS: Final = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
Context = Mapping[str, str]

_PROPERTIES: Final = {
    "version_notes": "adms:versionNotes",
    "alternate_identifier": "adms:identifier",
    "dcat_type": "dct:type",
    "documentation": "foaf:page",
    "is_referenced_by": "dct:isReferencedBy",
    "related_resource": "dct:relation",
    "source": "dct:relation",
    "is_version_of": "dct:isVersionOf",
    "has_version": "dcat:hasVersion",
    "applicable_legislation": "dcatap:applicableLegislation",
    "hvd_category": "dcatap:hvdCategory",
    "sample": "adms:sample",
    "temporal_resolution": "dcat:temporalResolution",
    "spatial_resolution_in_meters": "dcat:spatialResolutionInMeters",
}
"""Fields of a package that are one property of its dataset each."""
_RESOURCE_PROPERTIES: Final = {
    "documentation": "foaf:page",
    "applicable_legislation": "dcatap:applicableLegislation",
    "status": "adms:status",
    "availability": "dcatap:availability",
    "compress_format": "dcat:compressFormat",
    "package_format": "dcat:packageFormat",
    "temporal_resolution": "dcat:temporalResolution",
    "spatial_resolution_in_meters": "dcat:spatialResolutionInMeters",
}
_SERVICE_PROPERTIES: Final = {
    "description": "dct:description",
    "endpoint_description": "dcat:endpointDescription",
    "availability": "dcatap:availability",
    "license": "dct:license",
    "access_rights": "dct:accessRights",
    "conforms_to": "dct:conformsTo",
    "format": "dct:format",
    "identifier": "dct:identifier",
    "language": "dct:language",
    "landing_page": "dcat:landingPage",
    "keyword": "dcat:keyword",
    "applicable_legislation": "dcatap:applicableLegislation",
    "modified": "dct:modified",
}
_TEXTS: Final = {"title": "dct:title", "notes": "dct:description", "description": "dct:description"}
_RESOURCE_TEXTS: Final = {
    "name": "dct:title",
    "title": "dct:title",
    "description": "dct:description",
    "rights": "dct:rights",
}
_WORDS: Final = {
    **_TEXTS,
    "tags": "dcat:keyword",
    "keywords": "dcat:keyword",
    "provenance": "dct:provenance",
    "rights": "dct:rights",
    "version_notes": "adms:versionNotes",
}
"""Fields that may be written in several languages."""


class _Package(dict[str, Any]):
    """A package and its extras under one roof: schemas put the same thing here or there."""

    def __init__(self, own: dict[str, Any]) -> None:
        super().__init__()
        self.own = own
        extras = own.get("extras")
        pairs = {text(each.get("key")): each for each in tables(extras) if "key" in each}
        self._extras = pairs if isinstance(extras, list) else {}
        self._table = table(extras)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field as it stands; None for an empty one."""
        value = self.own.get(name) if name in self.own else None
        if value in (None, "", [], {}):
            value = table(self._extras.get(name)).get("value") or self._table.get(name)
        return value


def dataset_of(package: dict[str, Any], root: str) -> Dataset:
    """Read a package as a dataset. Raises `ValueError` for one without an identifier."""
    return _DATASET.of(_Package(package), root, page=f"{root}dataset/{_identifier(package)}")


def _identifier(package: dict[str, Any]) -> str | None:
    return text(package.get("id")) or text(package.get("name"))


def checksum_of(value: str | None, algorithm: str | None = None) -> tuple[str, str] | None:
    """Return the algorithm and digits of a hash, by its name, its prefix or its length.

    >>> checksum_of("sha1:" + "0" * 40)[0], checksum_of("f" * 32)[0], checksum_of("v2")
    ('sha1', 'md5', None)
    """
    match = re.fullmatch(r"(?:([A-Za-z0-9-]{2,12}):)?([0-9A-Fa-f]{32,128})", value or "")
    if match is None or not (match[1] or len(match[2]) in _DIGESTS):
        return None
    named = (algorithm or "").rpartition("checksumAlgorithm_")[2].lower().replace("-", "")
    return named or match[1] or _DIGESTS[len(match[2])], match[2]


def _series(package: _Package, context: Context) -> Iterator[DcatProperty]:
    """Yield the series that a dataset is in, and its neighbours there."""
    place = f"{context['root']}dataset/"
    yield from (DcatProperty("dcat:inSeries", place + key) for key in several(package.get("in_series")))
    for found in tables(decoded(package.get("series_navigation"))):
        for field, name in (("previous", "prev"), ("next", "next"), ("first", "first"), ("last", "last")):
            if key := text(table(found.get(field)).get("id")):
                yield DcatProperty(f"dcat:{name}", place + key)


_AGENT: Final[dict[str, Any]] = {
    "name": "name email", "email": "email", "iri": "uri>iri", "homepage": "url homepage", "kind": "type",
    "names": lambda said, _: translated(said, "name"), "identifier": "identifier",
}  # fmt: skip


def _role(field: str, term: str) -> Fields[AgentRole]:
    return Fields(AgentRole, field, property=f"={term}", agent=Fields(Agent, **_AGENT))


_ATTRIBUTED: Final = Fields(Agent, "agent", **_AGENT)


def _attributions(package: _Package, context: Context) -> Iterator[AgentRole]:
    for said in tables(decoded(package.get("qualified_attribution"))):
        for agent in _ATTRIBUTED.all(said, context):
            yield AgentRole(property="prov:qualifiedAttribution", agent=agent, role=text(said.get("role")))


def _office(package: _Package, context: Context) -> str | None:
    """Return the IRI of the organisation, unless the publisher has another name."""
    key = _identifier(table(package.get("organization")))
    named = one_text(package.get("publisher_name"))
    return f"{context['root']}organization/{key}" if key and not named else None


def _office_names(package: _Package, _: Context) -> tuple[tuple[str, str], ...]:
    named = one_text(package.get("publisher_name"))
    return () if named else translated(table(package.get("organization")), "title")


def _corners(package: _Package, _: Context) -> str | None:
    """Return the box of four fields that ckanext-spatial has."""
    names = ("bbox-west-long", "bbox-south-lat", "bbox-east-long", "bbox-north-lat")
    corners = [one_text(package.get(name)) for name in names]
    return box_polygon([corner for corner in corners if corner]) if all(corners) else None


def _place(path: str, uri: str, name: str, geom: str, bbox: Any, centroid: str) -> Fields[NamedPlace]:
    """Return the table of a place; an IRI that is none is one of its names."""

    def names(said: dict[str, Any], _: Context) -> list[tuple[str | None, str]]:
        value, iri = said.get(name), text(said.get(uri))
        one = one_text(value)
        found: list[tuple[str | None, str]] = [*by_language(value)] or ([(None, one)] if one else [])
        return [*found, (None, iri)] if iri and not sound_iri(iri) else found

    shapes = {"geometry": f"{geom}>shape {geom}", "bbox": bbox, "centroid": f"{centroid}>shape {centroid}"}
    return Fields(NamedPlace, path, iri=f"{uri}>iri", names=names, **shapes)


def _service(resource: dict[str, Any], _: Context) -> dict[str, Any]:
    """Return the fields of a service and of a checksum."""
    url = next(filter(None, (text(resource.get(name)) for name in _ADDRESSES)), "")
    kind = service_kind(text(resource.get("format")), url)
    digits = checksum_of(text(resource.get("hash")), text(resource.get("hash_algorithm")))
    service = {"service": url, "service_kind": kind} if kind else {}
    return checksum(*digits or (None, None)) | service


def _is_page(resource: dict[str, Any], _: Context) -> bool:
    """Return whether a resource has only the address of a page about it."""
    download, url, page = (text(resource.get(name)) for name in ("download_url", "url", "access_url"))
    return not download and (url or page) == page


_ADDRESSES: Final = ("url", "download_url", "access_url")
_RESOURCE: Final = Fields(
    Distribution, "resources", also=_service,
    url="download_url url access_url", access_url="access_url", access_only=_is_page,
    iri="uri>iri {page}/resource/{id}", title="name title", description="description", media_type="mimetype",
    format="format", licence="license", rights="rights", byte_size="size", issued="issued created",
    modified="modified last_modified", language="language>several", conforms_to="conforms_to>several",
    services=Fields(
        DataService, "access_services",
        endpoints="endpoint_url>listed", iri="uri>iri", title="title", serves="serves_dataset>listed",
        more=terms({"title": "dct:title"}, _SERVICE_PROPERTIES),
    ),
    more=terms(_RESOURCE_TEXTS, _RESOURCE_PROPERTIES),
)  # fmt: skip
_EMAIL: Final = "contact_email maintainer_email contact-email author_email"
_DATASET: Final = Fields(
    Dataset,
    iri="uri>iri {page}", record="id name", title="title title_translated name id",
    description="notes notes_translated description", identifiers="identifier|guid|id|name>one",
    keywords=each_of("tags", "display_name name >text"), themes="theme>iris",
    groups=each_of("groups", "title display_name name"), landing_page="url>web {root}dataset/{name|id}",
    licence="license_url>web license_title license_id", rights="rights", access_rights="access_rights",
    publisher=(
        Fields(Agent, "publisher", **_AGENT),
        Fields(
            Agent, name="publisher_name organization.title organization.name", names=_office_names,
            iri=("publisher_uri>iri", _office), email="publisher_email", homepage="publisher_url",
            kind="publisher_type",
        ),
    ),
    creator=Fields(
        Agent, name="author creator_name author_email creator_email", email="author_email creator_email"
    ),
    contact=Fields(
        Agent, name=f"contact_name maintainer author {_EMAIL}", email=_EMAIL, iri="contact_uri>iri"
    ),
    issued="issued metadata_created", modified="modified metadata_modified", record_issued="metadata_created",
    record_modified="metadata_modified", language="language>several", spatial="geographical_coverage>several",
    frequency="frequency accrual_periodicity update_frequency frequency-of-update",
    temporal=(
        Fields(
            Period, start="temporal_start temporal_coverage_from temporal_coverage-from",
            end="temporal_end temporal_coverage_to temporal_coverage-to",
        ),
        Fields(Period, "temporal_coverage", start="start", end="end"),
    ),
    version="version dcat_version", provenance="provenance", conforms_to="conforms_to>several",
    distributions=_RESOURCE,
    kind=lambda package, _: "dcat:DatasetSeries" if text(package.get("type")) == "dataset_series" else None,
    agents=(
        _role("creator", "dct:creator"), _role("contributor", "dct:contributor"),
        _role("contact", "dcat:contactPoint"), _attributions,
    ),
    places=(
        _place(
            "", "spatial_uri", "spatial_text", "spatial",
            ("spatial_bbox>shape spatial_bbox", _corners), "spatial_centroid",
        ),
        _place("spatial_coverage", "uri", "text", "geom", "bbox>shape bbox", "centroid"),
    ),
    relations=Fields(QualifiedRelation, "qualified_relation", target="relation", role="role"),
    more=(lambda package, _: properties(package.own, _WORDS), terms({}, _PROPERTIES), _series),
)  # fmt: skip


def service_kind(form: str | None, url: str) -> str | None:
    """Return the kind of service that a format's name or an address mentions.

    >>> service_kind("api/sparql", "https://example.org/"), service_kind("CSV", "https://example.org/a.csv")
    ('sparql', None)
    """
    word = (form or "").lower().removeprefix("api/").removeprefix("ogc ").removeprefix("ogc:")
    if word in SERVICES:
        return word
    return "sparql" if url.partition("?")[0].rstrip("/").lower().endswith("/sparql") else None


MAPPING: Final = RecordMapping(
    "ckan",
    dataset_of,
    dropped={
        "num_tags": "a count of the tags that are listed",
        "num_resources": "a count of the resources that are listed",
        "tags.vocabulary_id": "a number of this installation's database",
        "resources.position": "the place in the list, which is kept",
    },
    volatile={
        "tracking_summary": "views, counted by the portal",
        "resources.tracking_summary": "views, counted by the portal",
        "archiver": "when and how the portal last checked the files",
        "resources.archiver": "when and how the portal last checked the file",
        "resources.cache_last_updated": "when the portal last copied the file",
    },
)
