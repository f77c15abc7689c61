"""RDF/XML inside other XML: the metadata of drawings, the records of catalogue services."""

from collections.abc import Iterator

from lxml import etree

from tamias.analyse.markup.page import MarkupPage
from tamias.analyse.rdf.rdf_xml import rdf_xml_quads
from tamias.analyse.rdf.recover import Faults, batched
from tamias.model.finding import Finding, Problem
from tamias.settings import AnalyseSettings

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def extract(page: MarkupPage) -> Iterator[Finding]:
    """The statements of every `rdf:RDF` element that stands in none of its kind."""
    faults = Faults(AnalyseSettings().max_errors, page.budget)
    for element in page.tree.iter(f"{{{RDF}}}RDF"):
        if next(element.iterancestors(f"{{{RDF}}}RDF"), None) is None:
            yield from _statements(element, element.base or page.base, faults)
    yield from faults.summary()


def _statements(element: etree._Element, base: str, faults: Faults) -> Iterator[Finding]:
    """Lines are counted from the beginning of the element, so they are not told."""
    data = etree.tostring(element, encoding="utf-8", with_tail=False)
    for found in batched(rdf_xml_quads(data, base, faults)):
        yield Problem(f"RDF/XML: {found.what}") if isinstance(found, Problem) else found
