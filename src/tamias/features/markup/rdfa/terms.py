"""The initial context of RDFa 1.1 and of its host languages, after the W3C's recommendation."""

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
