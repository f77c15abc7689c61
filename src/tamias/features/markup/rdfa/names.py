"""Nodes from the values of RDFa attributes: terms, CURIEs, safe CURIEs and IRIs, in their scope."""

import re
from enum import Enum
from itertools import islice, pairwise
from typing import cast

import msgspec
from lxml import etree
from pyoxigraph import BlankNode, NamedNode

from tamias.analyse.markup.page import MarkupPage
from tamias.features.markup.statements import MarkupStatements, Node, TooMuchError, is_absolute, resolved

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFA = "http://www.w3.org/ns/rdfa#"
XHV = "http://www.w3.org/1999/xhtml/vocab#"

_W3C = "http://www.w3.org/"
_OF_THE_W3C = {
    "as": "https://www.w3.org/ns/activitystreams#",
    "csvw": _W3C + "ns/csvw#",
    "dcat": _W3C + "ns/dcat#",
    "dqv": _W3C + "ns/dqv#",
    "duv": "https://www.w3.org/ns/duv#",
    "grddl": _W3C + "2003/g/data-view#",
    "jsonld": _W3C + "ns/json-ld#",
    "ldp": _W3C + "ns/ldp#",
    "ma": _W3C + "ns/ma-ont#",
    "oa": _W3C + "ns/oa#",
    "odrl": _W3C + "ns/odrl/2/",
    "org": _W3C + "ns/org#",
    "owl": _W3C + "2002/07/owl#",
    "prov": _W3C + "ns/prov#",
    "qb": "http://purl.org/linked-data/cube#",
    "rdf": RDF,
    "rdfa": RDFA,
    "rdfs": _W3C + "2000/01/rdf-schema#",
    "rif": _W3C + "2007/rif#",
    "rr": _W3C + "ns/r2rml#",
    "sd": _W3C + "ns/sparql-service-description#",
    "skos": _W3C + "2004/02/skos/core#",
    "skosxl": _W3C + "2008/05/skos-xl#",
    "sosa": _W3C + "ns/sosa/",
    "ssn": _W3C + "ns/ssn/",
    "time": _W3C + "2006/time#",
    "void": "http://rdfs.org/ns/void#",
    "wdr": _W3C + "2007/05/powder#",
    "wdrs": _W3C + "2007/05/powder-s#",
    "xhv": XHV,
    "xml": _W3C + "XML/1998/namespace",
    "xsd": _W3C + "2001/XMLSchema#",
}
_WIDELY_USED = {
    "cc": "http://creativecommons.org/ns#",
    "ctag": "http://commontag.org/ns#",
    "dc": "http://purl.org/dc/terms/",
    "dc11": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "gr": "http://purl.org/goodrelations/v1#",
    "ical": _W3C + "2002/12/cal/icaltzd#",
    "og": "http://ogp.me/ns#",
    "rev": "http://purl.org/stuff/rev#",
    "schema": "http://schema.org/",
    "sioc": "http://rdfs.org/sioc/ns#",
    "v": "http://rdf.data-vocabulary.org/#",
    "vcard": _W3C + "2006/vcard/ns#",
}
PREFIXES = {**_OF_THE_W3C, **_WIDELY_USED}

OPEN_GRAPH = {
    "article": "http://ogp.me/ns/article#",
    "book": "http://ogp.me/ns/book#",
    "business": "http://ogp.me/ns/business#",
    "fb": "http://ogp.me/ns/fb#",
    "music": "http://ogp.me/ns/music#",
    "place": "http://ogp.me/ns/place#",
    "product": "http://ogp.me/ns/product#",
    "profile": "http://ogp.me/ns/profile#",
    "video": "http://ogp.me/ns/video#",
}
"""Namespaces of the Open Graph protocol that pages use without declaring them; no schemes of IRIs."""

TERMS = {
    "describedby": _W3C + "2007/05/powder-s#describedby",
    "license": XHV + "license",
    "role": XHV + "role",
}
_LINK_TYPES = (
    "alternate appendix bookmark chapter cite contents copyright first glossary help icon index last license"
    " meta next p3pv1 prev previous role section start stylesheet subsection top up"
)
LINK_TERMS = {name: XHV + name for name in _LINK_TYPES.split()}
XHTML_TERMS = {**TERMS, **LINK_TERMS}


_PAGE_PREFIXES = {**OPEN_GRAPH, **PREFIXES}
_RDFA_VERSION = re.compile(r"(?i)\bX?HTML\+RDFa\s+(1\.[01])")


class Language(Enum):
    """A host language: a family of them with the same rules."""

    HTML = "HTML 4, HTML5 and XHTML5"
    XHTML = "XHTML 1"
    XML = "SVG and other XML"


class HostLanguage(msgspec.Struct, frozen=True):
    """The rules that depend on the host language of a document."""

    language: Language
    is_old: bool
    """RDFa 1.0 rather than 1.1."""
    prefixes: dict[str, str]
    terms: dict[str, str]

    @property
    def has_head(self) -> bool:
        return self.language is not Language.XML


def host_of(page: MarkupPage) -> HostLanguage:
    """The host language by media type and document type; the version by what the document says of itself."""
    declared = page.tree.get("version") or ""
    said = _RDFA_VERSION.search(declared) or _RDFA_VERSION.search(page.doctype)
    language = _language(page, declared)
    if said and said[1] == "1.0":
        return HostLanguage(language, True, {}, LINK_TERMS)
    prefixes = PREFIXES if language is Language.XML else _PAGE_PREFIXES
    return HostLanguage(language, False, prefixes, XHTML_TERMS if language is Language.XHTML else TERMS)


def _language(page: MarkupPage, declared: str) -> Language:
    if page.is_xml:
        return Language.XML
    doctype = page.doctype.upper()
    if "XHTML+RDFA" in doctype or declared.upper().startswith("XHTML+RDFA"):
        return Language.XHTML
    return Language.XHTML if page.is_xhtml and "DTD XHTML" in doctype else Language.HTML


_XML = "{http://www.w3.org/XML/1998/namespace}"
_TERM = re.compile(r"[^\W\d][\w.\-/·]*")
_PREFIX = re.compile(r"[^\W\d_][\w.\-·]*|_[\w.\-·]+")

MAX_PREFIXES = 500
"""At one place. Every element that declares another has a copy of those around it."""
MAX_NAMESPACE = 2000
"""Characters that are written before every name in it."""
NAMESPACE_LOOKUPS = 5_000_000


class Scope(msgspec.Struct, frozen=True):
    """The meaning of names at an element, and the language of its text."""

    base: str
    language: str | None
    prefixes: dict[str, str] = {}
    """Those that the document declares."""
    vocabulary: str | None = None


class Names:
    """Makes nodes of names for one document."""

    def __init__(self, host: HostLanguage, statements: MarkupStatements, page: MarkupPage) -> None:
        self._host = host
        self._statements = statements
        self._page = page
        self._has_namespaces = page.is_xhtml or page.is_xml
        self._lookups_left = NAMESPACE_LOOKUPS
        self._blank: dict[str, BlankNode] = {}

    def outermost(self) -> Scope:
        """The scope around the root element, which already has its base: the document is called by it."""
        base = self._base(self._page.tree, self._page.base.partition("#")[0])
        return Scope(base, None)

    def inside(self, element: etree._Element, scope: Scope) -> Scope:
        """The scope of an element in another."""
        changes: dict[str, object] = {}
        language = self._language(element)
        if language is not None:
            changes["language"] = language or None
        prefixes = self._declared(element)
        if prefixes and len(scope.prefixes) < MAX_PREFIXES:
            changes["prefixes"] = {**scope.prefixes, **prefixes}
        vocabulary = None if self._host.is_old else element.get("vocab")
        if vocabulary is not None and len(vocabulary) <= MAX_NAMESPACE:
            changes["vocabulary"] = resolved(vocabulary.strip(), scope.base) if vocabulary.strip() else None
        if self._host.language is Language.XML and element.getparent() is not None:
            changes["base"] = self._base(element, scope.base)
        return msgspec.structs.replace(scope, **changes) if changes else scope

    def predicates(self, names: str, scope: Scope, *, is_relation: bool = False) -> list[NamedNode]:
        """The properties that `property`, `rel` or `rev` name; what names none is passed over."""
        found = (self.name(name, scope, has_terms=is_relation) for name in names.split())
        return list(dict.fromkeys(node for node in found if isinstance(node, NamedNode)))

    def types(self, names: str, scope: Scope) -> list[Node]:
        """The classes that `typeof` names."""
        found = (self.name(name, scope, has_terms=False) for name in names.split())
        return [node for node in found if node is not None]

    def name(self, name: str, scope: Scope, *, has_terms: bool) -> Node | None:
        """A term, a CURIE or an absolute IRI. In RDFa 1.0 only relations may be terms, and none an IRI."""
        if ":" not in name:
            return self._term(name, scope) if has_terms or not self._host.is_old else None
        node = self._curie(name, scope)
        if node is None and not self._host.is_old and is_absolute(name):
            return self._statements.node(name)
        return node

    def resource(self, value: str | None, scope: Scope) -> Node | None:
        """The value of `about` or `resource`: a CURIE, safe or not, or an IRI. None where it is nothing."""
        if value is None:
            return None
        value = value.strip()
        if value.startswith("[") and value.endswith("]"):
            return self._curie(value[1:-1], scope) if value != "[]" else None
        node = None if self._host.is_old or value.startswith(":") else self._curie(value, scope)
        return node or self._statements.reference(value, scope.base)

    def address(self, value: str | None, scope: Scope) -> Node | None:
        """The value of `href` or `src`."""
        return None if value is None else self._statements.reference(value, scope.base)

    def _term(self, name: str, scope: Scope) -> NamedNode | None:
        if not _TERM.fullmatch(name):
            return None
        if scope.vocabulary is not None:
            return self._statements.node(scope.vocabulary + name)
        iri = self._host.terms.get(name) or self._host.terms.get(name.lower())
        return None if iri is None else self._statements.node(iri)

    def _curie(self, curie: str, scope: Scope) -> Node | None:
        prefix, colon, reference = curie.partition(":")
        if not colon or reference.startswith("//"):
            return None
        if prefix == "_":
            return self._blank.setdefault(reference, BlankNode())
        space = self._space(prefix.lower(), scope) if prefix else XHV
        if space is None:
            return None
        # A relative namespace is none that RDFa would resolve; so it is left to the document's address.
        return self._statements.node(resolved(space + reference, self._page.url))

    def _space(self, prefix: str, scope: Scope) -> str | None:
        declared = scope.prefixes.get(prefix)
        return self._host.prefixes.get(prefix) if declared is None else declared

    def _base(self, element: etree._Element, outer: str) -> str:
        declared = element.get(_XML + "base") if self._host.language is Language.XML else None
        if declared is None or len(declared) > MAX_NAMESPACE:
            return outer
        return resolved(declared.strip(), outer).partition("#")[0]

    def _language(self, element: etree._Element) -> str | None:
        if self._host.language is Language.XML:
            return element.get(_XML + "lang")
        for attribute in (_XML + "lang", "xml:lang", "lang"):
            language = element.get(attribute)
            if language is not None:
                return language
        return None

    def _declared(self, element: etree._Element) -> dict[str, str]:
        """The prefixes that `xmlns:` attributes and `prefix` declare on an element, the latter stronger."""
        found = self._namespaces(element)
        words = [] if self._host.is_old else (element.get("prefix") or "").split()
        if not found and not words:
            return {}
        found.extend((word[:-1], space) for word, space in pairwise(words) if word.endswith(":"))
        declared = {
            name.lower(): space
            for name, space in found
            if _PREFIX.fullmatch(name) and len(space) <= MAX_NAMESPACE
        }
        return dict(islice(declared.items(), MAX_PREFIXES))

    def _namespaces(self, element: etree._Element) -> list[tuple[str, str]]:
        if not self._has_namespaces:
            names = cast("list[str]", element.keys())
            return [(name[6:], element.get(name) or "") for name in names if name.startswith("xmlns:")]
        inner, parent = element.nsmap, element.getparent()
        outer = {} if parent is None else parent.nsmap
        self._lookups_left -= len(inner)
        if self._lookups_left < 0:
            raise TooMuchError
        return [(name, space) for name, space in inner.items() if name and outer.get(name) != space]
