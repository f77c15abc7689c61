"""What the further properties of datasets, distributions and services become, as DCAT-AP 3 types them."""

import re
from collections.abc import Sequence
from typing import Any, Final

from pyoxigraph import Literal, NamedNode

from tamias.harvesters.kit.statements import DcatStatements
from tamias.harvesters.kit.terms import sound_iri, text_literal, word
from tamias.model.dataset import DcatProperty

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
