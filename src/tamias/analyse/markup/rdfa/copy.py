"""Property copying of HTML+RDFa 1.1: what an `rdfa:Pattern` says is said of whoever copies it."""

from pyoxigraph import BlankNode, NamedNode, Quad, Triple

from tamias.analyse.markup.rdfa.terms import RDF, RDFA
from tamias.analyse.markup.statements import MarkupStatements

_TYPE = NamedNode(RDF + "type")
_COPY = NamedNode(RDFA + "copy")
_PATTERN = NamedNode(RDFA + "Pattern")

Subjects = set[NamedNode | BlankNode | Triple]


def copy_patterns(statements: MarkupStatements) -> None:
    """Copies, over and over while patterns copy others, and takes the patterns that were used away."""
    quads = statements.quads()
    patterns = {quad.subject for quad in quads if quad.predicate == _TYPE and quad.object == _PATTERN}
    copied: dict[Quad, None] = {}
    while pending := [quad for quad in quads if _is_copy(quad, patterns) and quad not in copied]:
        said = _by_subject(quads, patterns)
        for copy in pending:
            for quad in said[copy.object]:
                if quad.object != _PATTERN:
                    statements.add(copy.subject, quad.predicate, quad.object)
        copied.update(dict.fromkeys(pending))
        quads = statements.quads()
    used = {copy.object for copy in copied}
    statements.remove(quad for quad in quads if quad in copied or quad.subject in used)


def _is_copy(quad: Quad, patterns: Subjects) -> bool:
    return quad.predicate == _COPY and quad.object in patterns


def _by_subject(quads: list[Quad], patterns: Subjects) -> dict[object, list[Quad]]:
    said: dict[object, list[Quad]] = {pattern: [] for pattern in patterns}
    for quad in quads:
        if quad.subject in said:
            said[quad.subject].append(quad)
    return said
