"""Tells N-Triples, N-Quads, Turtle, TriG, N3 and SPARQL apart by their first bytes."""

import re

from pyoxigraph import RdfFormat, parse

from tamias.content.formats import N3, NQUADS, NTRIPLES, TRIG, TURTLE
from tamias.content.rdf_share import share_read

SUPERSETS = {
    NTRIPLES: (TURTLE, TRIG, N3, NQUADS),
    TURTLE: (TRIG, N3),
    NQUADS: (),
    TRIG: (N3,),
    N3: (),
}
"""Every file of the first syntax is one of the others too, so a claim of those is no lie."""

HALF = 0.5

_BLANK = re.compile(rb"(?:\s++|#[^\n]*+)*")
_DIRECTIVE = re.compile(
    rb"@prefix\s|@base\s|prefix\s+[\w.-]*:\s*<|base\s*<|@keywords\s|@forall\s|@forsome\s", re.IGNORECASE
)
_STATEMENT = re.compile(
    rb"(?:<[^<>\"{}|^`\\\s]*>|_:[\w.-]+|\[\s*\])\s*(?:a\s|<[^<>\"{}|^`\\\s]*>|[\w-]*:[\w-]+\s)\s*[<\"'_\[(\w:+-]"
    rb"|\[\s+(?:a\s|<[^<>\s]*>\s|[\w-]*:[\w-]+\s)"
    rb"|\(\s*(?:<[^<>\s]*>|\d|\")"
)
_GRAPH = re.compile(
    rb"(?:<[^<>\s]*>|[\w-]{0,64}:[\w-]{0,64}|\[\s*\])\s*\{|\{\s*(?:<[^<>\s]*>|_:[\w.-]+)\s", re.IGNORECASE
)
_N3_ONLY = re.compile(rb"=>|<=\s|@forall\s|@forsome\s|@keywords\s|\?[A-Za-z_]\w*\s", re.IGNORECASE)
_QUERY = re.compile(
    rb"^[ \t]*(?:SELECT|CONSTRUCT|ASK|DESCRIBE|INSERT|DELETE|LOAD|CLEAR|WITH)\b", re.IGNORECASE | re.MULTILINE
)
_QUOTED = re.compile(
    rb'<[^<>"{}|^`\\\s]*+>|"""(?:[^"\\]++|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]++|\\.|\'(?!\'\'))*\'\'\''
    rb'|"(?:[^"\\\n]++|\\.)*"|\'(?:[^\'\\\n]++|\\.)*\'|#[^\n]*+',
    re.DOTALL,
)


def rdf_text_type(text: bytes, claims: tuple[str, ...], *, is_cut: bool = False) -> str | None:
    """The RDF syntax of a text, or None when nothing in it speaks for one."""
    start = _BLANK.match(text).end()  # type: ignore[union-attr]
    if start == len(text):
        return next((claim for claim in claims if claim in SUPERSETS), None)
    seen = _turtle_kind(text[start:])
    if seen is None or seen not in SUPERSETS:
        return seen
    seen = _best_reading(text, seen, is_cut)
    return next((claim for claim in claims if claim in SUPERSETS[seen]), seen)


def begins_with_statement(text: bytes, *, is_cut: bool) -> bool:
    """Whether what begins as a tag would is RDF text: `<a> <b> <c> .` has no end tag and a dot."""
    if not _STATEMENT.match(text):
        return False
    try:
        next(parse(text, format=RdfFormat.TURTLE, base_iri="http://base.invalid/"), None)
    except SyntaxError:
        return False
    return max(share_read(text, syntax, is_cut=is_cut) for syntax in (TURTLE, NQUADS, TRIG)) > HALF


def _best_reading(text: bytes, seen: str, is_cut: bool) -> str:
    """Return the first syntax that reads all of a text, else the one that reads most, else the one seen."""
    best, most = seen, 0.0
    for syntax in (NTRIPLES, NQUADS, seen, TURTLE, TRIG):
        share = share_read(text, syntax, is_cut=is_cut)
        if share > most:
            best, most = syntax, share
        if share == 1:
            break
    return best


def _turtle_kind(text: bytes) -> str | None:
    directive = _DIRECTIVE.match(text)
    named_in_full = text.startswith((b"<", b"{", b"["))  # a prefix would need a directive first
    if not (directive or _STATEMENT.match(text) or (named_in_full and _GRAPH.match(text))):
        return None
    bones = _QUOTED.sub(lambda match: b"<>" if match[0].startswith(b"<") else b" ", text)
    if directive and not text.startswith(b"@") and _QUERY.search(bones):
        return "application/sparql-query"
    if _N3_ONLY.search(bones):
        return N3
    return TRIG if _GRAPH.search(bones) else TURTLE
