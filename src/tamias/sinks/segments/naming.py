"""The names of graphs and blank nodes in the N-Quads of a document.

Works on pyoxigraph's own N-Quads: less than half the cost of new Quad objects, and what a lenient parser
let through is seen before it can pass for a line of its own.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cache, cached_property
from hashlib import blake2b
from urllib.parse import quote

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, parse, serialize

from tamias.content.quad_lines import QuadLines
from tamias.model.document import DocumentBudget
from tamias.model.errors import UrlError
from tamias.model.url import authority, fetch_url
from tamias.model.vocabulary import OWN_SPACE, address_iri

MAX_NUMBERED = 1_000_000
"""Anonymous blank nodes of one document that are numbered, each at the cost of some 200 bytes of memory."""

MAX_RENAMED = 1_000
"""Renamed graphs of one document that are kept on record; the new name says the old one anyway."""

_MAX_GRAPHS_AT_HAND = 10_000
_END = b" .\n"

# Possessive, so that a long literal takes no memory to match; but not where a group could fail half-way,
# for then early releases of Python 3.11 forget to go back. (A line may: its end cannot be passed by mistake.)
_IRI = rb'<[A-Za-z][A-Za-z0-9+.\-]*+:[^\x00-\x20<>"{}|^`\\]*+>'
_BLANK = rb'_:[^\x00-\x20<>"\\]++'
_QUOTED = rb'"(?:[^"\\\r\n]++|\\[^\r\n])*+"'
_LANGUAGE = rb"@[A-Za-z]++(?:-[A-Za-z0-9]++){0,20}(?:--(?:ltr|rtl))?"
_LITERAL = rb"%b(?:%b|\^\^%b)?" % (_QUOTED, _LANGUAGE, _IRI)
_NODE = rb"(?:%b|%b)" % (_IRI, _BLANK)


def _object(depth: int) -> bytes:
    """RDF 1.2 lets a triple be an object, which lets a triple be an object."""
    triple = rb"|<<\( %b %b %b \)>>" % (_NODE, _IRI, _object(depth - 1)) if depth else b""
    return rb"(?:%b|%b|%b%b)" % (_IRI, _LITERAL, _BLANK, triple)


_TRIPLE = rb"%b %b %b" % (_NODE, _IRI, _object(4))


@cache  # what a strict parser has read needs none of these, and to compile them takes longest of all
def _triples() -> re.Pattern[bytes]:
    return re.compile(rb"(?:%b \.\n)*+" % _TRIPLE)


@cache
def _quad() -> re.Pattern[bytes]:
    return re.compile(rb"(%b)(?: (%b))? \.\n" % (_TRIPLE, _NODE))


@cache
def _quads() -> re.Pattern[bytes]:
    return re.compile(rb"(?:%b(?: %b)? \.\n)*+" % (_TRIPLE, _NODE))


_UP_TO_BLANK = re.compile(rb'((?:[^_"<]++|%b|<<\(|<[^>]*+>)*+)(?:_:([^\x00-\x20<>"\\]++))?' % _QUOTED)
"""Matches at every place, or the search would begin anew inside of IRIs and literals."""

_BLANK_OF_LINE = re.compile(rb'_:([^\x00-\x20<>"\\]++) ((?:<[^> ]++> )?\.\n)?')
"""Perhaps a blank node that begins a line, or one that ends it."""

_ANONYMOUS = re.compile(rb"[a-f][0-9a-f]{15,31}")
"""What pyoxigraph calls a blank node without a label: 128 random bits, a letter first."""


def sound(quads: Sequence[Quad]) -> list[Quad]:
    """The quads that can be written down: a lenient parser lets through what would forge another line."""
    return list(quads) if _is_sound(quads) else [quad for quad in quads if _is_sound([quad])]


def _is_sound(quads: Sequence[Quad]) -> bool:
    text = _serialised(quads, RdfFormat.N_QUADS)
    return text.count(b"\n") == len(quads) and _quads().fullmatch(text) is not None


def quads_in(lines: bytes) -> tuple[int, set[str]]:
    """Count the quads of whole lines of N-Quads, and name their graphs. Raises `ValueError`.

    IRIs that only a lenient parser takes are sound as long as they cannot forge another line.
    """
    if lines[-1:] not in (b"", b"\n"):
        raise ValueError("the last line is cut off")
    try:
        quads = list(parse(lines, format=RdfFormat.N_QUADS))
    except SyntaxError:
        try:
            quads = list(parse(lines, format=RdfFormat.N_QUADS, lenient=True))
        except SyntaxError as error:
            raise ValueError(str(error)) from None
        if len(sound(quads)) < len(quads):
            raise ValueError("an IRI has characters that no IRI has") from None
    return len(quads), {getattr(quad.graph_name, "value", "") for quad in quads}


class Graphs(StrEnum):
    """The rule for graph names inside a document."""

    OWN = "own"
    """Those of the document's own site: its host, and its port unless that is http's or https's."""
    ALL = "all"
    """All but those of Tamias itself; for sources that are trusted."""


def own_lines(lines: QuadLines, url: str, budget: DocumentBudget | None) -> bytes | None:
    """Return lines in the graph of their document, as `Naming` would; None if they have other names."""
    if not isinstance(lines.graph, DefaultGraph) or b"_:" in lines.nquads:
        return None
    end = f" <{address_iri(url)}> .\n".encode()
    if budget is not None:
        budget.check(len(lines) * len(end))
    return lines.nquads.replace(_END, end)


class Naming:
    """The names of one document's quads; asked batch by batch, in the order of the document.

    A blank node becomes `t`, a hash of the document's URL, digest and member, and `n` with its label, `z`
    with the hash of an unusual one, or `x` with its number among those without. So two runs write the same,
    and two documents share none.
    """

    def __init__(
        self,
        url: str,
        sha256: str,
        *,
        member: str | None = None,
        graph: str | None = None,
        graphs: Graphs = Graphs.OWN,
        numbered: int | None = 0,
    ) -> None:
        """`graph` is the name that an archive gives to its member; it is kept or renamed as any other.

        So many blank nodes without a label were `numbered` before; None: every one has a label.
        """
        self.graph = address_iri(url)
        """The name of the document's own graph."""
        self.renamed: dict[str, str] = {}
        """Strangers' graph names, as they stood, and what they became."""
        self.left_out = 0
        """Statements that N-Quads cannot say, such as one with a space in an IRI."""
        self._document = url, sha256, member
        self._choice = graphs
        own = self._graph_name(f"<{graph}>") if graph else self.graph
        self._end = f" <{own}> .\n".encode()
        self._ends: dict[bytes, bytes] = {}
        self._numbers: dict[bytes, bytes] = {}
        self.numbered = numbered

    @cached_property
    def _site(self) -> str | None:
        return _site(self._document[0])

    @cached_property
    def _blank(self) -> bytes:
        return _blank_prefix(*self._document)

    def nquads(self, quads: Sequence[Quad], budget: DocumentBudget | None = None) -> bytes:
        """The quads under their new names, as lines of N-Quads. Raises as `DocumentBudget.check` does."""
        if isinstance(quads, QuadLines):
            if budget is not None:  # a graph is named once, and then stands in every line
                budget.check(len(quads) * len(self._end_in(quads.graph)))
            return self._of_lines(quads)
        try:
            text = _serialised(quads, RdfFormat.N_TRIPLES)
        except ValueError:  # there are named graphs
            text = self._sound(_serialised(quads, RdfFormat.N_QUADS), _quads(), quads)
            return _quad().sub(self._in_its_graph, self._relabelled(text))
        return self._relabelled(self._sound(text, _triples(), quads)).replace(b" .\n", self._end)

    def _of_lines(self, lines: QuadLines) -> bytes:
        text, end, new_end = lines.nquads, lines.end, self._end_in(lines.graph)
        if b"_:" in text:
            if isinstance(lines.graph, BlankNode):
                text, end = text.replace(end, _END), _END
            text = self._relabelled_lines(text)
        return text if end == new_end else text.replace(end, new_end)

    def _relabelled_lines(self, text: bytes) -> bytes:
        if b"<<(" in text:
            return self._relabelled(text)
        return _BLANK_OF_LINE.sub(self._relabel_in_line, text)

    def _relabel_in_line(self, found: re.Match[bytes]) -> bytes:
        """A subject begins its line and an object ends it; all else stands inside of IRIs and literals."""
        before = found.string[found.start() - 1 : found.start()]
        if before in (b"", b"\n") or (before == b" " and found[2]):
            return self._labelled(found[1]) + found[0][2 + len(found[1]) :]
        return found[0]

    def _sound(self, text: bytes, grammar: re.Pattern[bytes], quads: Sequence[Quad]) -> bytes:
        """The text, without the statements that do not follow the grammar.

        A lenient parser lets any character into an IRI, and the serialiser writes it as it is. Unchecked,
        `<a> <b> <c> <urn:tamias:metadata> . #>` would be a subject that writes into a stranger's graph.
        """
        if text.count(b"\n") == len(quads) and grammar.fullmatch(text):
            return text
        lines = [_serialised([quad], RdfFormat.N_QUADS) for quad in quads]
        written = [line for line in lines if line.count(b"\n") == 1 and grammar.fullmatch(line)]
        self.left_out += len(lines) - len(written)
        return b"".join(written)

    def _relabelled(self, text: bytes) -> bytes:
        return _UP_TO_BLANK.sub(self._relabel, text) if b"_:" in text else text

    def _relabel(self, found: re.Match[bytes]) -> bytes:
        before, label = found.groups()
        return before if label is None else before + self._labelled(label)

    def _labelled(self, label: bytes) -> bytes:
        is_anonymous = self.numbered is not None and len(label) > 15 and _ANONYMOUS.fullmatch(label)
        number = self._number(label) if is_anonymous else None
        if b":" in label:  # which some parsers do not take
            return b"%bz%b" % (self._blank, blake2b(label, digest_size=16).hexdigest().encode())
        return self._blank + (number or b"n" + label)

    def _number(self, label: bytes) -> bytes | None:
        """Return the number of an anonymous node; None beyond the limit."""
        number = self._numbers.get(label)
        if number is None and len(self._numbers) < MAX_NUMBERED and self.numbered is not None:
            number = self._numbers[label] = b"x%d" % self.numbered
            self.numbered += 1
        return number

    def pass_position(self) -> None:
        """Let go of nodes without a label: no statement behind a position names one from before it."""
        self._numbers.clear()

    def _in_its_graph(self, found: re.Match[bytes]) -> bytes:
        triple, name = found.groups()
        return triple + (self._end if name is None else self._end_of(name))

    def _end_in(self, graph: NamedNode | BlankNode | DefaultGraph) -> bytes:
        """Return how lines end in a graph; it has the name that stood in the document."""
        if isinstance(graph, DefaultGraph):
            return self._end
        is_blank = isinstance(graph, BlankNode)
        return self._end_of(self._labelled(graph.value.encode()) if is_blank else str(graph).encode())

    def _end_of(self, name: bytes) -> bytes:
        """The same; a blank node has its new name already."""
        end = self._ends.get(name)
        if end is None:
            if len(self._ends) >= _MAX_GRAPHS_AT_HAND:
                self._ends.clear()
            end = self._ends[name] = f" <{self._graph_name(name.decode())}> .\n".encode()
        return end

    def _graph_name(self, name: str) -> str:
        if name.startswith("_:"):
            return f"{self.graph}#graph={name}"
        name = name[1:-1]
        if self.keeps(name):
            return name
        renamed = f"{self.graph}#graph={quote(name, safe='')}"
        if len(self.renamed) < MAX_RENAMED:
            self.renamed[name] = renamed
        return renamed

    def keeps(self, name: str) -> bool:
        """Return whether a graph of this name may be the document's own."""
        if name.lower().startswith(OWN_SPACE):
            return False
        if self._choice == Graphs.ALL or name.partition("#")[0] == self.graph:
            return True
        return self._site is not None and _site(name) == self._site


def _serialised(quads: Sequence[Quad], syntax: RdfFormat) -> bytes:
    return serialize(quads, format=syntax) or b""


def _blank_prefix(url: str, sha256: str, member: str | None) -> bytes:
    parts = (part.encode("utf-8", "surrogatepass") for part in (url, sha256, member or ""))
    scope = blake2b(b"\0".join(parts), digest_size=16)
    return b"_:t" + scope.hexdigest().encode()


def _site(url: str) -> str | None:
    """Host and port, whatever the scheme; None where there is not a host."""
    try:
        place = authority(fetch_url(url)).partition("://")[2]
    except UrlError:
        return None
    return place.removesuffix(":80").removesuffix(":443") or None
