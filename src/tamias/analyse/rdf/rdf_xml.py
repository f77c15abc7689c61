"""RDF/XML that is held in memory, as a document or inside other XML, into quads."""

from collections.abc import Iterator

from pyoxigraph import RdfFormat, parse

from tamias.analyse.rdf.recover import Faults, Read, TextPlace
from tamias.analyse.rdf.statements import written
from tamias.analyse.xml.nodes import Nodes, Note, has_forbidden, has_unheeded, mended
from tamias.content.quad_lines import QuadLines
from tamias.model.document import DocumentBudget
from tamias.model.finding import Problem


def rdf_xml_quads(text: bytes, base: str | None, faults: Faults) -> Iterator[Read]:
    """Read a document as it is, else with known errors mended and reported, else node by node."""
    notes: list[Note] = []
    try:
        found = None if has_unheeded(text) else _strictly(text, base, faults.budget)
    except SyntaxError:
        found = None
    if found is None:
        text, notes = mended(text, base)
        try:
            found = _strictly(text, base, faults.budget)
        except SyntaxError as fault:
            yield from Nodes(text, base, faults.budget).found(faults)
            yield from if_silent(fault, faults)
    yield from found or ()
    for note in notes:
        yield from faults.note(*note)


def _strictly(text: bytes, base: str | None, budget: DocumentBudget) -> list[QuadLines]:
    if has_forbidden(text):
        raise SyntaxError("a character that XML forbids")
    return written(parse(text, format=RdfFormat.RDF_XML, base_iri=base), budget, has_graphs=False)


def if_silent(fault: SyntaxError, faults: Faults) -> Iterator[Problem]:
    """The fault of the whole, where no part of it has one."""
    if not faults.count:
        yield from faults.report(
            fault.msg, TextPlace(fault.lineno, fault.offset or 1) if fault.lineno else None
        )
