"""The IRIs Tamias writes about itself: PROV's and its own, and how an address becomes an IRI.

Every own term stands in `TERMS`; docs/vocabulary.md says the same to the reader of the data.
"""

import re
from functools import cache
from typing import Final

from pyoxigraph import NamedNode

OWN_SPACE: Final = "urn:tamias:"
"""No document may write into a graph whose name begins with this."""

METADATA_GRAPH: Final = NamedNode(OWN_SPACE + "metadata")

VOCABULARY: Final = "https://w3id.org/tamias/vocab#"
"""The base of Tamias's own terms, unless configured."""

ACTIVITIES: Final = "urn:uuid:"
"""The base of activities, followed by the capture's id, unless configured."""

RDF_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
RDFS_LABEL: Final = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")

PROV: Final = "http://www.w3.org/ns/prov#"
PROV_ACTIVITY: Final = NamedNode(PROV + "Activity")
PROV_ENTITY: Final = NamedNode(PROV + "Entity")
PROV_SOFTWARE_AGENT: Final = NamedNode(PROV + "SoftwareAgent")
PROV_STARTED: Final = NamedNode(PROV + "startedAtTime")
PROV_ENDED: Final = NamedNode(PROV + "endedAtTime")
PROV_AGENT: Final = NamedNode(PROV + "wasAssociatedWith")
PROV_GENERATED: Final = NamedNode(PROV + "generated")
PROV_GENERATED_BY: Final = NamedNode(PROV + "wasGeneratedBy")

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
XSD_ANY_URI: Final = NamedNode(XSD + "anyURI")
XSD_DATE_TIME: Final = NamedNode(XSD + "dateTime")
XSD_INTEGER: Final = NamedNode(XSD + "integer")

SPACES: Final = {
    "arc": "https://w3id.org/tamias/archive#", "quality": "https://w3id.org/tamias/quality#", "adms": "http://www.w3.org/ns/adms#",
    "csvw": "http://www.w3.org/ns/csvw#",
    "dcat": "http://www.w3.org/ns/dcat#", "dcatap": "http://data.europa.eu/r5r/",
    "dct": "http://purl.org/dc/terms/", "dqv": "http://www.w3.org/ns/dqv#",
    "eli": "http://data.europa.eu/eli/ontology#", "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.opengis.net/ont/geosparql#", "prov": PROV,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "sd": "http://www.w3.org/ns/sparql-service-description#", "skos": "http://www.w3.org/2004/02/skos/core#",
    "spdx": "http://spdx.org/rdf/terms#", "tamias": VOCABULARY, "vcard": "http://www.w3.org/2006/vcard/ns#",
    "void": "http://rdfs.org/ns/void#", "xsd": XSD,
}  # fmt: skip
"""Vocabularies by their short names. `arc` has the Open Dataset Archive's terms that no public one has."""

TERMS: Final = frozenset(
    {
        "address",
        "byteSize",
        "crawl",
        "deferred",
        "depth",
        "finalUrl",
        "foundType",
        "hop",
        "links",
        "location",
        "notPermitted",
        "originalName",
        "outcome",
        "position",
        "problem",
        "reason",
        "renamedGraph",
        "requestedUrl",
        "sha256",
        "signal",
        "status",
        "toldType",
        "triples",
        "url",
        "userAgent",
    }
)

_NO_IRI = re.compile(r'%(?![0-9A-Fa-f]{2})|[\x00-\x20<>"{}|\\^`\x7f]|[^\x00-\x7f]')
_LONGEST_IRI = 4096
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s].*", re.DOTALL)
_WEB = re.compile(r"(?:https?|ftps?)://[^\s/?#]+.*", re.DOTALL | re.IGNORECASE)
_UP_TO_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


@cache
def term(name: str) -> NamedNode:
    """Return one of Tamias's own terms; `KeyError` for a name that is none."""
    if name not in TERMS:
        raise KeyError(f"{name!r} is not a term of Tamias's vocabulary (tamias.model.vocabulary.TERMS)")
    return NamedNode(VOCABULARY + name)


@cache
def word(short: str) -> NamedNode:
    """Return a term of a vocabulary by its short name.

    >>> word("dct:title")
    <NamedNode value=http://purl.org/dc/terms/title>
    """
    space, _, name = short.partition(":")
    return NamedNode(SPACES[space] + name)


def address_iri(url: str) -> str:
    """A `fetch_url` as an IRI: what URLs allow and IRIs do not is percent-encoded, nothing else changes.

    >>> address_iri("http://[::1]/a?b[]={c}&d=5%"), address_iri("http://example.org/a%20b?c")
    ('http://[::1]/a?b%5B%5D=%7Bc%7D&d=5%25', 'http://example.org/a%20b?c')
    """
    iri = _NO_IRI.sub(_escaped, url)
    if "[" not in iri and "]" not in iri:
        return iri
    host = _UP_TO_PATH.match(iri)
    behind = host.end() if host else 0
    return iri[:behind] + iri[behind:].replace("[", "%5B").replace("]", "%5D")


def sound_iri(text: str | None, *, web: bool = False) -> NamedNode | None:
    """Return the absolute IRI that a text is; None for any other text.

    With `web` it must be an address that can be fetched, and invalid characters are percent-encoded.

    >>> sound_iri("https://example.org/a b", web=True), sound_iri("see the website")
    (<NamedNode value=https://example.org/a%20b>, None)
    """
    text = (text or "").strip()
    if len(text) > _LONGEST_IRI or not (_WEB if web else _ABSOLUTE).fullmatch(text):
        return None
    try:
        return NamedNode(text)
    except ValueError:
        pass
    try:
        return NamedNode(address_iri(text)) if web else None
    except ValueError:
        return None


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace"))
