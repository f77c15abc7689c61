"""The packages of CKAN as datasets: its own fields, extras, and the fields of DCAT-AP, in many languages."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tamias.harvesters.location import box_polygon
from tamias.harvesters.mapping import RecordMapping, plain
from tamias.harvesters.records import (
    agent,
    by_language,
    checksum,
    count,
    in_languages,
    one_text,
    properties,
    table,
    tables,
    text,
    texts,
    translated,
    web,
)
from tamias.harvesters.terms import sound_iri
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

SERVICES: Final = frozenset({"csw", "sparql", "wcs", "wfs", "wms", "wmts"})
_DIGESTS: Final = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}

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
_ROLES: Final = {
    "creator": "dct:creator",
    "contributor": "dct:contributor",
    "contact": "dcat:contactPoint",
}


def dataset_of(package: dict[str, Any], root: str) -> Dataset:
    """Read a package as a dataset. Raises `ValueError` for one without an identifier."""
    own = text(package.get("id")) or text(package.get("name"))
    if own is None:
        raise ValueError("it has neither id nor name")
    fields = _Fields(package)
    page = f"{root}dataset/{own}"
    return Dataset(
        iri=_iri(fields.text("uri")) or page,
        record=own,
        title=fields.text("title", "title_translated") or text(package.get("name")) or own,
        description=fields.text("notes", "notes_translated", "description"),
        identifiers=texts([fields.text("identifier", "guid") or own]),
        keywords=tuple(_keywords(package)),
        themes=tuple(theme for theme in fields.texts("theme") if _iri(theme)),
        groups=tuple(_groups(package)),
        landing_page=web(package.get("url")) or f"{root}dataset/{text(package.get('name')) or own}",
        licence=web(package.get("license_url")) or fields.text("license_title", "license_id"),
        rights=fields.text("rights"),
        access_rights=fields.text("access_rights"),
        publisher=_publisher(fields, root),
        creator=agent(fields.text("author", "creator_name"), fields.text("author_email", "creator_email")),
        contact=_contact(fields),
        issued=fields.text("issued", "metadata_created"),
        modified=fields.text("modified", "metadata_modified"),
        record_issued=text(package.get("metadata_created")),
        record_modified=text(package.get("metadata_modified")),
        frequency=fields.text("frequency", "accrual_periodicity", "update_frequency", "frequency-of-update"),
        language=fields.texts("language"),
        spatial=fields.texts("geographical_coverage"),
        temporal=tuple(_periods(fields)),
        version=fields.text("version", "dcat_version"),
        provenance=fields.text("provenance"),
        conforms_to=fields.texts("conforms_to"),
        distributions=tuple(_distributions(package, page)),
        is_series=text(package.get("type")) == "dataset_series",
        agents=tuple(_agents(fields)),
        places=tuple(_places(fields)),
        relations=tuple(_relations(fields)),
        more=(*_properties(fields), *_series(fields, root)),
    )


class _Fields:
    """The package's own fields and its extras under one roof: schemas put the same thing here or there."""

    def __init__(self, package: dict[str, Any]) -> None:
        self.package = package
        extras = package.get("extras")
        pairs = {text(each.get("key")): each for each in tables(extras) if "key" in each}
        self._extras = pairs if isinstance(extras, list) else {}
        self._table = table(extras)

    def value(self, name: str) -> Any:
        """Return a field as it stands; None for an empty one."""
        value = self.package.get(name) if name in self.package else None
        if value in (None, "", [], {}):
            value = table(self._extras.get(name)).get("value") or self._table.get(name)
        return value

    def text(self, *names: str) -> str | None:
        """Return the first of these fields that has a text."""
        return next(filter(None, (one_text(self.value(name)) for name in names)), None)

    def table(self, name: str) -> dict[str, Any]:
        return table(self.value(name))

    def tables(self, name: str) -> list[dict[str, Any]]:
        """Objects, also where they are written as JSON text."""
        return [each for each in tables(decoded(self.value(name))) if each]

    def texts(self, name: str) -> tuple[str, ...]:
        """A field's texts, be it a list, a list in JSON, or divided by commas."""
        return several(self.value(name))


def decoded(value: Any) -> Any:
    """Decode a value that is written as JSON text; return any other as it stands."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(value.encode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            pass
    return value


def several(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, of a list written as JSON, or between commas.

    >>> several('["a", "b"]'), several("a, b"), several(["a"]), several("{a,b}")
    (('a', 'b'), ('a', 'b'), ('a',), ('a', 'b'))
    """
    value = decoded(value)
    return texts(value.strip("{}").split(",")) if isinstance(value, str) else texts(value)


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


def _iri(value: str | None) -> str | None:
    return value if sound_iri(value) else None


def _keywords(package: dict[str, Any]) -> Iterator[str]:
    for tag in package.get("tags") or () if isinstance(package.get("tags"), list) else ():
        word = text(table(tag).get("display_name")) or text(table(tag).get("name")) or text(tag)
        if word:
            yield word


def _groups(package: dict[str, Any]) -> Iterator[str]:
    for group in tables(package.get("groups")):
        if name := one_text(group.get("title")) or text(group.get("display_name")) or text(group.get("name")):
            yield name


def _properties(fields: _Fields) -> Iterator[DcatProperty]:
    yield from properties(fields.package, _WORDS)
    for field, name in _PROPERTIES.items():
        value = fields.value(field)
        if not isinstance(value, dict):
            yield from (DcatProperty(name, each) for each in _listed(value))


def _listed(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, also of one in JSON; a text with commas is one text."""
    return texts(decoded(value))


def _series(fields: _Fields, root: str) -> Iterator[DcatProperty]:
    """The series that a dataset is in, and its neighbours there."""
    yield from (DcatProperty("dcat:inSeries", f"{root}dataset/{key}") for key in fields.texts("in_series"))
    for each in fields.tables("series_navigation"):
        for field, name in (("previous", "prev"), ("next", "next"), ("first", "first"), ("last", "last")):
            if key := text(table(each.get(field)).get("id")):
                yield DcatProperty(f"dcat:{name}", f"{root}dataset/{key}")


def _publisher(fields: _Fields, root: str) -> Agent | None:
    """The publisher that the fields name, else the organisation; its IRI is the organisation's."""
    if named := next(filter(None, map(_agent_of, fields.tables("publisher"))), None):
        return named
    organisation = fields.table("organization")
    name = one_text(organisation.get("title")) or text(organisation.get("name"))
    key = text(organisation.get("id")) or text(organisation.get("name"))
    said = fields.text("publisher_name")
    if not (said or name):
        return None
    return Agent(
        name=said or name or "",
        names=() if said else translated(organisation, "title"),
        iri=_iri(fields.text("publisher_uri")) or (f"{root}organization/{key}" if key and not said else None),
        email=fields.text("publisher_email"),
        homepage=web(fields.text("publisher_url")),
        kind=fields.text("publisher_type"),
    )


def _agent_of(said: dict[str, Any]) -> Agent | None:
    """An agent that a field describes."""
    return agent(
        one_text(said.get("name")),
        text(said.get("email")),
        names=translated(said, "name"),
        iri=_iri(text(said.get("uri"))),
        homepage=web(said.get("url")) or web(said.get("homepage")),
        kind=text(said.get("type")),
        identifier=text(said.get("identifier")),
    )


def _agents(fields: _Fields) -> Iterator[AgentRole]:
    for field, name in _ROLES.items():
        found = filter(None, map(_agent_of, fields.tables(field)))
        yield from (AgentRole(property=name, agent=each) for each in found)
    for each in fields.tables("qualified_attribution"):
        for named in filter(None, map(_agent_of, tables(each.get("agent")))):
            yield AgentRole(property="prov:qualifiedAttribution", agent=named, role=text(each.get("role")))


def _contact(fields: _Fields) -> Agent | None:
    return agent(
        fields.text("contact_name", "maintainer", "author"),
        fields.text("contact_email", "maintainer_email", "contact-email", "author_email"),
        iri=_iri(fields.text("contact_uri")),
    )


def _relations(fields: _Fields) -> Iterator[QualifiedRelation]:
    for each in fields.tables("qualified_relation"):
        if target := text(each.get("relation")):
            yield QualifiedRelation(target=target, role=text(each.get("role")))


def _places(fields: _Fields) -> Iterator[NamedPlace]:
    """Yield the places of `spatial_coverage`, and the one that older schemas spread over several fields."""
    old = {
        "uri": fields.text("spatial_uri"),
        "text": fields.text("spatial_text"),
        "geom": fields.value("spatial"),
        "bbox": fields.value("spatial_bbox") or _corners(fields),
        "centroid": fields.value("spatial_centroid"),
    }
    for each in (old, *fields.tables("spatial_coverage")):
        shapes = {name: _shape(each.get(name)) for name in ("geom", "bbox", "centroid")}
        name = one_text(each.get("text"))
        names: tuple[tuple[str | None, str], ...] = by_language(each.get("text"))
        names = names or (((None, name),) if name else ())
        iri = text(each.get("uri"))
        if iri and not _iri(iri):
            names = (*names, (None, iri))
        place = NamedPlace(
            iri=_iri(iri),
            names=names,
            geometry=shapes["geom"],
            bbox=shapes["bbox"],
            centroid=shapes["centroid"],
        )
        if place != NamedPlace():
            yield place


def _shape(value: Any) -> str | None:
    return msgspec.json.encode(plain(value)).decode() if isinstance(value, dict) else text(value)


def _corners(fields: _Fields) -> str | None:
    """The box of four fields that ckanext-spatial has."""
    names = ("bbox-west-long", "bbox-south-lat", "bbox-east-long", "bbox-north-lat")
    corners = [fields.text(name) for name in names]
    return box_polygon([corner for corner in corners if corner]) if all(corners) else None


def _periods(fields: _Fields) -> Iterator[Period]:
    start = fields.text("temporal_start", "temporal_coverage_from", "temporal_coverage-from")
    end = fields.text("temporal_end", "temporal_coverage_to", "temporal_coverage-to")
    if start or end:
        yield Period(start, end)
    for each in fields.tables("temporal_coverage"):
        start, end = text(each.get("start")), text(each.get("end"))
        if start or end:
            yield Period(start, end)


def _distributions(package: dict[str, Any], page: str) -> Iterator[Distribution]:
    for resource in tables(package.get("resources")):
        download, access = text(resource.get("download_url")), text(resource.get("access_url"))
        url, key = text(resource.get("url")) or download or access, text(resource.get("id"))
        if url is None:
            continue
        form = text(resource.get("format"))
        kind = service_kind(form, url)
        digits = checksum_of(text(resource.get("hash")), text(resource.get("hash_algorithm")))
        yield Distribution(
            url=download or url,
            access_url=access,
            access_only=download is None and url == access,
            iri=_iri(text(resource.get("uri"))) or (f"{page}/resource/{key}" if key else None),
            title=one_text(resource.get("name")) or one_text(resource.get("title")),
            description=one_text(resource.get("description")),
            media_type=text(resource.get("mimetype")),
            format=form,
            licence=text(resource.get("license")),
            rights=one_text(resource.get("rights")),
            byte_size=count(resource.get("size")),
            **checksum(*digits or (None, None)),
            issued=text(resource.get("issued")) or text(resource.get("created")),
            modified=text(resource.get("modified")) or text(resource.get("last_modified")),
            language=several(resource.get("language")),
            conforms_to=several(resource.get("conforms_to")),
            service=url if kind else None,
            service_kind=kind,
            services=tuple(_services(resource)),
            more=(
                *properties(resource, _RESOURCE_TEXTS),
                *_listed_in(resource, _RESOURCE_PROPERTIES),
            ),
        )


def _listed_in(said: dict[str, Any], names: dict[str, str]) -> Iterator[DcatProperty]:
    for field, name in names.items():
        yield from (DcatProperty(name, each) for each in _listed(said.get(field)))


def _services(resource: dict[str, Any]) -> Iterator[DataService]:
    for each in tables(decoded(resource.get("access_services"))):
        yield DataService(
            endpoints=_listed(each.get("endpoint_url")),
            iri=_iri(text(each.get("uri"))),
            title=one_text(each.get("title")),
            serves=_listed(each.get("serves_dataset")),
            more=(*in_languages(each, "title", "dct:title"), *_listed_in(each, _SERVICE_PROPERTIES)),
        )


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
