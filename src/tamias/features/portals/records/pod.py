"""The records of a `data.json` (DCAT-US 1.1 and 3) as values, and a broken file's good ones.

A catalogue of DCAT-US 3 has more than a list of datasets: catalogues within it, services, series, records.
All but the datasets are one record of its own, in which a dataset that stands within them is only named.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from tamias.features.dcat.datasets.location import box_polygon
from tamias.features.dcat.datasets.mapping import RecordMapping, plain
from tamias.features.dcat.datasets.records import TITLES, checksum, decoded, table, tables, text, texts, web
from tamias.features.dcat.datasets.terms import below
from tamias.features.portals.fields import Fields, terms
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
from tamias.model.url import host

MOST_FAULTS = 200
_LONGEST_RECORD = 1 << 20
"""Characters of a record that is looked for in a broken file."""

_BETWEEN = re.compile(r"\}\s*,?\s*(?=\{)|\[\s*(?=\{)")
_RECORD_KEYS = frozenset({"identifier", "accessLevel", "publisher", "distribution", "contactPoint"})


Context = Mapping[str, str]
_PARTS: Final = {
    "catalog": "dcat:Catalog",
    "service": "dcat:DataService",
    "datasetSeries": "dcat:DatasetSeries",
    "record": "dcat:CatalogRecord",
}
"""The lists of a catalogue beside its datasets, and the classes of what is in them."""
_MEMBERS: Final = frozenset({"dataset", "servesDataset", "seriesMember", "first", "last"})
"""Where datasets stand within catalogues, services and series."""
_FORM: Final = frozenset({"@context", "@id", "@type", "conformsTo", "describedBy"})
"""What a catalogue says of its file only."""
_LISTS: Final = {
    "describedBy": "foaf:page", "references": "dct:relation", "systemOfRecords": "dct:relation",
    "isPartOf": "dct:isPartOf", "relation": "dct:relation", "isReferencedBy": "dct:isReferencedBy",
    "replaces": "dct:replaces", "source": "dct:source", "hasPart": "dct:hasPart",
    "provenance": "dct:provenance", "versionNotes": "adms:versionNotes", "created": "dct:created",
    "scopeNote": "skos:scopeNote", "temporalResolution": "dcat:temporalResolution",
    "spatialResolutionInMeters": "dcat:spatialResolutionInMeters", "primaryTopic": "foaf:primaryTopic",
    "compressFormat": "dcat:compressFormat", "packageFormat": "dcat:packageFormat",
    "endpointURL": "dcat:endpointURL", "endpointDescription": "dcat:endpointDescription",
    "servesDataset": "dcat:servesDataset", "seriesMember": "dcat:seriesMember", "first": "dcat:first",
    "last": "dcat:last", "dataset": "dcat:dataset", "catalog": "dcat:catalog",
}  # fmt: skip
_OBJECTS: Final = {
    "theme": "dcat:theme", "subject": "dct:subject", "category": "dct:type", "status": "adms:status",
    "availability": "dcatap:availability", "themeTaxonomy": "dcat:themeTaxonomy",
    "conformsTo": "dct:conformsTo", "describedBy": "foaf:page",
    "page": "foaf:page", "inSeries": "dcat:inSeries", "first": "dcat:first",
    "hasVersion": "dcat:hasVersion", "previousVersion": "dcat:previousVersion", "sample": "adms:sample",
    "otherIdentifier": "adms:identifier", "wasGeneratedBy": "prov:wasGeneratedBy",
}  # fmt: skip
"""Fields of texts, of lists of texts, and of objects with an address or a name."""
DROPPED: Final = {
    "describedByType": "the media type of a page that is kept",
    "distribution.describedByType": "the media type of a page that is kept",
}


class Found(NamedTuple):
    """The parts of a file: its catalogue without the datasets, if there is more, and the records."""

    catalogue: bytes | None
    records: Iterator[bytes | str]
    """Records as they stand in the file, and messages for what is none."""
    inner: list[bytes]
    """The datasets that stand within other parts; they may stand in the list too."""


def read_file(raw: bytes, catalogue: str) -> Found:
    """Read a file.

    One with a fault is searched for what still is a record, before the fault and after it.
    """
    rest: dict[str, Any] = {}
    inner: list[bytes] = []
    try:
        pieces, rest = _pieces(raw)
        for name in rest:
            rest[name] = _without_datasets(rest[name], catalogue, inner)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Found(None, _after_fault(raw, error), [])
    says = msgspec.json.encode(rest) if rest.keys() - _FORM else None
    return Found(says, _objects_in(pieces), inner)


def _after_fault(raw: bytes, error: Exception) -> Iterator[bytes | str]:
    yield f"data.json: {error}; looking for the records that are whole"
    yield from _whole_records(raw.decode("utf-8", "replace"))


def _objects_in(pieces: list[msgspec.Raw]) -> Iterator[bytes | str]:
    for number, piece in enumerate(pieces, 1):
        body = bytes(piece).strip()
        yield body if body.startswith(b"{") else f"record {number} of data.json is not an object"


def _pieces(raw: bytes) -> tuple[list[msgspec.Raw], dict[str, Any]]:
    """Return the records as they stand in the file, and the rest; before 1.1, the file was a list."""
    is_list = raw[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if is_list:
        return msgspec.json.decode(raw, type=list[msgspec.Raw]), {}
    fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    if not fields.keys() & {"dataset", *_PARTS}:
        raise msgspec.DecodeError("it has no list of datasets")
    listed = fields.pop("dataset", msgspec.Raw(b"[]"))
    rest = {name: msgspec.json.decode(value) for name, value in fields.items()}
    return msgspec.json.decode(listed, type=list[msgspec.Raw]), rest


def _without_datasets(value: Any, catalogue: str, inner: list[bytes], *, is_member: bool = False) -> Any:
    """Return a value in which datasets are only named by their IRIs; add them to `inner`."""
    if isinstance(value, list):
        return [_without_datasets(each, catalogue, inner, is_member=is_member) for each in value]
    if not isinstance(value, dict):
        return value
    if is_member and (own := _own_name(value)):
        inner.append(msgspec.json.encode(value))
        return _iri(value, own, catalogue, "dataset")
    return {
        name: _without_datasets(each, catalogue, inner, is_member=name in _MEMBERS)
        for name, each in value.items()
    }


def _whole_records(file: str) -> Iterator[bytes | str]:
    decoder, end, faults = json.JSONDecoder(), 0, 0
    for start in _BETWEEN.finditer(file):
        if start.end() < end:
            continue
        try:
            record, size = decoder.raw_decode(file[start.end() : start.end() + _LONGEST_RECORD])
        except (ValueError, RecursionError) as error:
            faults += 1
            yield f"at character {start.end() + 1} of data.json: {error}"
            if faults == MOST_FAULTS:
                yield f"data.json has more than {MOST_FAULTS} faults; the rest of it is not read"
                return
            continue
        if "title" in record and _RECORD_KEYS & record.keys():
            end = start.end() + size
            yield file[start.end() : end].encode()


def _date(record: dict[str, Any], _: Context) -> str | None:
    """A date; a repetition such as `R/P1D`, which 1.1 allows here, is none."""
    found = text(record.get("modified"))
    return None if found and found.startswith("R/") else found


def _places(record: dict[str, Any], _: Context) -> Iterator[str]:
    """A name, an IRI, a box `west,south,east,north` (as WKT), or GeoJSON (as text)."""
    value = record.get("spatial")
    for place in value if isinstance(value, list) else [value]:
        if isinstance(place, dict):
            if not _is_location(place):
                yield msgspec.json.encode(plain(place)).decode()
        elif found := text(place):
            yield box_polygon(found.split(",")) or found


def _is_location(place: dict[str, Any]) -> bool:
    return bool(place.keys() & {"bbox", "centroid", "geometry", "prefLabel", "altLabel", "identifier"})


def _periods(record: dict[str, Any], _: Context) -> Iterator[Period]:
    for period in texts(record.get("temporal")):
        start, _slash, end = period.partition("/")
        yield Period(start.strip() or None, end.strip() or None)


def _more_of_file(said: dict[str, Any], _: Context) -> dict[str, Any]:
    """Return the fields of a SPARQL service, and of a checksum."""
    url = text(said.get("downloadURL")) or text(said.get("accessURL")) or ""
    words = f"{text(said.get('format'))} {text(said.get('conformsTo'))}".lower()
    is_sparql = "sparql" in words or url.rstrip("/").lower().endswith("/sparql")
    summed = table(said.get("checksum"))
    algorithm = (text(summed.get("algorithm")) or "").rpartition("_")[2]
    return checksum(algorithm, text(summed.get("checksumValue"))) | (
        {"service": url, "service_kind": "sparql"} if is_sparql else {}
    )


def _names(record: dict[str, Any]) -> Iterator[str | None]:
    """Yield what a record may be identified by, best first."""
    identifier = record.get("identifier")
    yield from map(text, (identifier, table(identifier).get("@id"), table(identifier).get("notation")))
    yield from (text(record.get(name)) for name in ("@id", "landingPage", "primaryTopic", "title"))


def _own_name(record: dict[str, Any]) -> str | None:
    return next(filter(None, _names(record)), None)


def _iri(record: dict[str, Any], own: str, catalogue: str, kind: str) -> str:
    named = (record.get("@id"), record.get("identifier"), table(record.get("identifier")).get("@id"))
    return next(filter(None, map(web, named)), None) or below(catalogue, own, kind).value


def _listed_rights(record: dict[str, Any], _: Context) -> list[DcatProperty]:
    said = record.get("rights")
    return [DcatProperty("dct:rights", each) for each in texts(said)] if isinstance(said, list) else []


def _properties(record: dict[str, Any], _: Context) -> Iterator[DcatProperty]:
    """Yield what texts say, and what objects are: an address, else an IRI, else a name."""
    for field in _FIELDS:
        if field in record:
            value = record.get(field)
            if term := _LISTS.get(field):
                yield from (DcatProperty(term, each) for each in texts(decoded(value)))
            if term := _OBJECTS.get(field):
                yield from (one for each in tables(value) if (one := _OBJECT.read(each, {"term": term})))


_FIELDS: Final = tuple({**_LISTS, **_OBJECTS})
_OBJECT: Final = Fields(
    DcatProperty, "", name="{term}", label="prefLabel title name label",
    value="accessURL>web downloadURL>web @id>web identifier>web notation prefLabel title name label",
)  # fmt: skip


def _agent(path: str) -> Fields[Agent]:
    return Fields(Agent, path, name="name prefLabel", homepage="url>text", iri="@id>web")


def _contact(path: str) -> Fields[Agent]:
    name = f"fn name organization-name {_MAIL}"
    return Fields(Agent, path, name=name, email=_MAIL, homepage="hasURL>text", iri="@id>web")


def _role(field: str, term: str, after: int = 0) -> Fields[AgentRole]:
    agent = _contact("") if term == "dcat:contactPoint" else _agent("")
    return Fields(AgentRole, field, after=after, property=f"={term}", agent=agent)


_MAIL: Final = "hasEmail>mail email>mail"
_MORE: Final = (terms({**TITLES, "keyword": "dcat:keyword"}), _listed_rights, _properties)
_DATASET: Final = Fields(
    Dataset,
    iri="{iri}", record="{own}", kind="{kind}",
    title="title {name}", description="description",
    identifiers="identifier identifier.notation", keywords="keyword", groups="theme",
    landing_page="landingPage>one landingPage.accessURL landingPage.@id",
    licence="license", rights="rights", access_rights="accessLevel accessRights",
    publisher=(Fields(Agent, name="publisher>text"), _agent("publisher")),
    creator=_agent("creator"), contact=(Fields(Agent, name="contactPoint>text"), _contact("contactPoint")),
    issued="issued", modified=_date, frequency="accrualPeriodicity", language="language", spatial=_places,
    temporal=(_periods, Fields(Period, "temporal", start="startDate", end="endDate")), version="version",
    conforms_to="conformsTo",
    places=Fields(
        NamedPlace, "spatial", when=_is_location, iri="@id>web identifier>web",
        names=lambda place, _: [
            (None, each) for name in ("prefLabel", "altLabel") for each in texts(place.get(name))
        ],
        geometry="geometry>text geometry>shape", bbox="bbox>text bbox>shape",
        centroid="centroid>text centroid>shape",
    ),
    agents=(
        _role("contactPoint", "dcat:contactPoint", 1), _role("creator", "dct:creator", 1),
        _role("contributor", "dct:contributor"), _role("rightsHolder", "dct:rightsHolder"),
        Fields(
            AgentRole, "qualifiedAttribution", property="=prov:qualifiedAttribution", agent=_agent("agent"),
            role="hadRole",
        ),
    ),
    relations=Fields(QualifiedRelation, "qualifiedRelation", target="relation", role="hadRole"),
    distributions=Fields(
        Distribution, "distribution", also=_more_of_file,
        url="downloadURL accessURL", access_only=lambda said, _: text(said.get("downloadURL")) is None,
        iri="@id>web", title="title", description="description", access_url="accessURL",
        media_type="mediaType", format="format", licence="license", rights="rights",
        byte_size="byteSize", conforms_to="conformsTo",
        issued="issued", modified="modified", language="language",
        services=Fields(
            DataService, "accessService", endpoints="endpointURL", iri="@id>web identifier>web",
            title="title", serves="servesDataset",
        ),
        more=_MORE,
    ),
    more=_MORE,
)  # fmt: skip


def dataset_of(record: dict[str, Any], catalogue: str) -> Dataset:
    """Read a record as a dataset. Raise `ValueError` for one without anything like an identifier."""
    own = _own_name(record)
    if own is None:
        raise ValueError("it has neither identifier nor title")
    iri = _iri(record, own, catalogue, "dataset")
    return _DATASET.of(record, catalogue, own=own, name=own, iri=iri, kind="dcat:Dataset")


def catalogue_of(record: dict[str, Any], catalogue: str) -> Dataset:
    """Read what a file says beside its datasets; its host is its name where it has none."""
    name = text(record.get("title")) or host(catalogue) or catalogue
    found = _DATASET.of(record, catalogue, own=name, name=name, iri=catalogue, kind="dcat:Catalog")
    return msgspec.structs.replace(
        found, record="catalogue", publisher=found.publisher or Agent(name=host(catalogue) or catalogue),
        parts=tuple(_parts(record, catalogue)),
    )  # fmt: skip


def _parts(record: dict[str, Any], catalogue: str) -> Iterator[Dataset]:
    for field, kind in _PARTS.items():
        for each in tables(record.get(field)):
            if own := _own_name(each):
                iri = _iri(each, own, catalogue, field)
                found = _DATASET.of(each, catalogue, own=f"{field} {own}", name=own, iri=iri, kind=kind)
                yield msgspec.structs.replace(found, parts=tuple(_parts(each, catalogue)))


MAPPING: Final = RecordMapping("data-json", dataset_of, DROPPED)
CATALOGUE: Final = RecordMapping("data-json-catalogue", catalogue_of)
