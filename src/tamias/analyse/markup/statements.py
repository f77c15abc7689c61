"""The statements that one syntax makes on one page: terms made valid, repetitions dropped, growth bounded."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from tamias.analyse.markup.iri import named_node, resolved
from tamias.analyse.markup.page import MarkupPage
from tamias.model.finding import Finding, Problem, Quads

FREE_TEXT = 1 << 20
TEXT_RATIO = 16
"""Characters that the statements may have for each byte of the page, beyond `FREE_TEXT`.

Markup can say the same many times over: by itemref, nested literals, rows of relations.
"""
MAX_IRI = 1 << 16
BATCH = 1000

Node = NamedNode | BlankNode
Term = NamedNode | BlankNode | Literal


class TooMuchError(Exception):
    """The markup says more than a page of its size would."""


class MarkupStatements:
    """Collects quads of the default graph, in order, each once."""

    def __init__(self, page: MarkupPage, syntax: str) -> None:
        self._syntax = syntax
        self._quads: dict[Quad, None] = {}
        self._nodes: dict[str, NamedNode | None] = {}
        self._bad_iri: str | None = None
        self._text_left = FREE_TEXT + TEXT_RATIO * len(page.data)
        self._problems: list[Problem] = []

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Ends what is done inside where a bound is passed, and tells it."""
        try:
            yield
        except TooMuchError:
            self.complain(f"says more than {TEXT_RATIO} times what the page does, the rest was not read")

    def add(self, subject: Node | Triple, predicate: NamedNode, value: Term | Triple) -> None:
        """Raises `TooMuchError` when the page has said enough."""
        quad = Quad(subject, predicate, value)
        self.spend(
            sum(len(term.value) for term in (subject, predicate, value) if not isinstance(term, Triple))
        )
        self._quads[quad] = None

    def spend(self, characters: int) -> None:
        """Takes from what the page may cost, for work that makes no statement. Raises `TooMuchError`."""
        self._text_left -= characters
        if self._text_left < 0:
            raise TooMuchError

    def node(self, iri: str) -> NamedNode | None:
        """The node of an absolute IRI; None, and a problem, for what is none."""
        if iri in self._nodes:
            return self._nodes[iri]
        self.spend(len(iri))
        node = self._nodes[iri] = named_node(iri) if len(iri) <= MAX_IRI else None
        if node is None and self._bad_iri is None:
            self._bad_iri = iri
        return node

    def reference(self, reference: str, base: str) -> NamedNode | None:
        """The node of an address as it stands in an attribute."""
        return self.node(resolved(reference.strip(), base))

    def literal(
        self, text: str, *, language: str | None = None, datatype: NamedNode | None = None
    ) -> Literal:
        """A literal; a language that is none is left out. Raises `TooMuchError` like `add`."""
        self.spend(len(text))
        if datatype is not None:
            return Literal(text, datatype=datatype)
        return _in_language(text, language) if language else Literal(text)

    def complain(self, what: str) -> None:
        """Tells a problem with the markup, once."""
        problem = Problem(f"{self._syntax}: {what}")
        if problem not in self._problems:
            self._problems.append(problem)

    def quads(self) -> list[Quad]:
        return list(self._quads)

    def remove(self, quads: Iterator[Quad]) -> None:
        """Takes statements back."""
        for quad in quads:
            self._quads.pop(quad, None)

    def findings(self) -> Iterator[Finding]:
        """Yield all statements and problems."""
        quads = self.quads()
        for start in range(0, len(quads), BATCH):
            yield Quads(quads[start : start + BATCH])
        yield from self._problems
        if self._bad_iri is not None:
            yield Problem(
                f"{self._syntax}: {self._bad_iri[:200]!r} is not an IRI, statements with it left out"
            )


def _in_language(text: str, language: str) -> Literal:
    try:
        return Literal(text, language=language.strip().replace("_", "-"))
    except ValueError:
        return Literal(text)


XSD = "http://www.w3.org/2001/XMLSchema#"

_YEAR = r"-?(?:[1-9]\d{3,}|0\d{3})"
_MONTH = r"(?:0[1-9]|1[0-2])"
_DATE = rf"{_YEAR}-{_MONTH}-(?:0[1-9]|[12]\d|3[01])"
_ZONE = r"(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)?"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
_DURATION = r"-?P(?=\d|T\d)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?"
_LONGEST = 64
_LOOKS = [
    (NamedNode(XSD + name), re.compile(pattern))
    for name, pattern in [
        ("date", _DATE + _ZONE),
        ("dateTime", rf"{_DATE}T{_TIME}{_ZONE}"),
        ("time", _TIME + _ZONE),
        ("gYearMonth", f"{_YEAR}-{_MONTH}"),
        ("gYear", _YEAR),
        ("duration", _DURATION),
    ]
]


def date_type(text: str) -> NamedNode | None:
    """The datatype of a date, a time or a duration; None where it looks like none of them.

    >>> date_type("2012-03-18T00:00:00Z")
    <NamedNode value=http://www.w3.org/2001/XMLSchema#dateTime>
    """
    if len(text) > _LONGEST:
        return None
    return next((datatype for datatype, looks in _LOOKS if looks.fullmatch(text)), None)
