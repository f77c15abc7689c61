"""Datasets, services, series, catalogues and their records in the JSON of DCAT-US 3."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from tamias.features.dcat.datasets.authority import language_iri, licence_iri, media_type, repetition
from tamias.features.dcat.datasets.records import web
from tamias.features.dcat.datasets.terms import day_or_moment, last_segment
from tamias.model.dataset import Agent, Dataset, DcatProperty, Distribution, NamedPlace, Period
from tamias.model.vocabulary import sound_iri

_STANDARD: Final = {"@type": "Standard", "title": "DCAT-US 3.0"}
_PARTS: Final = {
    "dcat:Catalog": "catalog",
    "dcat:DataService": "service",
    "dcat:DatasetSeries": "datasetSeries",
    "dcat:CatalogRecord": "record",
}
"""The list of a catalogue in which things of a class are."""
_MEMBERS: Final = {
    "dcat:Catalog": {"dcat:dataset": "dataset"},
    "dcat:DataService": {"dcat:servesDataset": "servesDataset"},
    "dcat:DatasetSeries": {"dcat:seriesMember": "seriesMember"},
}
"""How each has datasets: the term, and its name in JSON."""
_OBJECTS: Final = {
    "otherIdentifier": ("adms:identifier", "Identifier", "notation"),
    "theme": ("dcat:theme", "Concept", "prefLabel"),
    "status": ("adms:status", "Concept", "prefLabel"),
    "conformsTo": ("dct:conformsTo", "Standard", "title"),
}
"""Fields of objects: the term, the class, and the field of their name."""
_LISTS: Final = {
    "relation": "dct:relation",
    "isReferencedBy": "dct:isReferencedBy",
    "endpointURL": "dcat:endpointURL",
    "endpointDescription": "dcat:endpointDescription",
}
_ONE: Final = {
    "primaryTopic": "foaf:primaryTopic",
    "versionNotes": "adms:versionNotes",
    "scopeNote": "skos:scopeNote",
    "temporalResolution": "dcat:temporalResolution",
    "spatialResolutionInMeters": "dcat:spatialResolutionInMeters",
}
"""Fields of many values and of one, with their terms."""
_OF_A_RECORD: Final = ("@id", "@type", "title", "modified", "primaryTopic", "source")
_MAIL: Final = re.compile(r"[\w~!$&'()*+,;=:.-]+@[\w.-]+\.[\w.-]+")
_ZONED: Final = re.compile(r"\d{4}(-\d\d){0,2}|.*T.*(Z|[+-]\d\d:\d\d)")

Json = dict[str, Any]
Members = Mapping[str, Sequence[msgspec.Raw]]
"""The datasets of catalogues, services and series, by the IRIs of these."""


def us_contact(*agents: Agent | None) -> list[Json]:
    """Return the agents that have the e-mail address which DCAT-US asks for.

    >>> us_contact(Agent(name="Desk", email="desk@town.example"), Agent(name="Nobody"))
    [{'@type': 'Kind', 'fn': 'Desk', 'hasEmail': 'mailto:desk@town.example'}]
    """
    return [
        {"@type": "Kind", "fn": each.name, "hasEmail": f"mailto:{each.email}"}
        for each in agents
        if each is not None and each.email and _MAIL.fullmatch(each.email)
    ]


def us_record(
    said: Dataset,
    publisher: Json | None,
    contacts: Sequence[Json],
    members: Members | None = None,
) -> Json:
    """Describe a dataset, or what else a catalogue has. Values that are none are left out.

    One without a publisher or a contact has those of its catalogue. Its parts need `members`.
    """
    own = us_contact(said.contact, *_agents(said, "dcat:contactPoint")) or contacts
    agent = _organisation(said.publisher) or publisher
    record = {
        "@type": said.kind.partition(":")[2],
        "@id": said.iri if sound_iri(said.iri) else None,
        **_texts_of(said),
        "publisher": agent,
        "contactPoint": own,
        **_agents_of(said),
        **_objects_of(said),
        "conformsTo": _objects(said, "conformsTo", said.conforms_to),
        "distribution": [_form(each, said, agent, own) for each in said.distributions],
    }
    if said.kind == "dcat:CatalogRecord":
        record = {name: record.get(name) for name in _OF_A_RECORD}
    if said.kind == "dcat:Catalog":
        record["conformsTo"] = _STANDARD
    found = _without_nothing(record)
    if members is None:
        return found
    inner = {name: members.get(said.iri, []) for name in _MEMBERS.get(said.kind, {}).values()}
    return found | inner | parts_of(said, agent, own, members)


def _texts_of(said: Dataset) -> Json:
    return {
        "title": said.title,
        "description": said.description or said.title,
        "identifier": said.iri,
        "keyword": list(filter(None, said.keywords)),
        "issued": us_date(said.issued),
        "modified": us_date(said.modified or said.record_modified),
        "created": us_date(next(iter(_more(said, "dct:created")), None)),
        "accrualPeriodicity": repetition(said.frequency),
        "language": list(filter(None, map(_language, said.language))),
        "license": _licence(said.licence),
        "rights": _more(said, "dct:rights", said.rights),
        "accessRights": said.access_rights,
        "version": said.version,
        "provenance": _more(said, "dct:provenance", said.provenance),
        **{name: list(filter(sound_iri, _more(said, term))) for name, term in _LISTS.items()},
        **{name: next(iter(_more(said, term)), None) for name, term in _ONE.items()},
    }


def _agents_of(said: Dataset) -> Json:
    roles = {"contributor": "dct:contributor", "rightsHolder": "dct:rightsHolder"}
    return {
        "creator": _organisation(said.creator),
        **{name: list(filter(None, map(_organisation, _agents(said, term)))) for name, term in roles.items()},
        "qualifiedAttribution": [
            {"@type": "Attribution", "agent": _organisation(each.agent), "hadRole": each.role}
            for each in said.agents
            if each.property == "prov:qualifiedAttribution" and each.agent.name and each.role
        ],
        "qualifiedRelation": [
            {"@type": "Relationship", "relation": each.target, "hadRole": each.role}
            for each in said.relations
            if sound_iri(each.target) and each.role
        ],
    }


def _objects_of(said: Dataset) -> Json:
    others = (each for each in said.identifiers if each != said.iri)
    page = {"@type": "Document", "title": said.title, "accessURL": said.landing_page}
    return {
        "otherIdentifier": _objects(said, "otherIdentifier", others),
        "theme": _objects(said, "theme", (*said.themes, *said.groups)),
        "status": next(iter(_objects(said, "status")), None),
        "spatial": [*map(_place, said.spatial), *map(_named_place, said.places)],
        "temporal": [each for each in map(_period, said.temporal) if len(each) > 1],
        "landingPage": page if web(said.landing_page) else None,
    }


def parts_of(said: Dataset, publisher: Json | None, contacts: Sequence[Json], members: Members) -> Json:
    """Describe what a catalogue has beside its datasets, by the names of the lists."""
    found: Json = {}
    for part in said.parts:
        found.setdefault(_PARTS[part.kind], []).append(us_record(part, publisher, contacts, members))
    return found


def holders_of(said: Dataset) -> dict[str, list[Dataset]]:
    """Return the catalogues, services and series in a catalogue that have a dataset, by its IRI."""
    found = defaultdict[str, list[Dataset]](list)
    for part in said.parts:
        for term in _MEMBERS.get(part.kind, {}):
            for named in _more(part, term):
                found[named].append(part)
        for named, holders in holders_of(part).items():
            found[named] += holders
    return found


def us_date(text: str | None) -> str | None:
    """Return a date, or a time that has a zone; of any other time only its day.

    >>> us_date("2024-01-02T03:04:05"), us_date("2024-01-02T03:04:05Z"), us_date("2024"), us_date("soon")
    ('2024-01-02', '2024-01-02T03:04:05Z', '2024', None)
    """
    found = day_or_moment(text)
    if found is None:
        return None
    return found.value if _ZONED.fullmatch(found.value) else found.value[:10]


def _form(said: Distribution, of: Dataset, publisher: Json | None, contacts: Sequence[Json]) -> Json:
    algorithm, digits = said.checksum or ("SHA-256", said.sha256)
    service = {"@type": "DataService", "title": said.title or of.title, "endpointURL": [said.service]}
    record: Json = {
        "@type": "Distribution",
        "title": said.title,
        "description": said.description,
        "accessURL" if said.access_only else "downloadURL": web(said.url),
        "mediaType": media_type(said.media_type),
        "format": said.format,
        "license": _licence(said.licence or of.licence),
        "rights": _more(said, "dct:rights", said.rights),
        "byteSize": None if said.byte_size is None else str(said.byte_size),
        "issued": us_date(said.issued),
        "modified": us_date(said.modified),
        "conformsTo": _objects(said, "conformsTo", said.conforms_to),
        "checksum": {"algorithm": algorithm, "checksumValue": digits} if digits else None,
    }
    if said.service:
        record["accessService"] = [service | {"publisher": publisher, "contactPoint": contacts}]
    return _without_nothing(record)


def _without_nothing(record: Json) -> Json:
    return {name: value for name, value in record.items() if value}


def _more(said: Dataset | Distribution, term: str, *texts: str | None) -> list[str]:
    return [*filter(None, texts), *(each.value for each in said.more if each.name == term)]


def _objects(said: Dataset | Distribution, field: str, values: Iterable[str] = ()) -> list[Json]:
    """Return objects of values, which are IRIs or texts, and of those that the record has as objects."""
    term, kind, name = _OBJECTS[field]
    found = [DcatProperty(term, each) for each in values] + [each for each in said.more if each.name == term]
    return [{"@type": kind, **_identified(each, name)} for each in found]


def _identified(each: DcatProperty, name: str) -> Json:
    if sound_iri(each.value) is None:
        return {name: each.value}
    return {"@id": each.value, name: each.label or last_segment(each.value) or each.value}


def _licence(text: str | None) -> str | None:
    return licence_iri(text) or text


def _organisation(agent: Agent | None) -> Json | None:
    return {"@type": "Organization", "name": agent.name} if agent and agent.name else None


def _agents(said: Dataset, term: str) -> list[Agent]:
    return [each.agent for each in said.agents if each.property == term]


def _named_place(place: NamedPlace) -> Json:
    iri = place.iri if sound_iri(place.iri) else None
    said = {
        "@id": iri, "identifier": iri, "prefLabel": next((name for _, name in place.names), None),
        "geometry": place.geometry, "bbox": place.bbox, "centroid": place.centroid,
    }  # fmt: skip
    return {"@type": "Location", **_without_nothing(said)}


def _place(text: str) -> Json:
    if sound_iri(text):
        return {"@type": "Location", "@id": text, "identifier": text}
    return {"@type": "Location", "geometry" if "(" in text or text.startswith("{") else "prefLabel": text}


def _period(said: Period) -> Json:
    ends = {"startDate": us_date(said.start), "endDate": us_date(said.end)}
    return {"@type": "PeriodOfTime", **_without_nothing(ends)}


def _language(word: str) -> str | None:
    """Return a code of two letters.

    >>> _language("http://id.loc.gov/vocabulary/iso639-1/de"), _language("en-US"), _language("deu")
    ('de', 'en', None)
    """
    iri = language_iri(last_segment(word) or word) or ""
    return last_segment(iri) if "iso639-1" in iri else None
