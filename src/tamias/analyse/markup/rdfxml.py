"""RDF/XML inside other XML: the metadata of drawings, mostly."""

from collections.abc import Iterator

from lxml import etree
from pyoxigraph import RdfFormat, parse

from tamias.analyse.markup.page import Page
from tamias.analyse.markup.rdfa_terms import RDF
from tamias.model.finding import Finding, Problem, Quads

GATE = (RDF.encode(),)


def extract(page: Page) -> Iterator[Finding]:
    """The statements of every `rdf:RDF` element that stands in none of its kind."""
    for element in page.tree.iter(f"{{{RDF}}}RDF"):
        if next(element.iterancestors(f"{{{RDF}}}RDF"), None) is None:
            yield from _statements(element, element.base or page.base)


def _statements(element: etree._Element, base: str) -> Iterator[Finding]:
    data = etree.tostring(element, encoding="utf-8", with_tail=False)
    try:
        quads = list(parse(data, format=RdfFormat.RDF_XML, base_iri=base, lenient=True))
    except (SyntaxError, ValueError) as fault:
        yield Problem(f"RDF/XML: {fault}"[:500])
        return
    if quads:
        yield Quads(quads)
