"""The statements of the metadata graph about an attempt: one prov:Activity, its hops, its result."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final
from urllib.parse import quote

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, serialize

from tamias.features.dcat.terms import moment, text
from tamias.model import vocabulary as v
from tamias.model.capture import CaptureRecord, Outcome
from tamias.model.usage import reasons

Statement = tuple[NamedNode, NamedNode, NamedNode | Literal | None]
"""Subject, predicate and object; without an object there is nothing to say."""


def activity_quads(record: CaptureRecord) -> list[Quad]:
    """Return one attempt in the graph `urn:tamias:metadata`. The same record always gives the same quads."""
    statements = (
        *_attempt(record),
        *_result(record),
        *_redirects(record),
        *_renamed(record),
    )
    return [Quad(s, p, o, v.METADATA_GRAPH) for s, p, o in statements if o is not None]


def activity_values(record: CaptureRecord, names: Collection[str]) -> list[Triple]:
    """Return the values of some terms of an attempt, all among `VALUES`; much faster than all quads."""
    activity = NamedNode(v.ACTIVITIES + record.id)
    found = ((v.term(name), VALUES[name](record)) for name in names)
    return [Triple(activity, term, value) for term, value in found if value is not None]


def activity_triples(records: Iterable[CaptureRecord]) -> Iterator[bytes]:
    """The same of many attempts as N-Triples, one piece for each attempt."""
    for record in records:
        triples = [quad.triple for quad in activity_quads(record)]
        yield serialize(triples, format=RdfFormat.N_TRIPLES) or b""


def _activity(record: CaptureRecord, part: str = "") -> NamedNode:
    return NamedNode(v.ACTIVITIES + record.id + part)


def _attempt(record: CaptureRecord) -> Iterator[Statement]:
    """Yield when it was, who did it, what was asked for and what came."""
    activity = _activity(record)
    agent = NamedNode(f"{v.OWN_SPACE}worker:{quote(record.worker, safe='', errors='replace')}")
    yield activity, v.RDF_TYPE, v.PROV_ACTIVITY
    yield activity, v.PROV_STARTED, moment(record.started_at)
    yield activity, v.PROV_ENDED, moment(record.ended_at)
    yield activity, v.PROV_AGENT, agent
    yield agent, v.RDF_TYPE, v.PROV_SOFTWARE_AGENT
    yield agent, v.RDFS_LABEL, text(record.worker)
    for name, value in VALUES.items():
        yield activity, v.term(name), value(record)
    for problem in record.problems:
        yield activity, v.term("problem"), text(problem)
    for signal in record.signals:
        yield activity, v.term("signal"), text(f"{signal.source} {signal.key}: {signal.value}")
    for word, because in reasons(record.signals):
        yield activity, v.term("notPermitted"), text(f"{word} ({because})")


def _result(record: CaptureRecord) -> Iterator[Statement]:
    """The document whose graph was written, if one was."""
    activity, document = _activity(record), _address(record.final_url)
    has_result = record.outcome == Outcome.OK and (record.sha256 or record.extent)
    if has_result and isinstance(document, NamedNode):
        yield activity, v.PROV_GENERATED, document
        yield document, v.RDF_TYPE, v.PROV_ENTITY
        yield document, v.PROV_GENERATED_BY, activity


def _redirects(record: CaptureRecord) -> Iterator[Statement]:
    """Yield every hop that pointed elsewhere, in order."""
    for position, hop in enumerate(record.hops, start=1):
        if hop.location is not None:
            node = _activity(record, f"#hop-{position}")
            yield _activity(record), v.term("hop"), node
            yield node, v.term("position"), _number(position)
            yield node, v.term("url"), _address(hop.url)
            yield node, v.term("status"), _number(hop.status)
            yield node, v.term("address"), text(hop.address)
            yield node, v.term("location"), _address(hop.location)


def _renamed(record: CaptureRecord) -> Iterator[Statement]:
    """Graphs whose names in the document were somebody else's."""
    for original, name in record.renamed_graphs:
        graph = NamedNode(name)
        yield _activity(record), v.term("renamedGraph"), graph
        yield graph, v.term("originalName"), Literal(original, datatype=v.XSD_ANY_URI)


def _address(url: str) -> NamedNode | Literal:
    """An IRI; a literal for what cannot even be made one, such as a redirect's broken target."""
    try:
        return NamedNode(v.address_iri(url))
    except ValueError:
        return Literal(url.encode("utf-8", "replace").decode(), datatype=v.XSD_ANY_URI)


def _number(value: int | None) -> Literal | None:
    return None if value is None else Literal(str(value), datatype=v.XSD_INTEGER)


VALUES: Final[dict[str, Callable[[CaptureRecord], NamedNode | Literal | None]]] = {
    "crawl": lambda record: text(record.crawl_name),
    "userAgent": lambda record: text(record.agent),
    "requestedUrl": lambda record: _address(record.url),
    "finalUrl": lambda record: _address(record.final_url),
    "outcome": lambda record: text(record.outcome.word),
    "reason": lambda record: text(record.reason),
    "depth": lambda record: _number(record.depth),
    "status": lambda record: _number(record.status),
    "address": lambda record: text(record.hops[-1].address if record.hops else None),
    "toldType": lambda record: text(record.declared_type),
    "foundType": lambda record: text(record.found_type),
    "byteSize": lambda record: _number(record.bytes),
    "sha256": lambda record: text(record.sha256),
    "triples": lambda record: _number(record.quads),
    "links": lambda record: _number(record.links),
    "deferred": lambda record: Literal(True) if record.deferred else None,
}
"""What is said of every attempt itself, by the names of the terms."""
