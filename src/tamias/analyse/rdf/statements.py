"""Makes terms, and gathers the statements of one document into batches; watches how deep a text is nested.

A syntax that names a term once and then points to it can say terabytes in a megabyte: so what a parser makes
is checked against the document's budget while it is made. Parsers recurse, or take time and memory that grow
with the depth: pyoxigraph dies of JSON 10,000 deep, and of triple terms, `<<( … )>>`, 20,000 deep.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from pyoxigraph import (
    BaseDirection,
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    RdfFormat,
    parse,
    serialize,
)

from tamias.analyse.chunks import MIB, RefusedError, times
from tamias.content.quad_lines import QuadLines
from tamias.model.document import Document, DocumentBudget, LimitExceeded
from tamias.model.finding import Finding, Problem, Quads
from tamias.settings import AnalyseSettings

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

MAX_TOKEN = 1 << 20
"""A token larger than this is no longer waited for."""

# Each alternative starts with its own sign, so that there is one way to match and nothing to backtrack.
# Possessive groups would say it better, but Python 3.11.4 and older get them wrong (gh-100061, gh-106052).
_TURTLE_TOKEN = (
    rb'"""(?:[^"\\]++|\\.|"(?!""))*"""'
    rb'|""(?=[^"])|"\n|"(?:[^"\\\n]|\\.)(?:[^"\\\n]++|\\.)*["\n]'
    rb"|'''(?:[^'\\]++|\\.|'(?!''))*'''"
    rb"|''(?=[^'])|'\n|'(?:[^'\\\n]|\\.)(?:[^'\\\n]++|\\.)*['\n]"
    rb'|<<|<(?:[^<>"{}|^`\\\s]++|\\[uU])*(?:>|(?=[<"{}|^`\\\s]))'
    rb"|#[^\n]*+\n|\\."
)
_XML_OPAQUE = rb"<!--(?:[^-]++|-(?!->))*-->|<!\[CDATA\[(?:[^\]]++|\](?!\]>))*\]\]>|<\?(?:[^?]++|\?(?!>))*\?>"
_XML_TAG = rb"""<(?!!--|!\[CDATA\[|\?)(?:[^>"']++|"[^"]*+"|'[^']*+')*>"""
_XML_EMPTY_TAG = rb"""<(?=[^!?/])(?:[^>"'/]++|"[^"]*+"|'[^']*+'|/(?!>))*/>"""

_TURTLE_SKIP = re.compile(_TURTLE_TOKEN, re.DOTALL)
_TURTLE_WHOLE = re.compile(rb"(?:[^\"'<#\\]++|" + _TURTLE_TOKEN + rb")*", re.DOTALL)
_XML_SKIP = re.compile(_XML_OPAQUE + rb"|<![^>]*+>|" + _XML_EMPTY_TAG)
_XML_WHOLE = re.compile(rb"(?:[^<]++|" + _XML_OPAQUE + rb"|" + _XML_TAG + rb")*")

_TO_PARENTHESES = bytes.maketrans(b"[{]}\1\2", b"(())()")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[](){}"))
_NO_TAGS = bytes(set(range(256)) - {1, 2})


class Outlined(NamedTuple):
    """The nesting of some text, up to its last whole token."""

    opening: int
    closing: int
    shape: Callable[[], bytes]
    """The same as ( and ), in their order."""
    rest: bytes
    """What follows the last whole token."""


Outline = Callable[[bytes], Outlined]
"""Takes text from the start of a token."""


def turtle_outline(text: bytes) -> Outlined:
    """The brackets of Turtle, TriG and N3 outside strings, IRIs and comments."""
    end = text.rfind(b"\n") + 1
    if end == 0 or b'"""' in text or b"'''" in text:  # else nothing goes on past the end of a line
        end = _end(_TURTLE_WHOLE, text)
    whole = text[:end]
    shape = _brackets(whole)
    return _outlined(_brackets(_TURTLE_SKIP.sub(b"", whole)) if shape else shape, text[end:])


def json_outline(text: bytes) -> Outlined:
    """The brackets of JSON outside strings."""
    bare = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ") if b"\\" in text else text
    pieces = bare.split(b'"')
    begun = len(pieces[-1]) + 1 if len(pieces) % 2 == 0 else 0
    return _outlined(_brackets(b"".join(pieces[::2])), text[len(text) - begun :])


def xml_outline(text: bytes) -> Outlined:
    """The elements of XML."""
    end = max(0, text.rfind(b"<"))
    whole = text[:end]
    tags = times(b"<", whole)
    if b"<!" in whole or b"<?" in whole or times(b">", whole) != tags:
        end = _end(_XML_WHOLE, text)
        return _outlined(_tags(_XML_SKIP.sub(b"", text[:end])), text[end:])
    # Here every > ends a tag, so every /> ends an empty one.
    ends, empty = whole.count(b"</"), whole.count(b"/>")
    return Outlined(tags - ends, ends + empty, lambda: _tags(whole.replace(b"/>", b"\2")), text[end:])


def _outlined(shape: bytes, rest: bytes) -> Outlined:
    opening = shape.count(b"(")
    return Outlined(opening, len(shape) - opening, lambda: shape, rest)


def _end(pattern: re.Pattern[bytes], text: bytes) -> int:
    match = pattern.match(text)
    return match.end() if match else 0


def _brackets(text: bytes) -> bytes:
    return text.translate(_TO_PARENTHESES, _NO_BRACKETS)


def _tags(text: bytes) -> bytes:
    return text.replace(b"</", b"\2").replace(b"<", b"\1").translate(_TO_PARENTHESES, _NO_TAGS)


class Syntax(msgspec.Struct, frozen=True):
    """The brackets of a syntax, and the setting that limits their depth."""

    outline: Outline
    word: str
    setting: str


TURTLE = Syntax(turtle_outline, "brackets", "turtle_depth")
JSON = Syntax(json_outline, "brackets", "json_depth")
XML = Syntax(xml_outline, "elements", "xml_depth")


class Nesting:
    """The depth of a document, as far as it has been read."""

    def __init__(self, syntax: Syntax, limits: AnalyseSettings) -> None:
        self._syntax = syntax
        self._limit: int = getattr(limits, syntax.setting)
        self.depth = 0

    def watched(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks; raises `RefusedError` before the one that nests deeper than the limit."""
        waiting, wanted = b"", 0
        for chunk in chunks:
            waiting += chunk
            # A long unfinished token is looked at again only when it has doubled: linear time over all.
            if len(waiting) >= wanted:
                outlined = self._syntax.outline(waiting)
                self._go_through(outlined)
                waiting = outlined.rest if len(outlined.rest) < MAX_TOKEN else b""
                wanted = 2 * len(waiting)
            yield chunk
        # The end of the text ends any token that the end of a line, or the next tag, would end.
        self._go_through(self._syntax.outline(waiting + b"\n<"))

    def _go_through(self, outlined: Outlined) -> None:
        if self.depth + outlined.opening <= self._limit:
            self.depth = max(0, self.depth + outlined.opening - outlined.closing)
            return
        for sign in outlined.shape():
            self.depth = self.depth + 1 if sign == ord("(") else max(0, self.depth - 1)
            if self.depth > self._limit:
                raise RefusedError(
                    f"{self._syntax.word} nested more than {self._limit} deep"
                    f" (limit analyse.{self._syntax.setting}), the rest was not read"
                )


BATCH = 1000
BATCH_BYTES = 8 * MIB

CHECKED_BYTES = 1 << 16
_MAX_MESSAGE = 500


class RdfStatements:
    """The statements and the problems of a document."""

    def __init__(self, limits: AnalyseSettings) -> None:
        self._most_faults = limits.max_errors
        self._faults = 0
        self._batch: list[Quad] = []
        self._size = 0

    def say(self, quad: Quad, size: int) -> bool:
        """Takes a statement with the bytes of its terms; whether it is time to `take` a batch."""
        self._batch.append(quad)
        self._size += size
        return len(self._batch) >= BATCH or self._size >= BATCH_BYTES

    def take(self) -> Quads:
        """Return the batch, and begin the next."""
        batch, self._batch, self._size = self._batch, [], 0
        return Quads(batch)

    def fault(self, what: str, line: int | None = None) -> Iterator[Problem]:
        """A problem, unless there were too many."""
        self._faults += 1
        if self._faults <= self._most_faults:
            yield Problem(what[:_MAX_MESSAGE], line)

    def rest(self) -> Iterator[Finding]:
        """Yield what is left at the end."""
        if self._batch:
            yield Quads(self._batch)
        if self._faults > self._most_faults:
            yield Problem(f"{self._faults - self._most_faults} more errors (limit analyse.max_errors)")


class StatementAnalyser:
    """An analyser that reads a document statement by statement, up to where it is refused to read on."""

    def __init__(self, limits: AnalyseSettings | None = None) -> None:
        self._limits = limits or AnalyseSettings()

    def analyse(self, document: Document) -> Iterator[Finding]:
        statements = RdfStatements(self._limits)
        reason: LimitExceeded | RefusedError | None = None
        try:
            yield from self._read(document, statements)
        except (LimitExceeded, RefusedError) as stop:
            reason = stop
        yield from statements.rest()
        if isinstance(reason, RefusedError):
            yield Problem(str(reason))
        elif reason:
            raise reason

    def _read(self, document: Document, statements: RdfStatements) -> Iterator[Finding]:
        raise NotImplementedError


_WRITABLE = re.compile(r'[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>"{}|^`\\]*')


def iri(text: str) -> NamedNode:
    """An absolute IRI. Raises `ValueError` for what N-Quads could not say."""
    try:
        return NamedNode(text)
    except ValueError:
        if not _WRITABLE.fullmatch(text):
            raise ValueError(f"{text[:200]!r} is not an absolute IRI") from None
    # Only a parser makes an IRI that breaks a finer rule, such as %zz.
    line = f"<{text}> <urn:p> <urn:o> .".encode()
    [quad] = parse(line, format=RdfFormat.N_TRIPLES, lenient=True)
    return NamedNode(text) if not isinstance(quad.subject, NamedNode) else quad.subject


def blank_node(label: str) -> BlankNode:
    """A blank node; a label that N-Quads does not allow becomes its hash."""
    try:
        if ":" not in label:  # which pyoxigraph takes, writes, and cannot read again
            return BlankNode(label)
    except ValueError:
        pass
    return BlankNode("z" + blake2b(label.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest())


def literal(value: str, language: str | None = None, datatype: str | None = None) -> Literal:
    """A literal; of language and datatype, the language counts. Raises `ValueError` for a bad one."""
    if language:
        tag, _, direction = language.partition("--")
        return Literal(value, language=tag, direction=BaseDirection(direction) if direction else None)
    return Literal(value, datatype=iri(datatype)) if datatype else Literal(value)


_GRAPH = attrgetter("graph_name")
_DEFAULT = DefaultGraph()


def written(parser: Iterator[Quad], budget: DocumentBudget | None, *, has_graphs: bool) -> list[QuadLines]:
    """Return all quads of a strict parser in their order. Its `SyntaxError` passes through.

    The budget is checked as they are made; none is needed for what is too short to become much.
    """
    out = BoundedLines(budget) if budget else None
    if not has_graphs:
        return [QuadLines(text, _DEFAULT) for text in _texts(parser, RdfFormat.N_TRIPLES, out)]
    runs = groupby(parser, _GRAPH)
    return [QuadLines(text, graph) for graph, run in runs for text in _texts(run, RdfFormat.N_QUADS, out)]


def _texts(quads: Iterator[Quad], syntax: RdfFormat, out: "BoundedLines | None") -> Iterator[bytes]:
    take = out.take if out else _serialized
    while text := take(islice(quads, BATCH), syntax):
        yield text
        if text.count(b"\n") < BATCH:  # a line for each of them, so that was all
            return


def _serialized(quads: Iterator[Quad], syntax: RdfFormat) -> bytes:
    return serialize(quads, format=syntax) or b""


class BoundedLines(io.BytesIO):
    """A file that statements are written to, as long as the budget of their document lasts."""

    def __init__(self, budget: DocumentBudget) -> None:
        super().__init__()
        self._budget = budget
        self._taken = 0

    def write(self, part: "ReadableBuffer") -> int:
        size = super().write(part)
        self._budget.check(self._taken + self.tell())
        return size

    def take(self, quads: Iterator[Quad], syntax: RdfFormat) -> bytes:
        """Return the lines of some quads. Raise as `DocumentBudget.check` does."""
        serialize(quads, self, format=syntax)
        text = self.getvalue()
        self._taken += len(text)
        self.seek(0)
        self.truncate()
        return text


def bounded(parser: Iterator[Quad], budget: DocumentBudget) -> Iterator[Quad]:
    """Pass quads on, as long as the budget lasts. Raise as `DocumentBudget.check` does."""
    size = unchecked = 0
    for quad in parser:
        unchecked += len(str(quad))
        if unchecked > CHECKED_BYTES:
            size, unchecked = size + unchecked, 0
            budget.check(size)
        yield quad
