"""Places where an IRI is served: documents, endpoints, graphs and dumps, and who says so."""

from collections.abc import Callable
from typing import Final

import msgspec
from pyoxigraph import NamedNode

from tamias.archive.sources.declared import (
    ServedAt,
    copied_from,
    declared_datasets,
    documents_at,
    led_to,
    served_by,
)
from tamias.crawl.plan.admit import Admission
from tamias.database.connect import Session
from tamias.frontier.keys import bucket_of, hash64, host_hash
from tamias.model.errors import UrlError, UsageError
from tamias.model.url import fetch_url
from tamias.model.vocabulary import sound_iri

CRAWLED: Final = "this crawl"
_WAYS: Final = {"sparqlEndpoint": "sparql", "dataDump": "dump", "uriLookupEndpoint": "document"}
_VOID: Final = """SELECT DISTINCT ?by ?dataset ?way ?place {
  GRAPH ?by {
    ?dataset void:uriSpace ?space .
    ?dataset ?way ?place
  }
  VALUES ?way { void:sparqlEndpoint void:dataDump void:uriLookupEndpoint }
  FILTER(!STRSTARTS(STR(?by), "urn:tamias:"))
  FILTER(STRSTARTS(%s, STR(?space)) && STR(?space) != "")
} ORDER BY ?by ?dataset ?way ?place LIMIT 1000"""

_COPIES: Final = """SELECT DISTINCT ?graph {
  GRAPH ?graph { %s ?p ?o }
  FILTER(!STRSTARTS(STR(?graph), "urn:tamias:"))
} ORDER BY ?graph LIMIT 1000"""

Ask = Callable[[str], list[dict[str, str]]]
"""The rows of a SELECT over the crawled graphs, as texts by the names of the variables."""


def where_is(session: Session, admission: Admission, buckets: int, ask: Ask, iri: str) -> list[ServedAt]:
    """Return all places, those that were crawled first. Raises `UsageError` for what is no IRI."""
    if sound_iri(iri) is None:
        raise UsageError(f"{iri!r} is not an IRI")
    declared = declared_datasets(session, iri)
    found = _crawled(session, admission, buckets, iri)
    for each in declared:
        found += served_by(each, iri)
        found += [
            ServedAt(
                kind="copy", url=document.url, by=CRAWLED, dataset=each.dataset.uri or each.dataset.label
            )
            for document in documents_at(session, copied_from(each))
        ]
    found += _copies(ask, iri, {each.url for each in found if each.by == CRAWLED})
    found += _by_void(ask, iri)
    return list(dict.fromkeys(found))


def _crawled(session: Session, admission: Admission, buckets: int, iri: str) -> list[ServedAt]:
    """The document that was read for it."""
    try:
        url = fetch_url(iri)
    except UrlError:
        return []
    item = admission.item(url, 0, 1)
    qid = host_hash(item.host)
    final = led_to(session, bucket_of(qid, buckets), qid, hash64(item.key))
    places = [url] if final is None else [url, final]
    return [ServedAt(kind="document", url=each.url, by=CRAWLED) for each in documents_at(session, places)]


def _copies(ask: Ask, iri: str, named: set[str]) -> list[ServedAt]:
    """The graphs of the crawl that describe it, whoever served them: those can be asked without a request."""
    graphs = [row["graph"] for row in ask(_COPIES % NamedNode(iri))]
    return [ServedAt(kind="copy", url=graph, by=CRAWLED) for graph in graphs if graph not in named]


def _by_void(ask: Ask, iri: str) -> list[ServedAt]:
    """Return the ways to the namespace of an IRI that crawled VoID descriptions name."""
    found = []
    for row in ask(_VOID % msgspec.json.encode(iri).decode()):
        way = row.get("way", "").rpartition("#")[2]
        if way in _WAYS and "place" in row:
            found.append(
                ServedAt(kind=_WAYS[way], url=row["place"], by=row["by"], dataset=row.get("dataset"))
            )
    return found
