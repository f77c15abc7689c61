"""A small RDF document that is what it is declared to be: a strict parse proves it, nothing is guessed.

Everything else (faults, headers that say more, other types) goes through `content` and `analyse`.
"""

import re

from pyoxigraph import RdfFormat, parse

from tamias.content.formats import NQUADS, NTRIPLES, RDF_XML, TRIG, TURTLE, syntax_of
from tamias.content.quad_lines import QuadLines
from tamias.content.sniff import claimed_types, found_charset
from tamias.model.capture import Capture
from tamias.model.document import DocumentBudget
from tamias.permit.signals import SIGNAL_HEADERS
from tamias.settings import AnalyseSettings

QUICK_BYTES = 32 * 1024
HARMLESS_BYTES = 4 * 1024
"""A document of so few becomes a megabyte at the most."""
MOST_TRIPLE_TERMS = 100
_SYNTAXES = {kind: syntax_of(kind) for kind in (NTRIPLES, NQUADS, TURTLE, TRIG, RDF_XML)}
_BY_LINE = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
_WITH_GRAPHS = (RdfFormat.N_QUADS, RdfFormat.TRIG)
_SAYS_MORE = frozenset({"link", *SIGNAL_HEADERS})
_MARKS = (b"\xef", b"\xfe", b"\xff")
_XML_START = re.compile(rb"\s*(?:<\?xml[^>]*\?>\s*)?<(?:[\w.-]+:)?RDF[\s>]")


def quick_lines(
    capture: Capture, data: bytes | None, limits: AnalyseSettings, budget: DocumentBudget | None
) -> tuple[str, list[QuadLines]] | None:
    """The media type and the statements; None when the document has to go the long way.

    No budget is needed for a document of `HARMLESS_BYTES`. Raises as `DocumentBudget.check` does.
    """
    if data is None or not 0 < len(data) <= QUICK_BYTES or data[:1] in _MARKS or not capture.hops:
        return None
    url, declared = capture.final_url, capture.declared_type
    media_type = next(iter(claimed_types(declared, url.partition("#")[0].partition("?")[0])), "")
    syntax = _SYNTAXES.get(media_type)
    if syntax is None or not _SAYS_MORE.isdisjoint([name.lower() for name, _ in capture.hops[-1].headers]):
        return None
    if not _is_harmless(data, syntax, declared, limits):
        return None
    try:
        return media_type, _lines(data, syntax, url, budget)
    except (SyntaxError, ValueError):  # a fault, or the address is not an IRI
        return None


def _lines(data: bytes, syntax: RdfFormat, url: str, budget: DocumentBudget | None) -> list[QuadLines]:
    from tamias.analyse.rdf.statements import written
    from tamias.analyse.rdf.turtle import plain_lines

    has_graphs = syntax in _WITH_GRAPHS
    if syntax not in _BY_LINE:
        return written(parse(data, format=syntax, base_iri=url), budget, has_graphs=has_graphs)
    plain = plain_lines(data, has_graphs=has_graphs)
    if sum(len(lines.nquads) for lines in plain) == len(data):
        return plain
    return written(parse(data, format=syntax), None, has_graphs=has_graphs)


def _is_harmless(data: bytes, syntax: RdfFormat, declared: str | None, limits: AnalyseSettings) -> bool:
    """Tell if the data cannot nest too deep and holds nothing that the parser would silently skip."""
    if syntax in _BY_LINE:
        return data.count(b"<<") <= MOST_TRIPLE_TERMS
    if syntax != RdfFormat.RDF_XML:
        return data.count(b"[") + data.count(b"(") + data.count(b"{") <= limits.turtle_depth
    from tamias.analyse.xml.nodes import has_forbidden, has_unheeded

    return (
        b"<!" not in data
        and data.count(b"<") - data.count(b"</") <= limits.xml_depth
        and _XML_START.match(data) is not None
        and data.rstrip().endswith(b"RDF>")
        and found_charset(data[:256], declared, RDF_XML) in (None, "utf-8")
        and b"Literal" not in data
        and not has_unheeded(data)
        and not has_forbidden(data)
    )
