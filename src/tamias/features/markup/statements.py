"""Statements of pages, with the IRIs that their references become by RFC 3986."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

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


_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NEVER_IN_AN_IRI = re.compile(
    r'[\x00-\x20<>"{}|\\^`\x7f-\x9f\ue000-\uf8ff\ufdd0-\ufdef\ufff0-\uffff]|%(?![0-9A-Fa-f]{2})'
)


def is_absolute(reference: str) -> bool:
    """Return whether it begins with a scheme.

    >>> is_absolute("urn:a"), is_absolute("a/b:c")
    (True, False)
    """
    return _SCHEME.match(reference) is not None


def resolved(reference: str, base: str) -> str:
    """The reference as seen from `base`; its characters are kept.

    >>> resolved("../é?#", "http://example.org/a/b/c#d")
    'http://example.org/a/é?#'
    """
    if is_absolute(reference):
        return reference
    _, authority, path, query, fragment = _split(reference)
    scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is None:
        authority = base_authority
        if path:
            path = _without_dots(path if path.startswith("/") else _merged(base_authority, base_path, path))
        else:
            path, query = base_path, base_query if query is None else query
    else:
        path = _without_dots(path)
    host = "" if authority is None else f"//{authority}"
    return f"{scheme or ''}:{host}{path}{query or ''}{fragment or ''}"


def named_node(iri: str) -> NamedNode | None:
    """The node; what no IRI may hold is escaped, as browsers do; None for what is not an IRI even then.

    >>> named_node("http://example.org/a b")
    <NamedNode value=http://example.org/a%20b>
    """
    try:
        return NamedNode(iri)
    except ValueError:
        pass
    try:
        return NamedNode(_NEVER_IN_AN_IRI.sub(_escaped, iri))
    except ValueError:
        return None


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    found = _PARTS.match(iri)
    assert found is not None
    return found[1], found[2], found[3], found[4], found[5]


def _merged(base_authority: str | None, base_path: str, path: str) -> str:
    if base_authority is not None and not base_path:
        return f"/{path}"
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    if "/." not in path and not path.startswith("."):
        return path
    segments_left: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(segments_left) > 1:
                segments_left.pop()
        elif segment != ".":
            segments_left.append(segment)
    if segments[-1] in (".", ".."):
        segments_left.append("")
    return "/".join(segments_left)


def _escaped(sign: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in sign[0].encode("utf-8", "replace"))
