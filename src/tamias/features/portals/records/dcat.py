"""The records of a DCAT catalogue as documents: of each dataset all that its page says of it.

A record is what can be reached from the dataset and from its `dcat:CatalogRecord`, without other datasets and
catalogues, and that the catalogue lists it. Blank nodes are labelled in the order in which they are met, so
that the same description is the same document, whatever the page called them.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, Triple, parse, serialize

from tamias.content.blank_labels import Labels
from tamias.content.formats import NTRIPLES
from tamias.features.dcat.datasets.descriptions import Descriptions, Node, Term
from tamias.features.dcat.datasets.from_dcat import datasets_by_node, datasets_in
from tamias.features.dcat.datasets.mapping import RecordMapping, source_record
from tamias.features.dcat.datasets.terms import DCAT, FOAF
from tamias.features.portals.paging.position import digest
from tamias.model.dataset import Dataset
from tamias.model.finding import SourceRecord
from tamias.model.vocabulary import RDF_TYPE

MOST_STATEMENTS: Final = 5_000
"""Of one record; what is further away is left in the document of the harvest."""
_LISTS: Final = (DCAT + "dataset", DCAT + "record")
_TOPIC: Final = FOAF + "primaryTopic"


class CatalogueRecords(NamedTuple):
    """Statements of a page, by dataset."""

    records: list[tuple[Dataset, SourceRecord]]
    rest: list[Triple]
    """What it says of nothing that a record is about: of the catalogue, mostly."""
    shared: bool
    """Whether a blank node belongs to several records: apart from each other they cannot say that."""


def catalogue_records(said: Descriptions, page: str, catalogue: str) -> CatalogueRecords:
    """Split a page of a catalogue into records."""
    datasets = datasets_by_node(said, page)
    topics = {topic: node for node in said.saying(_TOPIC) for topic in said.values(node, _TOPIC)}
    apart = {*datasets, *topics.values(), *said.of_type(DCAT + "Catalog")}
    lists = _lists(said)
    owners: dict[Node, Node] = {}
    shared, records = False, list[tuple[Dataset, SourceRecord]]()
    for node, dataset in datasets.items():
        begin = [node, topics[node]] if node in topics else [node]
        found = list(_reached(said, begin, apart))
        links = [triple for each in begin for triple in lists.get(each, ())]
        for each in _subjects(found):
            shared = shared or (isinstance(each, BlankNode) and owners.get(each, node) != node)
            owners[each] = node
        body = _document([*links, *found])
        records.append((dataset, source_record(MAPPING, dataset.record, body, catalogue, NTRIPLES)))
    rest = [
        triple
        for node in said.nodes()
        if node not in owners
        for triple in said.statements(node)
        if not (triple.predicate.value in _LISTS and triple.object in owners)
    ]
    return CatalogueRecords(records, rest, shared)


def record_quads(source: SourceRecord) -> list[Quad]:
    """Return the statements of a stored record; its blank nodes have labels of its own."""
    labels = Labels(f"d{digest(source.record):x}")
    found = parse(source.body, format=RdfFormat.N_TRIPLES)
    return [labels.quad(quad) for quad in found]


def _lists(said: Descriptions) -> dict[Term, list[Triple]]:
    """Return the statements by which a catalogue lists a dataset or its record."""
    found: dict[Term, list[Triple]] = {}
    for predicate in _LISTS:
        for node in said.saying(predicate):
            for value in said.values(node, predicate):
                found.setdefault(value, []).append(Triple(node, NamedNode(predicate), value))
    return found


def _reached(said: Descriptions, begin: list[Node], apart: set[Node]) -> Iterator[Triple]:
    """Yield the statements about nodes, and about all that they lead to; nearest first."""
    seen, queue, count = set(begin), list(begin), 0
    while queue:
        node = queue.pop(0)
        for triple in sorted(said.statements(node), key=lambda each: _order(said, each)):
            count += 1
            if count > MOST_STATEMENTS:
                return
            yield triple
            value = triple.object
            if triple.predicate == RDF_TYPE or not isinstance(value, NamedNode | BlankNode):
                continue
            if value not in seen and value not in apart and said.knows(value):
                seen.add(value)
                queue.append(value)


def _subjects(triples: list[Triple]) -> set[Node]:
    subjects = {triple.subject for triple in triples}
    return {each for each in subjects if isinstance(each, NamedNode | BlankNode)}


def _order(said: Descriptions, triple: Triple) -> tuple[str, int, str]:
    """Return a key to sort by predicate and value; a blank node by its statements, not its label."""
    value = triple.object
    if not isinstance(value, BlankNode):
        return triple.predicate.value, 0, str(value)
    about = (f"{each.predicate.value} {_plain(each.object)}" for each in said.statements(value))
    return triple.predicate.value, 1, "\n".join(sorted(about))


def _plain(term: object) -> str:
    return "" if isinstance(term, BlankNode) else str(term)


def _document(triples: list[Triple]) -> bytes:
    labels = Labels("b")
    quads = [labels.quad(Quad(each.subject, each.predicate, each.object)) for each in triples]
    lines = serialize((quad.triple for quad in quads), format=RdfFormat.N_TRIPLES) or b""
    return b"".join(sorted(set(lines.splitlines(keepends=True))))


def _dataset_of(quads: list[Quad], catalogue: str) -> Dataset:
    found = datasets_in(quads, catalogue)
    if not found:
        raise ValueError("it describes no dcat:Dataset")
    return found[0]


MAPPING: Final = RecordMapping("dcat", _dataset_of, quads=record_quads)
