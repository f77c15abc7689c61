"""Queries about `urn:tamias:metadata`: the fetches that a query can be about are read from the database.

The graph is not stored. What its patterns restrict is a condition in SQL, predicates that are not named are
left out, and the query is answered from these statements. A query for which that does not do is refused.
"""

from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from itertools import islice
from typing import BinaryIO, Final
from uuid import UUID

import msgspec
from pyoxigraph import RdfFormat, Triple, serialize

from tamias.archive.captures import CaptureFilter, asked_captures
from tamias.crawl.catalogue.changes import count_buckets
from tamias.crawl.catalogue.errors import QueryRefused
from tamias.crawl.catalogue.patterns import (
    NotUnderstood,
    QueryPatterns,
    TriplePattern,
    may_choose,
    query_patterns,
)
from tamias.crawl.catalogue.query_text import keywords, unescaped
from tamias.database.connect import Database
from tamias.model import vocabulary as v
from tamias.model.capture import CaptureRecord, Outcome
from tamias.sinks.metadata import VALUES, activity_quads, activity_values

MOST_FETCHES: Final = 200_000
"""That one query may be about."""
_AT_ONCE: Final = 1000
_ALSO_OF_HOPS: Final = ("status", "address")
_GRAPH: Final = f"<{v.METADATA_GRAPH.value}>"
_NAMES: Final = ("metadata", "tamias:m")
"""One of them is in every query that names the graph: a prefix ends before the name, or inside of it."""
_STARTED: Final = f"<{v.PROV_STARTED.value}>"
_OUTCOMES: Final = {f'"{outcome.word}"': outcome for outcome in Outcome}
_TIME: Final = f'"^^<{v.XSD_DATE_TIME.value}>'


def _term(name: str) -> str:
    return f"<{v.term(name).value}>"


_GENERATED_BY: Final = f"<{v.PROV_GENERATED_BY.value}>"
_AGENT, _GENERATED = f"<{v.PROV_AGENT.value}>", f"<{v.PROV_GENERATED.value}>"
_LINKS: Final = {_term("hop"), _term("renamedGraph"), _AGENT, _GENERATED}
"""From an attempt to what is said beside it."""


class AskedFetches(msgspec.Struct, frozen=True):
    """What a query needs of the graph."""

    filters: list[CaptureFilter]
    """Attempts that fit one of them."""
    predicates: frozenset[str] | None
    """Statements with these; None: all."""


def names_metadata(query: str, graphs: dict[str, list[str]]) -> bool:
    """Whether a query may be about the graph of fetches; `asked_fetches` says whether it is."""
    named = [iri for iris in graphs.values() for iri in iris]
    text = unescaped(query)
    return v.METADATA_GRAPH.value in named or any(name in text for name in _NAMES)


def asked_fetches(query: str, graphs: dict[str, list[str]]) -> AskedFetches | None:
    """What a query needs of the graph; None when it is not about it. Raises `QueryRefused`."""
    try:
        found = query_patterns(query)
    except NotUnderstood as error:
        if not _may_choose(query):
            return None
        raise _refusal(f"{error} cannot be used in it") from error
    dataset = found.dataset + [f"<{iri}>" for iris in graphs.values() for iri in iris]
    if _GRAPH not in (*found.graphs, *dataset):
        if _may_choose(query) and any(name.startswith("?") for name in found.graphs):
            raise _refusal("GRAPH has a variable in place of its name")
        return None
    if dataset and set(dataset) != {_GRAPH}:
        raise _refusal("it names other graphs too")
    if not dataset and any(not _is_inside(each, found) for each in found.patterns):
        raise _refusal("it has patterns outside of GRAPH <urn:tamias:metadata> { … }")
    return _needed(found)


def _may_choose(query: str) -> bool:
    """Whether the graph is named otherwise than to leave it out, or may be by what is resolved with BASE."""
    has_base = "BASE" in keywords(query) and "urn:" in unescaped(query)
    return has_base or may_choose(query, v.METADATA_GRAPH.value)


def _needed(found: QueryPatterns) -> AskedFetches:
    named = [each.predicates for each in found.patterns]
    predicates = None if None in named else frozenset[str]().union(*(each for each in named if each))
    blocks = {each.block for each in found.patterns}
    return AskedFetches([_filter_of(found, block) for block in blocks], predicates)


def write_fetches(
    database: Database, asked: AskedFetches, file: BinaryIO, seconds_left: Callable[[], float]
) -> None:
    """Writes the statements that a query needs, as N-Triples. Raises `QueryRefused` when they are too many.

    `seconds_left` is called now and then, and may raise. `TimeoutError`: the database takes longer than that.
    """
    count, triples_of = 0, _triples_of(asked.predicates)
    with closing(database.session()) as session:
        buckets = count_buckets(session)
        for each in asked.filters:
            found = asked_captures(session, each, buckets, MOST_FETCHES + 1, seconds_left)
            while some := list(islice(found, _AT_ONCE)):
                count += len(some)
                if count > MOST_FETCHES:
                    raise _too_many()
                seconds_left()
                triples = [triple for record in some for triple in triples_of(record)]
                file.write(serialize(triples, format=RdfFormat.N_TRIPLES) or b"")
    file.flush()


def _triples_of(predicates: frozenset[str] | None) -> Callable[[CaptureRecord], list[Triple]]:
    """What makes the statements that are needed of one attempt, as soon as may be."""
    names = {f"<{v.term(name).value}>": name for name in VALUES if name not in _ALSO_OF_HOPS}
    if predicates is not None and predicates <= names.keys():
        wanted = [names[predicate] for predicate in predicates]
        return lambda record: activity_values(record, wanted)

    def chosen(record: CaptureRecord) -> list[Triple]:
        quads = activity_quads(record)
        return [
            quad.triple for quad in quads if predicates is None or f"<{quad.predicate.value}>" in predicates
        ]

    return chosen


def _too_many() -> QueryRefused:
    return QueryRefused(
        f"the query is about more than {MOST_FETCHES:,} fetches. Restrict them with a FILTER on "
        "prov:startedAtTime, or by tamias:requestedUrl, tamias:outcome or tamias:crawl. "
        "'tamias export --graph metadata' writes all fetches.",
        422,
    )


def _refusal(why: str) -> QueryRefused:
    return QueryRefused(
        f"the query about urn:tamias:metadata cannot be answered: {why}. Such a query is about that graph "
        "alone, with all patterns in GRAPH <urn:tamias:metadata> { … }; query other graphs separately."
    )


def _is_inside(pattern: TriplePattern, found: QueryPatterns) -> bool:
    return pattern.block is not None and found.graphs[pattern.block] == _GRAPH


def _filter_of(found: QueryPatterns, block: int | None) -> CaptureFilter:
    """What the attempts have in common that one block is about."""
    patterns = [each for each in found.patterns if each.block == block]
    subject = _attempt(patterns)
    if subject is None or block in found.opaque:
        return CaptureFilter()
    certain = [each for each in patterns if each.is_certain and each.subject == subject]
    values = {predicate: each.object for each in certain for predicate in each.predicates or ()}
    since, until = _times(found, block, values.get(_STARTED))
    url, crawl = values.get(_term("requestedUrl"), ""), values.get(_term("crawl"), "")
    return CaptureFilter(
        capture=_id(subject),
        since=since,
        until=until,
        iri=url[1:-1] if url.startswith("<") else None,
        outcome=_OUTCOMES.get(values.get(_term("outcome"), "")),
        crawl=crawl[1:-1] if crawl.startswith('"') and crawl.endswith('"') else None,
    )


def _attempt(patterns: list[TriplePattern]) -> str | None:
    """The one attempt that all patterns are about, or what is said beside it; None when there may be more."""
    if any(each.is_path for each in patterns):
        return None
    links = [each for each in patterns if each.is_certain and each.predicates and each.predicates <= _LINKS]
    beside = {each.object for each in links}
    subjects = {each.subject for each in patterns} - beside
    if len(subjects) != 1 or any(each.subject not in subjects for each in links):
        return None
    others = [each.predicates for each in patterns if each.subject in beside]
    if any(predicates is None or _GENERATED_BY in predicates for predicates in others):
        return None  # from a document the way leads on to other attempts
    return subjects.pop()


def _id(subject: str) -> str | None:
    prefix = f"<{v.ACTIVITIES}"
    if not subject.startswith(prefix) or "#" in subject:
        return None
    try:
        return str(UUID(subject[len(prefix) : -1]))
    except ValueError:
        return str(UUID(int=0))  # no attempt's


def _times(found: QueryPatterns, block: int | None, variable: str | None) -> tuple[int, int]:
    """Between which times the attempts started."""
    since, until = 0, CaptureFilter().until
    for each in found.comparisons:
        applies = each.block == block or (each.block is None and block is not None and found.certain[block])
        moment = _milliseconds(each.literal)
        if each.variable == variable and applies and moment is not None:
            since = max(since, moment) if each.operator in (">", ">=", "=") else since
            until = min(until, moment + 1) if each.operator in ("<", "<=", "=") else until
    return since, until


def _milliseconds(literal: str) -> int | None:
    if not literal.endswith(_TIME):
        return None
    try:
        moment = datetime.fromisoformat(literal[1 : -len(_TIME)])
    except ValueError:
        return None
    return int(moment.timestamp() * 1000) if moment.tzinfo else None
