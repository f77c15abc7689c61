"""N-Triples, N-Quads and Turtle as text: blocks of whole lines or statements, and their parts.

Of Notation3 what is RDF: formulae are told and left out, the data around them is read.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, groupby
from typing import BinaryIO, TypeVar

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, parse

from tamias.analyse.chunks import as_stream, read_chunks
from tamias.analyse.rdf.recover import Faults, Piece, Read, TextPlace, read_on, taken_apart
from tamias.analyse.rdf.statements import bounded, written
from tamias.content.quad_lines import QuadLines
from tamias.content.rdf_detection import ATOM, BOUNDARY, BOUNDARY_OR_BRACE
from tamias.model.document import DocumentBudget, TextPosition

# Possessive, so that a long literal takes no memory to match; but not where a group could fail half-way and
# something could follow there, for then early releases of Python 3.11 forget to go back.
_SIGNS = rb"A-Za-z0-9._~!$&'()*+,;=:@/%\-\x80-\xbf\xc3-\xec"
"""Letters of Unicode up to U+CFFF, with the bytes known to be UTF-8: none of them is refused in an IRI."""
_IRI = rb"<https?://[A-Za-z0-9.\-]++/[%b?]*+(?:#[%b?]*+)?>" % (_SIGNS, _SIGNS)
_BAD_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_BLANK = rb"_:[A-Za-z0-9][A-Za-z0-9_]*+"
_STRING = rb'"(?:[^"\\\x00-\x1f\x7f]++|\\[nr"\\])*+"'
_OTHER_TYPE = rb"(?!<http://www\.w3\.org/(?:2001/XMLSchema#string>|1999/02/22-rdf-syntax-ns#))"
"""Of no literal that is written with its type."""
_LITERAL = rb"%b(?:@[a-z]{2}(?:-[A-Z]{2})?|\^\^%b%b)?" % (_STRING, _OTHER_TYPE, _IRI)
_TRIPLE = rb"(?:%b|%b) %b (?:%b|%b|%b)" % (_IRI, _BLANK, _IRI, _IRI, _LITERAL, _BLANK)
_TRIPLES = re.compile(rb"(?:%b \.\n)*+" % _TRIPLE)
_QUADS = re.compile(rb"(?:%b %b \.\n)*+" % (_TRIPLE, _IRI))


def plain_lines(block: bytes, *, has_graphs: bool) -> list[QuadLines]:
    """The statements up to the first that is not plain: the same that parsing and writing them would give."""
    if _BAD_PERCENT.search(block) or not _is_utf8(block):
        return []
    if end := _end(_TRIPLES, block):
        return [QuadLines(block[:end], DefaultGraph())]
    end = _end(_QUADS, block) if has_graphs else 0
    return list(_runs(block[:end])) if end else []


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _end(grammar: re.Pattern[bytes], block: bytes) -> int:
    """Return where the first line begins that does not fit; the match may end inside of it."""
    found = grammar.match(block)
    return block.rfind(b"\n", 0, found.end()) + 1 if found else 0


def _runs(text: bytes) -> Iterator[QuadLines]:
    """Lines that all name a graph, cut where the next names another."""
    name = _graph(text[: text.index(b"\n") + 1])
    if text.count(name) == text.count(b" .\n"):
        yield _in_graph(text, name)
        return
    for name, lines in groupby(text.splitlines(keepends=True), _graph):
        yield _in_graph(b"".join(lines), name)


def _graph(line: bytes) -> bytes:
    """Return the end of a line from the space before the graph."""
    return line[line.rindex(b" ", 0, -3) :]


def _in_graph(text: bytes, name: bytes) -> QuadLines:
    return QuadLines(text, NamedNode(name[2:-4].decode()))


BLOCK = 1 << 17
MAX_STATEMENT = 1 << 22
"""A longer line is left out; a longer statement is left to a parser that reads on after faults."""
POSITION_BYTES = 1 << 20
"""How far apart positions are told, at least."""
MAX_TRIPLE_TERMS = 1000
"""In one line of N-Triples or N-Quads."""

_LIKE_ANONYMOUS = re.compile(rb"_:[a-f][0-9a-f]{15}")
"""Labels that cannot be told from those of nodes without one, which begin again after a position."""
_ENDS = re.compile(rb"\.[ \t]{0,9}\r?\n")
_LONGEST_END = 12
_NEAR = 4096
_CLAUSE = re.compile(ATOM + rb"|(?P<open>[\[(])|(?P<close>[\])])|(?P<end>;)", re.DOTALL)
_SUBJECT = re.compile(
    rb'(?:\s|#[^\n]*\n)*(<[^<>"{}|^`\\\s]*>|_:[^\s;,<"\[\](){}]+|[^\s;,<>"\[\](){}:@]*:[^\s;,<>"\[\](){}]*)(?=[\s<])'
)
_STRING_OR_IRI = re.compile(ATOM, re.DOTALL)
_MARGIN = re.compile(rb"(?:.*\n)?\Z", re.DOTALL)
_MAX_JOINTS = 20
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9.\-]+(?::[0-9]+)?(?:/[A-Za-z0-9._~/\-]*)?")
"""An IRI beyond doubt, as most addresses are; of others the parser is asked."""

_T = TypeVar("_T")


class StatementLines:
    """N-Triples or N-Quads: every line for itself."""

    def __init__(self, syntax: RdfFormat) -> None:
        self._syntax = syntax

    def found(self, stream: BinaryIO, faults: Faults, start: TextPosition | None = None) -> Iterator[Read]:
        """Reads blocks of lines; of one with a fault, every good line."""
        start = last = start or TextPosition(offset=0, line=1)
        place = TextPlace(start.line)
        for block, end in _line_blocks(stream):
            if len(block) > MAX_STATEMENT:
                yield from faults.report(f"line of more than {MAX_STATEMENT} bytes, left out", place)
            elif block.count(b"<<(") > MAX_TRIPLE_TERMS:
                yield from self._of_deep(block, place, faults)
            else:
                yield from self._of_block(block, place, faults)
            if faults.given_up:
                return
            place = place.after(block)
            if start.offset + end - last.offset >= POSITION_BYTES:
                yield (last := TextPosition(offset=start.offset + end, line=place.line))

    def _of_deep(self, block: bytes, place: TextPlace, faults: Faults) -> Iterator[Read]:
        """Line by line: the parser would die of triple terms that are nested too deep."""
        for line in block.splitlines(keepends=True):
            if line.count(b"<<(") > MAX_TRIPLE_TERMS:
                yield from faults.report(
                    f"more than {MAX_TRIPLE_TERMS} triple terms in a line, left out", place
                )
            else:
                yield from self._of_block(line, place, faults)
            place = place.after(line)

    def _of_block(self, block: bytes, place: TextPlace, faults: Faults) -> Iterator[Read]:
        plain = plain_lines(block, has_graphs=self._syntax == RdfFormat.N_QUADS)
        yield from plain
        faults.good += sum(map(len, plain))
        end = sum(len(lines.nquads) for lines in plain)
        if end < len(block):
            yield from self._of_lines(block[end:], place.after(block[:end]), faults)

    def _of_lines(self, block: bytes, place: TextPlace, faults: Faults) -> Iterator[Read]:
        parser = parse(block, format=self._syntax)
        try:
            found = written(parser, None, has_graphs=self._syntax == RdfFormat.N_QUADS)
        except SyntaxError:
            lines = block.splitlines(keepends=True)
            pieces = [Piece(line, TextPlace(place.line + number)) for number, line in enumerate(lines)]
            yield from taken_apart(pieces, self, faults)
        else:
            faults.good += sum(map(len, found))
            yield from found

    def read(self, text: bytes, *, lenient: bool = False) -> list[Quad]:
        return list(parse(text, format=self._syntax, lenient=lenient))

    def salvage(self, piece: Piece) -> list[Quad]:
        return []


class Turtle:
    """Turtle: every statement for itself, under the prefixes and the base that stand before it."""

    syntax = RdfFormat.TURTLE

    def __init__(self, base: str | None, budget: DocumentBudget) -> None:
        self._base = base
        self._budget = budget
        self._prefixes: dict[str, str] = {}

    def found(self, stream: BinaryIO, faults: Faults, start: TextPosition | None = None) -> Iterator[Read]:
        """Reads blocks of statements; of one with a fault, every good statement and clause."""
        if start is not None:
            self._prefixes, self._base = start.prefixes, start.base
        passed = start or TextPosition(offset=0, line=1)
        place, begun, offset, goes_on = TextPlace(passed.line), b"", passed.offset, True
        for block in _statement_blocks(stream):
            text, begun = begun + block, b""
            if len(text) > MAX_STATEMENT:
                yield from self._streamed(text, stream, place, faults)
                return
            try:
                found = self.written(text)
            except SyntaxError:
                *pieces, last = statements(text, place)
                begun = last.text
                yield from taken_apart(pieces, self, faults)
            else:
                faults.good += sum(map(len, found))
                yield from found
            if faults.given_up:
                return
            place = place.after(text[: len(text) - len(begun)])
            offset += len(block)
            goes_on = goes_on and not _LIKE_ANONYMOUS.search(text)
            if goes_on and not begun and offset - passed.offset >= POSITION_BYTES:
                passed = TextPosition(
                    offset=offset, line=place.line, prefixes=self._prefixes, base=self._base
                )
                yield passed
        if begun:
            yield from taken_apart([Piece(begun, place)], self, faults)

    def _streamed(self, text: bytes, stream: BinaryIO, place: TextPlace, faults: Faults) -> Iterator[Read]:
        """A statement too large to hold: as the parser goes on, from here to the end."""
        rest = as_stream(chain((self.header, text), read_chunks(stream)))
        parser = parse(rest, format=self.syntax, base_iri=self._base, lenient=True)
        return read_on(parser, faults, place)

    @property
    def header(self) -> bytes:
        """The prefixes so far, as one line without its end."""
        return b"".join(b"@prefix %b: <%b> . " % (n.encode(), i.encode()) for n, i in self._prefixes.items())

    def read(self, text: bytes, *, lenient: bool = False) -> list[Quad]:
        return self._taken(lambda parser: list(bounded(parser, self._budget)), text, lenient=lenient)

    def written(self, text: bytes) -> list[QuadLines]:
        """The same, not lenient, as lines. Raises `SyntaxError` likewise."""
        has_graphs = self.syntax != RdfFormat.TURTLE
        return self._taken(partial(written, budget=self._budget, has_graphs=has_graphs), text)

    def _taken(self, take: Callable[[Iterator[Quad]], _T], text: bytes, *, lenient: bool = False) -> _T:
        header = self.header
        parser = parse(header + text, format=self.syntax, base_iri=self._base, lenient=lenient)
        try:
            quads = take(parser)
        except SyntaxError as fault:
            if fault.lineno == 1 and fault.offset is not None:
                fault.offset -= len(header.decode())
            raise
        self._prefixes = parser.prefixes
        if parser.base_iri != self._base:
            self._base = valid_base(parser.base_iri)
        return quads

    def salvage(self, piece: Piece) -> list[Quad]:
        """The clauses before the fault; those after it too, where the fault cannot hide a new subject."""
        found = _SUBJECT.match(piece.text)
        if found is None:
            return []
        subject, rest = found[1], piece.text[found.end() :].rstrip()
        clauses = list(_clauses(rest.removesuffix(b".")))
        if not rest.endswith(b"."):
            del clauses[-1]  # which may be cut off
        is_at_margin = _MARGIN.match(piece.text[: found.start(1)]) is not None
        quads: list[Quad] = []
        for clause, start in clauses:
            read = self._clause(subject, clause)
            if read is None and not (
                _is_plain(clause, 1 if start else 2) or (is_at_margin and _is_indented(clause))
            ):
                return quads + self._after_joint(subject, clause, rest.removesuffix(b".")[start:])
            quads += read or []
        return quads

    def _clause(self, subject: bytes, clause: bytes) -> list[Quad] | None:
        try:
            return self.read(b"%b %b ." % (subject, clause))
        except SyntaxError:
            return None

    def _after_joint(self, subject: bytes, clause: bytes, rest: bytes) -> list[Quad]:
        """Return the second of two statements without a dot between them, if a line end fits."""
        joints = [found.start() for found in re.finditer(rb"\n", clause)]
        for joint in joints[:_MAX_JOINTS]:
            first, second = clause[:joint], self._clause(b"", rest[joint:])
            if second and (first.rstrip().endswith(b".") or self._clause(subject, first)):
                return second
        return []


def valid_base(url: str | None) -> str | None:
    """Return a URL if it is an IRI; without a base relative references become problems."""
    if url is None or _PLAIN_URL.fullmatch(url):
        return url
    try:
        parse(b"", format=RdfFormat.TURTLE, base_iri=url)
    except ValueError:
        return None
    return url


def statements(text: bytes, place: TextPlace) -> list[Piece]:
    """The text cut after each statement and directive; last comes what no dot ends, perhaps nothing."""
    ends = []
    for found in BOUNDARY.finditer(text):
        if found.lastgroup == "before":
            ends.append(found.start())
        elif found.lastgroup is not None:
            ends.append(found.end())
    pieces, start = [], 0
    for end in [*ends, len(text)]:
        piece = text[start:end]
        pieces.append(Piece(piece, place))
        place, start = place.after(piece), end
    return pieces


def _clauses(rest: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the parts of a statement between semicolons outside of brackets, and their places."""
    depth = start = 0
    for found in _CLAUSE.finditer(rest):
        if found.lastgroup == "end" and depth == 0:
            yield rest[start : found.start()], start
            start = found.end()
        elif found.lastgroup in ("open", "close"):
            depth += 1 if found.lastgroup == "open" else -1
    yield rest[start:], start


def _is_plain(clause: bytes, least: int) -> bool:
    """Return whether a clause is so short that a term is at fault, and no subject is lost."""
    values = _STRING_OR_IRI.sub(b"x", clause).split(b",")
    terms = [len(value.split()) for value in values]
    return least <= terms[0] <= 2 and all(count <= 1 for count in terms[1:])


def _is_indented(clause: bytes) -> bool:
    """Return whether each of its lines is short and indented, as the line of a subject is not."""
    first, *lines = _STRING_OR_IRI.sub(b"x", clause).split(b"\n")
    return (
        bool(lines)
        and all(line[:1].isspace() or not line for line in lines)
        and all(len(line.split()) <= 2 for line in (first, *lines))
    )


def _line_blocks(stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Whole lines, about `BLOCK` bytes at a time, and where they end.

    A line beyond `MAX_STATEMENT` comes alone, and cut.
    """
    begun, read = b"", 0
    while data := stream.read(BLOCK):
        begun += data
        read += len(data)
        end = max(begun.rfind(b"\n"), begun.rfind(b"\r", 0, -1)) + 1
        if end and len(begun) > MAX_STATEMENT:
            first = begun.find(b"\n") + 1 or end
            yield begun[:first], read - len(begun) + first
            begun, end = begun[first:], end - first
        if end:
            yield begun[:end], read - len(begun) + end
            begun = begun[end:]
        elif len(begun) > MAX_STATEMENT:
            begun = begun[: MAX_STATEMENT + 1]
    if begun:
        yield begun, read


def _last_end(text: bytes, start: int) -> int:
    return max((found.end() for found in _ENDS.finditer(text, start)), default=0)


def _statement_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Text up to where a statement seems to end; a guess, which the reader has to correct."""
    begun = b""
    while data := stream.read(BLOCK):
        seen = max(0, len(begun) - _LONGEST_END)
        begun += data
        end = _last_end(begun, max(seen, len(begun) - _NEAR)) or _last_end(begun, seen)
        if end == 0 and len(begun) > MAX_STATEMENT:
            end = len(begun)
        if end:
            yield begun[:end]
            begun = begun[end:]
    if begun:
        yield begun


_BASE = re.compile(rb"^[ \t]*(?:@base\s+<[^<>\s]*>\s*\.|(?i:base)\s+<[^<>\s]*>)", re.MULTILINE)
_OWN_EMPTY_PREFIX = re.compile(rb"^[ \t]*@?(?i:prefix)[ \t]+:", re.MULTILINE)


class N3(Turtle):
    """A Notation3 document. The empty prefix, where it is not declared, stands for the base and a hash."""

    syntax = RdfFormat.N3

    def __init__(self, base: str | None, budget: DocumentBudget) -> None:
        super().__init__(base, budget)
        if base is not None:
            self._prefixes = {"": base.partition("#")[0] + "#"}

    def of(self, text: bytes, faults: Faults) -> Iterator[Read]:
        """Yield all statements that have no formula in them and no other fault."""
        text = _with_empty_prefix(text)
        pieces = _statements(text) if b"{" in text else []
        if not any(has_formula for _, has_formula in pieces):
            yield from self._without_formulae(text, faults)
            return
        data: list[Piece] = []
        for piece, has_formula in pieces:
            if has_formula:
                yield from taken_apart(data, self, faults)
                data = []
                blank = len(piece.text) - len(piece.text.lstrip())
                place = piece.place.after(piece.text[:blank])
                yield from faults.report("a formula is not RDF data, statement left out", place)
            else:
                data.append(piece)
        yield from taken_apart(data, self, faults)

    def streamed(self, chunks: Iterator[bytes], faults: Faults) -> Iterator[Read]:
        """A document too large to hold, up to the first formula or other fault."""
        source = as_stream(chain((self.header,), chunks))
        parser = parse(source, format=self.syntax, base_iri=self._base, lenient=True)
        for read in read_on(parser, faults, to_the_end=False):
            if isinstance(read, list) and any(isinstance(quad.graph_name, BlankNode) for quad in read):
                yield from faults.report("a formula is not RDF data, the rest was not read")
                return
            yield read

    def _without_formulae(self, text: bytes, faults: Faults) -> Iterator[Read]:
        try:
            found = self.written(text)
        except SyntaxError:
            yield from taken_apart([piece for piece, _ in _statements(text)], self, faults)
        else:
            yield from found


def _with_empty_prefix(text: bytes) -> bytes:
    """Lets the empty prefix follow the base, up to where the document declares it itself."""
    own = _OWN_EMPTY_PREFIX.search(text)
    end = own.start() if own else len(text)
    return _BASE.sub(rb"\g<0> @prefix : <#> .", text[:end]) + text[end:]


def _statements(text: bytes) -> list[tuple[Piece, bool]]:
    """The text cut after each statement, and whether there is a formula in it."""
    pieces, place, start = [], TextPlace(), 0
    depth, has_formula = 0, False
    for end, kind in [*_boundaries(text), (len(text), "dot")]:
        if kind in ("open", "close"):
            depth, has_formula = max(0, depth + (1 if kind == "open" else -1)), True
        elif kind == "before" or depth == 0 or end == len(text):
            piece = text[start:end]
            pieces.append((Piece(piece, place), has_formula))
            place, start = place.after(piece), end
            depth, has_formula = (depth, depth > 0) if kind == "before" else (0, False)
    return pieces


def _boundaries(text: bytes) -> Iterator[tuple[int, str]]:
    for found in BOUNDARY_OR_BRACE.finditer(text):
        if found.lastgroup is not None:
            yield (found.start() if found.lastgroup == "before" else found.end()), found.lastgroup
