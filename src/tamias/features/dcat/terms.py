"""Names in the catalogue graph: words of vocabularies, IRIs under the service's address, graphs, literals."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote

import msgspec
from pyoxigraph import Literal, NamedNode, Quad

from tamias.archive.moments import rfc3339
from tamias.model import vocabulary as v
from tamias.model.resource import Version
from tamias.model.vocabulary import word
from tamias.settings import ServeSettings

ARC, QUALITY = v.SPACES["arc"], v.SPACES["quality"]

_DECLARED: Final = "arc csvw dcat dct dqv foaf geo prov quality rdf rdfs sd skos spdx tamias void xsd"
# The archive's paper binds `dc:` to http://purl.org/dc/elements/1.1 without a slash and says hasVersion and
# issued in it, which only the terms of http://purl.org/dc/terms/ have: these it must mean.
PREFIXES: Final = {name: v.SPACES[name] for name in _DECLARED.split()} | {"dc": v.SPACES["dct"]}
"""To be declared at the endpoint before a query is read."""

GRAPHS: Final = v.OWN_SPACE + "catalogue"
"""The graph of the catalogue as a whole, and what the names of all its graphs begin with."""

_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9][\w.+-]{0,126}/[A-Za-z0-9][\w.+-]{0,126}", re.ASCII)
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s].*", re.DOTALL)
_LONGEST_IRI = 4096

Object = NamedNode | Literal
Period = tuple[int, int | None]
"""From and until, in milliseconds; without an end while it lasts."""


class CatalogueBases(msgspec.Struct, frozen=True, kw_only=True):
    """The bases of the catalogue's IRIs, and its publisher."""

    service: str = "http://127.0.0.1:8080"
    """The address at which the archive is served, without a final slash."""
    activities: str = v.ACTIVITIES
    title: str = "Archive of datasets"
    publisher: str = "Tamias"

    def catalogue(self) -> NamedNode:
        """The archive as a dcat:Catalog."""
        return NamedNode(f"{self.service}/catalogue")

    def dataset(self, resource: str) -> NamedNode:
        """A resource as a dcat:Dataset, whatever its version."""
        return NamedNode(f"{self.service}/dataset/{resource}")

    def version(self, resource: str, number: int) -> NamedNode:
        """Return the IRI of a version as a dcat:Dataset."""
        return NamedNode(f"{self.service}/dataset/{resource}/{number}")

    def file(self, version: Version) -> NamedNode:
        """Return the IRI of the bytes of a version."""
        return self.file_of(version.resource, version.number)

    def file_of(self, resource: str, number: int) -> NamedNode:
        """The same, by the number of the version."""
        return NamedNode(f"{self.service}/api/v1/get/file/id/{resource}_{number}")

    def activity(self, capture: str) -> NamedNode:
        """The attempt that brought a version, as the metadata graph names it."""
        return NamedNode(self.activities + capture)


def bases_of(settings: ServeSettings) -> CatalogueBases:
    """Return the bases of the catalogue's IRIs."""
    return CatalogueBases(service=settings.address.rstrip("/"))


def catalogue_graph(*parts: str) -> NamedNode:
    """The graph of a resource or version, of `portal` and the like with an id, or of the catalogue itself.

    >>> catalogue_graph("9637fc70d9dc55fb671d5c1f")
    <NamedNode value=urn:tamias:catalogue:9637fc70d9dc55fb671d5c1f>
    """
    return NamedNode(":".join((GRAPHS, *parts)))


class GraphBuilder:
    """Gathers quads of one graph; a statement without a value is none."""

    def __init__(self, graph: NamedNode) -> None:
        self._graph = graph
        self.quads: list[Quad] = []

    def add(self, subject: NamedNode, predicate: str, value: Object | None) -> None:
        """Add a statement."""
        if value is not None:
            self.quads.append(Quad(subject, word(predicate), value, self._graph))

    def each(self, subject: NamedNode, values: dict[str, Object | None]) -> None:
        """Add several statements about one subject."""
        for predicate, value in values.items():
            self.add(subject, predicate, value)

    def typed(self, subject: NamedNode, predicate: str, node: NamedNode | None, *kinds: str) -> None:
        """Add a statement about another node, and the types of that node."""
        if node is not None:
            self.add(subject, predicate, node)
            self.are([node], *kinds)

    def shared(self, subject: NamedNode, predicate: str, node: NamedNode | None, *kinds: str) -> None:
        """A node that many graphs name: what it is stands in a graph of its own, so that it is said once."""
        if node is not None:
            self.add(subject, predicate, node)
            self.quads += _term_quads(node, kinds)

    def are(self, nodes: Iterable[NamedNode], *kinds: str) -> None:
        """Add the types of nodes."""
        for node in nodes:
            for kind in kinds:
                self.add(node, "rdf:type", word(kind))

    def period(
        self, subject: NamedNode, predicate: str, name: str, times: Period, said: Mapping[str, Object | None]
    ) -> None:
        """Add a statement about a time of the subject, and what is said of that time."""
        start, end = times
        node = NamedNode(name)
        self.typed(subject, predicate, node, "dct:PeriodOfTime")
        ends = None if end is None else moment(end)
        self.each(node, {**said, "dcat:startDate": moment(start), "dcat:endDate": ends})


@lru_cache(1024)
def _term_quads(node: NamedNode, kinds: tuple[str, ...]) -> tuple[Quad, ...]:
    graph = catalogue_graph("term", quote(node.value, safe=""))
    return tuple(Quad(node, word("rdf:type"), word(kind), graph) for kind in kinds)


@lru_cache(1024)
def address(url: str | None) -> NamedNode | None:
    """An address as an IRI; None for a text that is none."""
    stripped = (url or "").strip()
    if len(stripped) > _LONGEST_IRI or not _ABSOLUTE.fullmatch(stripped):
        return None
    try:
        return NamedNode(v.address_iri(stripped))
    except ValueError:
        return None


@lru_cache(1024)
def media_type_iri(kind: str | None) -> NamedNode | None:
    """IANA's page of a media type, which is its IRI in DCAT."""
    if kind is None or not _MEDIA_TYPE.fullmatch(kind):
        return None
    return NamedNode(f"https://www.iana.org/assignments/media-types/{kind}")


def text(value: str | None) -> Literal | None:
    """A plain text."""
    if not value:
        return None
    return Literal(value if value.isascii() else value.encode("utf-8", "replace").decode())


@lru_cache(1024)
def moment(milliseconds: int) -> Literal:
    """A time as a typed literal."""
    return Literal(rfc3339(milliseconds), datatype=v.XSD_DATE_TIME)


def typed(value: str | float, datatype: str) -> Literal:
    """A literal of a type of XML Schema."""
    return Literal(str(value), datatype=word(f"xsd:{datatype}"))
