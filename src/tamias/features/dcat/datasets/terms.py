"""RDF terms out of texts of portals, and the statements about one record of a catalogue."""

import re
from datetime import date
from functools import lru_cache
from urllib.parse import quote

from pyoxigraph import Literal, NamedNode, Quad

from tamias.features.dcat.terms import typed
from tamias.model.vocabulary import SPACES, sound_iri, word

ADMS, DCAT, DCT, FOAF, RDF, RDFS, SKOS, SPDX, VCARD = (
    SPACES[name] for name in ("adms", "dcat", "dct", "foaf", "rdf", "rdfs", "skos", "spdx", "vcard")
)

_EMAIL = re.compile(r"(?:mailto:)?([^\s@:/<>\"]+@[^\s@:/<>\"]+)", re.IGNORECASE)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(Z|[+-]\d\d:\d\d)?")
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ]((?:[01]\d|2[0-3]):[0-5]\d)(:[0-5]\d(?:\.\d{1,9})?)?\s?(Z|[+-]\d\d:?\d\d)?"
)
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
_YEAR = re.compile(r"[1-9]\d{3}")


def mailbox(text: str | None) -> NamedNode | None:
    """Return the `mailto:` IRI of an address, with or without its scheme.

    >>> mailbox("data@example.org")
    <NamedNode value=mailto:data@example.org>
    """
    found = _EMAIL.fullmatch((text or "").strip())
    return NamedNode("mailto:" + quote(found[1], safe="@.+-_")) if found else None


def day_or_moment(text: str | None) -> Literal | None:
    """Return a date, a time, a month or a year with its type; None for any other text.

    Usual slips are corrected: a blank instead of the T, a zone without its colon, seconds left out.

    >>> day_or_moment("2024-02-29 10:30").value, day_or_moment("2023-02-29")
    ('2024-02-29T10:30:00', None)
    """
    text = (text or "").strip()
    if len(text) > 40:
        return None
    if found := _DATE.fullmatch(text):
        return typed(text, "date") if _in_the_calendar(found[1]) else None
    if found := _MOMENT.fullmatch(text):
        if not _in_the_calendar(found[1]):
            return None
        return typed(f"{found[1]}T{found[2]}{found[3] or ':00'}{_zone(found[4])}", "dateTime")
    if _MONTH.fullmatch(text):
        return typed(text, "gYearMonth")
    return typed(text, "gYear") if _YEAR.fullmatch(text) else None


def text_literal(text: str, language: str | None = None) -> Literal:
    """Return a literal, with its language where that is a valid tag."""
    text = text.encode("utf-8", "replace").decode()
    try:
        return Literal(text, language=language) if language else Literal(text)
    except ValueError:
        return Literal(text)


@lru_cache(maxsize=4096)
def last_segment(iri: str) -> str:
    """Return what follows the last slash or hash of an IRI.

    >>> last_segment("http://publications.europa.eu/resource/authority/file-type/CSV")
    'CSV'
    """
    return iri.rstrip("/#").replace("#", "/").rpartition("/")[2]


@lru_cache(maxsize=4096)
def segment(text: str) -> str:
    """Return a text as a segment of the path of an IRI."""
    return quote(text, safe="", errors="replace")


def below(node: str, *segments: str) -> NamedNode:
    """Return the IRI of a part that has none of its own.

    >>> below("https://example.org/", "a/b", "contact")
    <NamedNode value=https://example.org/#a%2Fb/contact>
    """
    path = "/".join(map(segment, segments))
    return NamedNode(f"{node}{'/' if '#' in node else '#'}{path}")


def _in_the_calendar(day: str) -> bool:
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


def _zone(text: str | None) -> str:
    if not text or text == "Z" or ":" in text:
        return text or ""
    return f"{text[:3]}:{text[3:]}"


class DcatStatements:
    """Collect quads about a record of a catalogue and what belongs to it."""

    def __init__(self, catalogue: str, record: str, language: str | None = None) -> None:
        self.catalogue = catalogue
        self.language = language
        self.quads: list[Quad] = []
        self._record = below(catalogue, record).value

    def part(self, *segments: str) -> NamedNode:
        """Return the IRI of the record, or of a part of it. Segments are plain words."""
        return NamedNode("/".join((self._record, *segments)))

    def add(self, subject: NamedNode, predicate: str, value: NamedNode | Literal | None) -> None:
        """Add a statement, if there is a value."""
        if value is not None:
            self.quads.append(Quad(subject, word(predicate), value))

    def text(self, subject: NamedNode, predicate: str, value: str | None) -> None:
        """Add a text in the dataset's language."""
        if value and value.strip():
            self.add(subject, predicate, text_literal(value, self.language))

    def plain(self, subject: NamedNode, predicate: str, value: str | None) -> None:
        """Add a text without a language: a name, a number, a code."""
        if value and value.strip():
            self.add(subject, predicate, text_literal(value))

    def date(self, subject: NamedNode, predicate: str, value: str | None) -> None:
        """Add a date, if the text is one."""
        self.add(subject, predicate, day_or_moment(value))

    def page(self, subject: NamedNode, predicate: str, address: str | None) -> None:
        """Add a page for people."""
        if node := sound_iri(address, web=True):
            self.typed(subject, predicate, node, "foaf:Document")

    def typed(self, subject: NamedNode, predicate: str, node: NamedNode, kind: str) -> None:
        """Add another node and its class."""
        self.add(subject, predicate, node)
        self.add(node, "rdf:type", word(kind))

    def named(
        self, subject: NamedNode, predicate: str, kind: str, value: str | None, part: NamedNode,
        iri: str | None = None, label: str | None = None,
    ) -> None:  # fmt: skip
        """Add what a text names: `iri`, or the text if it is an IRI; else `part`, labelled with it."""
        if not (value and value.strip()):
            return
        node = NamedNode(iri) if iri else sound_iri(value)
        self.typed(subject, predicate, node or part, kind)
        self.text(node or part, "rdfs:label", label or (value if node is None else None))

    def concept(
        self, subject: NamedNode, predicate: str, part: NamedNode, value: str, label: str | None = None
    ) -> None:
        """Add a concept by its IRI, or `part` with the text as its label."""
        iri = sound_iri(value)
        words = label or (last_segment(value) if iri else value) or value
        self.labelled(subject, predicate, iri or part, words)

    def labelled(self, subject: NamedNode, predicate: str, node: NamedNode, label: str) -> None:
        """Add a concept with the label that every concept must have."""
        self.typed(subject, predicate, node, "skos:Concept")
        self.text(node, "skos:prefLabel", label)
