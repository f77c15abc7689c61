"""A distribution as DCAT, the data service behind it, and further properties, as DCAT-AP 3 types them."""

import re
from collections.abc import Sequence
from typing import Any, Final

from pyoxigraph import Literal, NamedNode

from tamias.harvesters.kit import authority
from tamias.harvesters.kit.terms import (
    DcatStatements,
    count_literal,
    hex_literal,
    sound_iri,
    text_literal,
    word,
)
from tamias.model.dataset import DataService, Dataset, DcatProperty, Distribution

FORMS: Final = {
    "dct:title": "text",
    "dct:description": "text",
    "dcat:keyword": "text",
    "adms:versionNotes": "text",
    "dct:provenance": "label dct:ProvenanceStatement provenance",
    "dct:rights": "label dct:RightsStatement rights",
    "dct:identifier": "plain",
    "adms:identifier": "identifier",
    "dct:alternative": "text",
    "foaf:page": "node foaf:Document",
    "dcat:landingPage": "node foaf:Document",
    "dct:type": "concept",
    "dct:isReferencedBy": "node rdfs:Resource",
    "dct:references": "node rdfs:Resource",
    "dct:relation": "node rdfs:Resource",
    "dct:isVersionOf": "node rdfs:Resource",
    "dcat:hasVersion": "node rdfs:Resource",
    "dct:hasVersion": "node rdfs:Resource",
    "dcat:previousVersion": "node rdfs:Resource",
    "dct:replaces": "node rdfs:Resource",
    "dct:isReplacedBy": "node rdfs:Resource",
    "dct:isPartOf": "node rdfs:Resource",
    "prov:wasDerivedFrom": "node rdfs:Resource",
    "dcat:inSeries": "iri",
    "dcat:prev": "iri",
    "dcat:next": "iri",
    "dcat:first": "iri",
    "dcat:last": "iri",
    "adms:sample": "sample",
    "dcatap:applicableLegislation": "iri eli:LegalResource",
    "dcatap:hvdCategory": "concept",
    "dcatap:availability": "concept",
    "adms:status": "concept",
    "dcat:compressFormat": "node dct:MediaType",
    "dcat:packageFormat": "node dct:MediaType",
    "dcat:temporalResolution": "duration",
    "dcat:spatialResolutionInMeters": "decimal",
    "dcat:endpointDescription": "node rdfs:Resource",
    "dct:license": "node dct:LicenseDocument",
    "dct:accessRights": "node dct:RightsStatement",
    "dct:conformsTo": "node dct:Standard",
    "dct:language": "node dct:LinguisticSystem",
    "dct:format": "node dct:MediaTypeOrExtent",
    "dct:modified": "date",
    "dct:created": "date",
}
ONCE: Final = frozenset(
    {
        "adms:status", "dcat:compressFormat", "dcat:packageFormat", "dcat:spatialResolutionInMeters",
        "dcat:temporalResolution", "dcatap:availability", "dct:accessRights", "dct:license", "dct:modified",
    }
)  # fmt: skip
"""Of which DCAT-AP allows one value."""

_DECIMAL = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})")
_DURATION = re.compile(r"-?P(?=.)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?")


def describe_properties(
    told: DcatStatements, node: NamedNode, properties: Sequence[DcatProperty], *segments: str
) -> None:
    """Says each of them in its form; `segments` name the part of the record that `node` is.

    What its form does not allow is not said, and of a property with one value only the first is.
    """
    said: set[str] = set()
    for number, each in enumerate(dict.fromkeys(properties), 1):
        if not each.value.strip() or (each.name in ONCE and each.name in said):
            continue
        before = len(told.quads)
        name = each.name.partition(":")[2]
        _describe(told, node, each, told.part(*segments, name, str(number)), segments)
        if len(told.quads) > before:
            said.add(each.name)


def untranslated(text: str | None, name: str, properties: Sequence[DcatProperty]) -> str | None:
    """A text, unless it stands among those of the same property that have a language."""
    tagged = {each.value.strip() for each in properties if each.name == name and each.language}
    return text if text is None or text.strip() not in tagged else None


def _describe(
    told: DcatStatements, node: NamedNode, each: DcatProperty, part: NamedNode, segments: tuple[str, ...]
) -> None:
    form, *rest = FORMS[each.name].split()
    value: Any = each.value.strip()
    if form == "text":
        told.add(node, each.name, text_literal(value, each.language or told.language))
    elif form == "plain":
        told.plain(node, each.name, value)
    elif form == "date":
        told.date(node, each.name, value)
    elif form == "label":
        shared = told.part(*segments, rest[1])
        told.typed(node, each.name, shared, rest[0])
        told.add(shared, "rdfs:label", text_literal(value, each.language))
    elif form == "node":
        told.named(node, each.name, rest[0], value, part)
    elif form == "iri" and (iri := sound_iri(value)):
        told.typed(node, each.name, iri, rest[0]) if rest else told.add(node, each.name, iri)
    elif form == "concept":
        iri = sound_iri(value)
        label = value.rstrip("/#").replace("#", "/").rpartition("/")[2] if iri else value
        told.concept(node, each.name, iri or part, label or value)
    elif form == "identifier":
        told.typed(node, each.name, part, "adms:Identifier")
        told.plain(part, "skos:notation", value)
    elif form == "sample" and (address := sound_iri(value, web=True)):
        told.typed(node, each.name, part, "dcat:Distribution")
        told.add(part, "dcat:accessURL", address)
    elif form == "duration" and _DURATION.fullmatch(value):
        told.add(node, each.name, Literal(value, datatype=word("xsd:duration")))
    elif form == "decimal" and _DECIMAL.fullmatch(value):
        told.add(node, each.name, Literal(value, datatype=word("xsd:decimal")))


_DIGEST_SIZES: Final = {"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}
_LARGEST_SIZE = 2**63 - 1


def describe_distribution(
    told: DcatStatements, dataset: Dataset, node: NamedNode, number: int, distribution: Distribution
) -> None:
    """Says it with `dcat:accessURL`, which is mandatory; an address that is none is the landing page's.

    Without either it is left out. `dcat:downloadURL` is said only of what is the data itself.
    """
    address = sound_iri(distribution.url, web=True)
    page = sound_iri(distribution.access_url, web=True)
    access = page or address or sound_iri(distribution.service, web=True)
    access = access or sound_iri(dataset.landing_page, web=True)
    if access is None:
        return
    part = told.part("distribution", str(number))
    it = sound_iri(distribution.iri) or part
    told.typed(node, "dcat:distribution", it, "dcat:Distribution")
    told.add(it, "dcat:accessURL", access)
    if address and not distribution.access_only and not distribution.service:
        told.add(it, "dcat:downloadURL", address)
    _describe_texts(told, it, distribution)
    describe_properties(told, it, distribution.more, "distribution", str(number))
    _describe_form(told, it, part, distribution)
    _describe_checksum(told, it, part, distribution)
    _describe_terms(told, it, number, distribution, dataset.licence)
    if distribution.service:
        _describe_service(told, dataset, node, it, number, distribution)
    for place, service in enumerate(distribution.services, 1):
        _describe_access(told, it, service, f"{number}-{place}")


def _describe_texts(told: DcatStatements, it: NamedNode, distribution: Distribution) -> None:
    told.text(it, "dct:title", untranslated(distribution.title, "dct:title", distribution.more))
    told.text(
        it, "dct:description", untranslated(distribution.description, "dct:description", distribution.more)
    )
    told.date(it, "dct:issued", distribution.issued)
    told.date(it, "dct:modified", distribution.modified)


def _describe_form(told: DcatStatements, it: NamedNode, part: NamedNode, distribution: Distribution) -> None:
    kind = authority.media_type(distribution.media_type) or authority.media_type(distribution.format)
    if kind:
        told.typed(it, "dcat:mediaType", NamedNode(authority.media_type_iri(kind)), "dct:MediaType")
    form = distribution.format or (None if kind else distribution.media_type)
    code = authority.file_type(form) if form else None
    iri = authority.file_type_iri(code) if code else None
    own = NamedNode(part.value + "/format")
    told.named(it, "dct:format", "dct:MediaTypeOrExtent", form, own, iri)
    size = distribution.byte_size
    if size is not None and 0 <= size <= _LARGEST_SIZE:
        told.add(it, "dcat:byteSize", count_literal(size))


def _describe_checksum(
    told: DcatStatements, it: NamedNode, part: NamedNode, distribution: Distribution
) -> None:
    name, value = (
        ("sha256", distribution.sha256) if distribution.sha256 else distribution.checksum or ("", "")
    )
    algorithm = re.sub(r"[^a-z0-9]", "", name.lower())
    digits = value.strip().lower()
    if _DIGEST_SIZES.get(algorithm) != len(digits) or not re.fullmatch(r"[0-9a-f]+", digits):
        return
    checksum = NamedNode(part.value + "/checksum")
    told.typed(it, "spdx:checksum", checksum, "spdx:Checksum")
    told.typed(
        checksum, "spdx:algorithm", word(f"spdx:checksumAlgorithm_{algorithm}"), "spdx:ChecksumAlgorithm"
    )
    told.add(checksum, "spdx:checksumValue", hex_literal(digits))


def _describe_terms(
    told: DcatStatements, it: NamedNode, number: int, distribution: Distribution, licence: str | None
) -> None:
    """Licence, rights, languages, standards; the dataset's licence is that of its distributions."""
    own = ("distribution", str(number))
    part = told.part(*own, "licence") if distribution.licence else told.part("licence")
    licence = distribution.licence or licence
    told.named(it, "dct:license", "dct:LicenseDocument", licence, part, authority.licence_iri(licence))
    rights = untranslated(distribution.rights, "dct:rights", distribution.more)
    told.named(it, "dct:rights", "dct:RightsStatement", rights, told.part(*own, "rights"))
    for place, tag in enumerate(distribution.language, 1):
        language = told.part(*own, "language", str(place))
        told.named(it, "dct:language", "dct:LinguisticSystem", tag, language, authority.language_iri(tag))
    told.standards(it, distribution.conforms_to, *own)


def _describe_service(
    told: DcatStatements,
    dataset: Dataset,
    node: NamedNode,
    it: NamedNode,
    number: int,
    distribution: Distribution,
) -> None:
    endpoint = sound_iri(distribution.service, web=True)
    if endpoint is None:
        return
    service = told.part("service", str(number))
    told.typed(it, "dcat:accessService", service, "dcat:DataService")
    told.add(service, "dcat:endpointURL", endpoint)
    told.text(service, "dct:title", distribution.title or dataset.title)
    told.add(service, "dcat:servesDataset", node)
    if standard := authority.service_type_iri(distribution.service_kind or ""):
        told.typed(service, "dct:conformsTo", NamedNode(standard), "dct:Standard")
    told.add(NamedNode(told.catalogue), "dcat:service", service)


def _describe_access(told: DcatStatements, it: NamedNode, service: DataService, number: str) -> None:
    """A service that the portal describes beside the distribution. DCAT-AP asks it for an endpoint."""
    endpoints = [iri for url in service.endpoints if (iri := sound_iri(url, web=True))]
    if not endpoints:
        return
    node = sound_iri(service.iri) or told.part("service", number)
    told.typed(it, "dcat:accessService", node, "dcat:DataService")
    told.text(node, "dct:title", service.title or endpoints[0].value)
    for endpoint in endpoints:
        told.add(node, "dcat:endpointURL", endpoint)
    for served in service.serves:
        told.add(node, "dcat:servesDataset", sound_iri(served))
    describe_properties(told, node, service.more, "service", number)
    told.add(NamedNode(told.catalogue), "dcat:service", node)
