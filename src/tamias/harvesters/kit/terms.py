"""Terms for what portals say: a sound IRI or none, a date with its type or none, text as it stands.

And the statements about one dataset while they are gathered.
"""

import re
from collections.abc import Iterable
from datetime import date
from functools import cache
from typing import Final
from urllib.parse import quote

from pyoxigraph import Literal, NamedNode, Quad

from tamias.model.vocabulary import PROV, XSD, address_iri

ADMS: Final = "http://www.w3.org/ns/adms#"
DCAT: Final = "http://www.w3.org/ns/dcat#"
DCATAP: Final = "http://data.europa.eu/r5r/"
DCT: Final = "http://purl.org/dc/terms/"
ELI: Final = "http://data.europa.eu/eli/ontology#"
FOAF: Final = "http://xmlns.com/foaf/0.1/"
GEO: Final = "http://www.opengis.net/ont/geosparql#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
SKOS: Final = "http://www.w3.org/2004/02/skos/core#"
SPDX: Final = "http://spdx.org/rdf/terms#"
VCARD: Final = "http://www.w3.org/2006/vcard/ns#"

_SPACES: Final = {
    "adms": ADMS, "dcat": DCAT, "dcatap": DCATAP, "dct": DCT, "eli": ELI, "foaf": FOAF, "geo": GEO,
    "prov": PROV, "rdf": RDF, "rdfs": RDFS, "skos": SKOS, "spdx": SPDX, "vcard": VCARD, "xsd": XSD,
}  # fmt: skip

_LONGEST_IRI = 4096
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s].*", re.DOTALL)
_WEB = re.compile(r"(?:https?|ftps?)://[^\s/?#]+.*", re.DOTALL | re.IGNORECASE)
_EMAIL = re.compile(r"(?:mailto:)?([^\s@:/<>\"]+@[^\s@:/<>\"]+)", re.IGNORECASE)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(Z|[+-]\d\d:\d\d)?")
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ]((?:[01]\d|2[0-3]):[0-5]\d)(:[0-5]\d(?:\.\d{1,9})?)?\s?(Z|[+-]\d\d:?\d\d)?"
)
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
_YEAR = re.compile(r"[1-9]\d{3}")


@cache
def word(short: str) -> NamedNode:
    """A word of a vocabulary by its short name.

    >>> word("dct:title")
    <NamedNode value=http://purl.org/dc/terms/title>
    """
    space, _, name = short.partition(":")
    return NamedNode(_SPACES[space] + name)


def sound_iri(text: str | None, *, web: bool = False) -> NamedNode | None:
    """The absolute IRI that a text is, as it stands; None for any other text.

    With `web` it must be an address one can ask for, and signs that no IRI may hold are percent-encoded.

    >>> sound_iri("https://example.org/a b", web=True), sound_iri("see the website")
    (<NamedNode value=https://example.org/a%20b>, None)
    """
    text = (text or "").strip()
    if len(text) > _LONGEST_IRI or not (_WEB if web else _ABSOLUTE).fullmatch(text):
        return None
    try:
        return NamedNode(text)
    except ValueError:
        pass
    try:
        return NamedNode(address_iri(text)) if web else None
    except ValueError:
        return None


def mailbox(text: str | None) -> NamedNode | None:
    """The `mailto:` IRI of an address, with or without that word.

    >>> mailbox("data@example.org")
    <NamedNode value=mailto:data@example.org>
    """
    found = _EMAIL.fullmatch((text or "").strip())
    return NamedNode("mailto:" + quote(found[1], safe="@.+-_")) if found else None


def day_or_moment(text: str | None) -> Literal | None:
    """A date, a time of a day, a month or a year, typed as such; None for a text that is none of them.

    The usual slips are mended: a blank instead of the T, a zone without its colon, seconds left out.

    >>> day_or_moment("2024-02-29 10:30").value, day_or_moment("2023-02-29")
    ('2024-02-29T10:30:00', None)
    """
    text = (text or "").strip()
    if len(text) > 40:
        return None
    if found := _DATE.fullmatch(text):
        return _typed(text, "date") if _in_the_calendar(found[1]) else None
    if found := _MOMENT.fullmatch(text):
        if not _in_the_calendar(found[1]):
            return None
        return _typed(f"{found[1]}T{found[2]}{found[3] or ':00'}{_zone(found[4])}", "dateTime")
    if _MONTH.fullmatch(text):
        return _typed(text, "gYearMonth")
    return _typed(text, "gYear") if _YEAR.fullmatch(text) else None


def text_literal(text: str, language: str | None = None) -> Literal:
    """A plain text, with its language where that is a sound tag."""
    text = text.encode("utf-8", "replace").decode()
    try:
        return Literal(text, language=language) if language else Literal(text)
    except ValueError:
        return Literal(text)


def count_literal(number: int) -> Literal:
    """A number from 0 up."""
    return _typed(str(number), "nonNegativeInteger")


def hex_literal(digits: str) -> Literal:
    """Bytes in hexadecimal digits."""
    return _typed(digits, "hexBinary")


def last_segment(iri: str) -> str:
    """What stands behind the last slash or hash of an IRI.

    >>> last_segment("http://publications.europa.eu/resource/authority/file-type/CSV")
    'CSV'
    """
    return iri.rstrip("/#").replace("#", "/").rpartition("/")[2]


def below(node: str, *segments: str) -> NamedNode:
    """The IRI of a part that has none of its own.

    >>> below("https://example.org/", "a/b", "contact")
    <NamedNode value=https://example.org/#a%2Fb/contact>
    """
    path = "/".join(quote(segment, safe="", errors="replace") for segment in segments)
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


def _typed(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=word("xsd:" + datatype))


class DcatStatements:
    """Gathers quads about a record of a catalogue and what belongs to it."""

    def __init__(self, catalogue: str, record: str, language: str | None = None) -> None:
        self.catalogue = catalogue
        self.language = language
        self.quads: list[Quad] = []
        self._record = below(catalogue, record).value

    def part(self, *segments: str) -> NamedNode:
        """The IRI of the record, or of a part of it that has none of its own. Segments are plain words."""
        return NamedNode("/".join((self._record, *segments)))

    def add(self, subject: NamedNode, predicate: str, value: NamedNode | Literal | None) -> None:
        """One statement; none where there is no value."""
        if value is not None:
            self.quads.append(Quad(subject, word(predicate), value))

    def text(self, subject: NamedNode, predicate: str, value: str | None) -> None:
        """A text in the dataset's language."""
        if value and value.strip():
            self.add(subject, predicate, text_literal(value, self.language))

    def plain(self, subject: NamedNode, predicate: str, value: str | None) -> None:
        """A text that is in no language: a name, a number, a code."""
        if value and value.strip():
            self.add(subject, predicate, text_literal(value))

    def date(self, subject: NamedNode, predicate: str, value: str | None) -> None:
        """A date, where the text is one."""
        self.add(subject, predicate, day_or_moment(value))

    def page(self, subject: NamedNode, predicate: str, address: str | None) -> None:
        """A page for people."""
        if node := sound_iri(address, web=True):
            self.typed(subject, predicate, node, "foaf:Document")

    def typed(self, subject: NamedNode, predicate: str, node: NamedNode, kind: str) -> None:
        """Another node and what it is."""
        self.add(subject, predicate, node)
        self.add(node, "rdf:type", word(kind))

    def named(
        self, subject: NamedNode, predicate: str, kind: str, value: str | None, part: NamedNode,
        iri: str | None = None,
    ) -> None:  # fmt: skip
        """What a text names: `iri`, or itself where it is a sound IRI; else `part`, which bears the text."""
        if not (value and value.strip()):
            return
        node = NamedNode(iri) if iri else sound_iri(value)
        self.typed(subject, predicate, node or part, kind)
        if node is None:
            self.text(part, "rdfs:label", value)

    def standards(self, subject: NamedNode, values: Iterable[str], *segments: str) -> None:
        """What it conforms to."""
        for number, value in enumerate(values, 1):
            part = self.part(*segments, "standard", str(number))
            self.named(subject, "dct:conformsTo", "dct:Standard", value, part)

    def concept(self, subject: NamedNode, predicate: str, node: NamedNode, label: str) -> None:
        """A concept with the label that every concept must have."""
        self.typed(subject, predicate, node, "skos:Concept")
        self.text(node, "skos:prefLabel", label)
