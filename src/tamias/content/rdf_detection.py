"""The share of a text that an RDF syntax can read: the parser decides, not the first character. Pure.

To cut a text into statements it is read as signs: what hides a sign, and where statements and directives end.
"""

import re
from collections.abc import Iterator
from itertools import islice

from pyoxigraph import RdfFormat, parse

from tamias.content.formats import N3, NQUADS, NTRIPLES, TRIG, TURTLE, syntax_of

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
_FIRST_DIRECTIVE = re.compile(
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
    """Return whether what begins like a tag is RDF text: `<a> <b> <c> .` has no end tag and a dot."""
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
    directive = _FIRST_DIRECTIVE.match(text)
    named_in_full = text.startswith((b"<", b"{", b"["))  # a prefix would need a directive first
    if not (directive or _STATEMENT.match(text) or (named_in_full and _GRAPH.match(text))):
        return None
    bones = _QUOTED.sub(lambda match: b"<>" if match[0].startswith(b"<") else b" ", text)
    if directive and not text.startswith(b"@") and _QUERY.search(bones):
        return "application/sparql-query"
    if _N3_ONLY.search(bones):
        return N3
    return TRIG if _GRAPH.search(bones) else TURTLE


_STRING = (
    rb'"""(?:[^"\\]++|\\.|"(?!""))*(?:"""|\Z)|\'\'\'(?:[^\'\\]++|\\.|\'(?!\'\'))*(?:\'\'\'|\Z)'
    rb'|"(?:[^"\\\n]++|\\.)*["\n]?|\'(?:[^\'\\\n]++|\\.)*[\'\n]?'
)
_IRI = rb'<(?:[^<>"{}|^`\\\s]++|\\[uU])*>?'
ATOM = rb"(?:%b|%b|#[^\n]*|\\.)" % (_STRING, _IRI)
"""What hides every sign in it; a string that is not closed ends with its line."""
DIRECTIVES = (
    rb"(?P<directive>^[ \t]*(?i:prefix[ \t]+[^\s:<]*:\s*<[^<>\s]*>|base\s*<[^<>\s]*>))"
    rb"|(?P<before>^[ \t]*@(?:prefix|base)\b)"
)
DOT = rb"(?P<dot>\.(?![\w:%\\.\-\x80-\xff]))"
BRACES = rb"(?P<open>\{)|(?P<close>\})"
BOUNDARY = re.compile(ATOM + rb"|" + DIRECTIVES + rb"|" + DOT, re.DOTALL | re.MULTILINE)
BOUNDARY_OR_BRACE = re.compile(
    ATOM + rb"|" + DIRECTIVES + rb"|" + DOT + rb"|" + BRACES, re.DOTALL | re.MULTILINE
)
"""Ends of statements and directives, and where a graph or formula begins and ends."""


SYNTAXES = {kind: syntax for kind in (NTRIPLES, NQUADS, TURTLE, TRIG, N3) if (syntax := syntax_of(kind))}
BY_LINE = (NTRIPLES, NQUADS)
MOST_STATEMENTS = 100
"""Statements that are tried one by one, where not all can be read at once."""
MOST_BYTES = 128 * 1024
"""Bytes that are parsed for that, as each statement is read under all prefixes before it."""

_BASE = "http://base.invalid/"
_END = re.compile(rb"\.[ \t]{0,9}\r?\n")
_DIRECTIVE = re.compile(rb"\s*(?:@(?:prefix|base)\b|(?i:prefix|base|version)\s)")
_ABSOLUTE_START = re.compile(
    rb"[ \t]*(?:<[A-Za-z][\w+.-]*:[^<>\s]*>|_:\S+)\s*<[A-Za-z][\w+.-]*:[^<>\s]*>\s*[<\"_]"
)


def share_read(text: bytes, media_type: str, *, is_cut: bool) -> float:
    """The share of a text's statements that a syntax reads, from 0 to 1; of a cut one, all but the last."""
    syntax = SYNTAXES[media_type]
    whole = _up_to_last_end(text, media_type) if is_cut else text
    if is_cut and not whole:  # the first statement is longer than what is seen
        return float(media_type in BY_LINE and _ABSOLUTE_START.match(text) is not None)
    if _reads(whole, syntax):
        return 1.0
    if media_type == N3:  # rules and formulae do not end where statements do
        return 0.0
    if media_type in BY_LINE:
        pieces = [line for line in whole.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#")]
        read = [_reads(line, syntax) for line in pieces[:MOST_STATEMENTS]]
    else:
        read = list(islice(_each_read(whole, syntax), MOST_STATEMENTS))
        if is_cut:
            del read[-1:]
    return sum(read) / len(read) if read else 0.0


def _reads(text: bytes, syntax: RdfFormat) -> bool:
    base = None if syntax in (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS) else _BASE
    try:
        for _ in parse(text, format=syntax, base_iri=base):
            pass
    except SyntaxError:
        return False
    return True


def _up_to_last_end(text: bytes, media_type: str) -> bytes:
    if media_type in BY_LINE:
        return text[: text.rfind(b"\n") + 1]
    return text[: max((found.end() for found in _END.finditer(text)), default=0)]


def _each_read(text: bytes, syntax: RdfFormat) -> Iterator[bool]:
    """Yield for each statement whether it can be read; in Turtle none inside braces can."""
    directives, left = b"", MOST_BYTES
    for opening, statement in _statements(text):
        if not opening and _DIRECTIVE.match(statement):
            if _reads(statement, syntax):
                directives += statement + b"\n"
        elif opening and syntax != RdfFormat.TRIG:
            yield False
        elif left > 0:
            graph = b"%b%b}" % (opening, statement) if opening else statement
            left -= len(directives) + len(graph)
            yield _reads(directives + graph, syntax)


def _statements(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each statement and directive, with the name and the brace of its graph."""
    opening, start = b"", 0
    for found in BOUNDARY_OR_BRACE.finditer(text):
        kind, begin, end = found.lastgroup, found.start(), found.end()
        if kind == "open" and not opening and text[end : end + 1] != b"|":
            opening, start = text[start:end], end
        elif kind == "close" and opening and text[begin - 1 : begin] != b"|":
            if text[start:begin].strip():
                yield opening, text[start:begin]
            opening, start = b"", end
        elif kind in ("dot", "directive"):
            yield opening, text[start:end]
            start = end
        elif kind == "before" and text[start:begin].strip():
            yield opening, text[start:begin]
            opening, start = b"", begin
    if text[start:].strip():
        yield opening, text[start:]
