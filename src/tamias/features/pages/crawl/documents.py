"""Crawled documents: a list of them, and the page of one with its statements, links and visits."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

import msgspec
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse
from starlette.requests import Request

from tamias.archive.captures import named_captures
from tamias.archive.moments import digits, rfc3339
from tamias.archive.reader.library import NotArchived
from tamias.archive.tombstones import check_forgotten
from tamias.crawl.store.progress import kind_of_reason
from tamias.features.catalogue.store.local_store import RunningQuery
from tamias.features.dcat.terms import PREFIXES
from tamias.features.pages.datasets.preview import Preview, preview_of_statements
from tamias.features.pages.html.page import page, table_of
from tamias.features.pages.queries import (
    Record,
    place_of_host,
    records,
    records_of_buckets,
    rows_of_buckets,
    rows_of_captures,
)
from tamias.features.service.files.delivery import memento_path
from tamias.features.service.http.callers import may_read_all
from tamias.features.service.http.exchange import parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.search import LONGEST_SEARCH, MOST_WORDS, find_words
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import usages
from tamias.features.service.service import Service
from tamias.features.service.sparql.endpoint import SparqlRequest
from tamias.frontier.keys import bucket_of, hash64, host_hash
from tamias.model.capture import Extent, Outcome
from tamias.model.errors import UrlError
from tamias.model.resource import resource_id
from tamias.model.url import fetch_url
from tamias.plugins import load_all
from tamias.sinks.graphs import whole_lines
from tamias.sinks.segments.segment_files import SegmentError, SegmentReader

MOST_DOCUMENTS = 100
MOST_LOOKED_AT = 20_000
"""Of each bucket, the newest: among these a text is looked for."""
MOST_LABELS = 50
_LABEL_SECONDS = 3.0
_RESULTS = "application/sparql-results+json"
MOST_STATEMENTS = 200
MOST_LINKS = 100
MOST_VISITS = 50
MOST_CAPTURES = 50
_VISIT = (
    "at", "seconds", "outcome", "status", "byte_size", "statements", "media_type", "reason", "requested",
)  # fmt: skip
_TROUBLE = ("failed", "refused", "skipped", "gone")
_LONGEST_SEARCH = 2048
_CAPTURE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LAST = "ffffffff-ffff-ffff-ffff-ffffffffffff"
_LINKS_QUERY = """SELECT DISTINCT ?document ?subject ?predicate WHERE {{
  GRAPH ?document {{ ?subject ?predicate <{0}> }}
  FILTER(?document != <{0}>)
}} LIMIT 100"""
_TITLES = (
    "http://purl.org/dc/terms/title",
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
    "http://purl.org/dc/elements/1.1/title",
)
"""Predicates that say what a thing is called, the best first."""
_WHOLES = frozenset(
    NamedNode(PREFIXES[space] + name)
    for space, name in (("skos", "ConceptScheme"), ("dcat", "Catalog"), ("void", "Dataset"))
) | {NamedNode("http://www.w3.org/2002/07/owl#Ontology")}
"""Types of what a document as a whole is."""


@page(
    "/documents", "documents.html", table=table_of("documents", "url", "read_at", "statements", "media_type")
)
async def documents(request: Request, service: Service) -> Record:
    """The newest documents; with `q`, those whose URL has it, and labels; with `host`, those of a host."""
    words, host = (parameter(request, "q") or "").strip(), parameter(request, "host")
    if len(words) > _LONGEST_SEARCH:
        raise HttpProblem(400, f"'q' may have {_LONGEST_SEARCH} characters at most")
    after = parameter(request, "after")
    if after is not None and host is None and not _CAPTURE.fullmatch(after):
        raise HttpProblem(400, "'after' is not one that this list returned")
    labels = await _labels(service, words, owner=may_read_all(request)) if words and not after else []
    found = await service.pool.run(lambda db: _documents(db, words, host, after))
    return {**found, "labels": labels}


async def _labels(service: Service, words: str, *, owner: bool) -> list[Record]:
    """Return labels in crawled documents that have all the words; none where looking for them takes long."""
    parts = await service.pool.run(lambda db: find_words(db, words[:LONGEST_SEARCH])[:MOST_WORDS])
    if service.sparql is None or not parts:
        return []
    tests = " && ".join(f"CONTAINS(LCASE(STR(?label)), {Literal(each)})" for each in parts)
    predicates = " ".join(f"<{each}>" for each in _TITLES)
    query = f"""SELECT DISTINCT ?document ?thing ?label WHERE {{
        GRAPH ?document {{ ?thing ?called ?label }} VALUES ?called {{ {predicates} }}
        FILTER({tests} && !STRSTARTS(STR(?document), "urn:tamias:")) }} LIMIT {MOST_LABELS}"""
    asking = RunningQuery()
    try:
        async with asyncio.timeout(_LABEL_SECONDS):
            answer = await service.sparql.ask(SparqlRequest(query, {}), _RESULTS, asking)
    except (TimeoutError, HttpProblem):
        return []
    finally:
        asking.give_up()
    with answer.content:
        bindings = msgspec.json.decode(answer.content.read())["results"]["bindings"]
    found = [{name: each[name]["value"] for name in ("label", "thing", "document")} for each in bindings]

    def listed(db: ServiceSession) -> set[str]:
        known = rows_of_buckets(db, "known_documents", documents=[each["document"] for each in found])
        said = usages(db, [capture for _, capture in known])
        return {url for url, capture in known if owner or not said[capture].noindex}

    shown = await service.pool.run(listed)
    return [each for each in found if each["document"] in shown]


def _documents(db: ServiceSession, words: str, host: str | None, after: str | None) -> Record:
    bounds = {"most": MOST_LOOKED_AT, "limit": MOST_DOCUMENTS + 1}
    if host is None:
        found = rows_of_buckets(db, "newest_documents", before=after or _LAST, part=words, **bounds)
        found.sort(key=lambda row: row[2], reverse=True)
    else:
        values: Record = {"after": after or "", **bounds}
        place = place_of_host(db, host)
        found = rows_of_captures(db, "documents_of_host", **place, **values) if place else []
    shown = _fill(db, found[:MOST_DOCUMENTS])
    last = shown[-1] if len(found) > MOST_DOCUMENTS else None
    return {
        "words": words,
        "host": host,
        "documents": [
            {"url": url, "read_at": rfc3339(at), "statements": quads, "media_type": media_type}
            for url, at, _, quads, media_type in shown
        ],
        "next": last and (last[2] if host is None else last[0]),
    }


def _fill(db: ServiceSession, found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Add what captures in files say of documents."""
    named = named_captures(db.session, [row[2] for row in found if row[3] is None])
    known = {each.id: (each.quads, each.found_type) for each in named}
    return [(*row[:3], *known.get(row[2], (row[3] or 0, row[4]))) for row in found]


@page("/document", "document.html", table=table_of("preview.statements", "subject", "predicate", "object"))
async def document(request: Request, service: Service) -> Record:
    """The document at `url`. Raises `HttpProblem`, `NotArchived`."""
    given = parameter(request, "url")
    if given is None:
        raise HttpProblem(400, "which document? add ?url=; /documents lists them")
    try:
        url = fetch_url(given)
    except UrlError as error:
        raise HttpProblem(400, f"'url' is not an address: {error}") from error
    return await service.pool.run(lambda db: _document(db, url))


def _document(db: ServiceSession, url: str) -> Record:
    # The latest complete reading, or the latest one that was cut.
    readings = records_of_buckets(db, "document", document=url)
    reading = max(readings, key=lambda each: (not each["cut"], each["started_at"]), default=None)
    found, place = [], _place(db, url)
    if reading is not None:
        values = {"bucket": reading["bucket"], "capture": reading["capture"], "limit": MOST_VISITS}
        found = rows_of_captures(db, "attempts_like", reading["qid"], **values)
    elif place:
        found = rows_of_captures(db, "attempts_at", **place, url=url, limit=MOST_VISITS)
    if reading is None or reading["segment"] is None:
        check_forgotten(db.session, resource_id(db.admission.key(url)))
    if reading is None and not found:
        raise NotArchived(f"{url} has not been fetched here")
    quads, note = _statements(db, reading)
    visits = [
        {**dict(zip(_VISIT, row, strict=True)), "at": rfc3339(row[0]), "outcome": Outcome(row[2]).word}
        for row in found
    ]
    failed = visits and visits[0]["outcome"] in _TROUBLE
    return {
        "url": url,
        "host": db.admission.queue(url) if db.settings.frontier.queue != "ip" else "",
        "title": _title(quads, url),
        "preview": preview_of_statements(quads, MOST_STATEMENTS) if note is None else Preview(note=note),
        "links_out": _links_out(db, quads, url),
        **links_to(db, url),
        "visits": visits,
        "captures": _recorded(db, url),
        "advice": kind_of_reason(visits[0]["reason"])[1] if failed else "",
    }


def links_to(db: ServiceSession, url: str) -> Record:
    """Return the pages that link to a URL, where links are stored, and a query for documents that name it."""
    place = _place(db, url)
    found = records(db, "links_to", **place, url=url, limit=MOST_LINKS) if place else []
    return {"links_in": found, "links_query": _LINKS_QUERY.format(url)}


def _recorded(db: ServiceSession, url: str) -> list[Record]:
    """Return the stored responses of a URL, with the paths where they are replayed."""
    recordings = load_all("recordings").values()
    return [
        {
            "at": rfc3339(each.captured_at),
            "status": each.status,
            "memento": memento_path(digits(each.captured_at), url),
        }
        for find in recordings
        for each in find(db.session, url, MOST_CAPTURES)
    ]


def _place(db: ServiceSession, url: str) -> dict[str, int] | None:
    """Return the place of a URL in the frontier; None where only a name server knows it."""
    if db.settings.frontier.queue == "ip":
        return None
    qid = host_hash(db.admission.queue(url))
    return {"bucket": bucket_of(qid, db.frontier.buckets), "qid": qid, "uid": hash64(db.admission.key(url))}


def _statements(db: ServiceSession, reading: Record | None) -> tuple[list[Quad], str | None]:
    """The first statements, or why there are none."""
    if reading is None:
        return [], "no RDF has been read from this URL"
    if reading["segment"] is None:
        return [], "it holds no statements any more"
    extent = Extent(*(reading[name] for name in ("segment", "frame", "start", "length")))
    try:
        with SegmentReader(db.open_segment) as reader:
            quads = chain.from_iterable(
                parse(lines, format=RdfFormat.N_QUADS, lenient=True)
                for lines in whole_lines(reader.read(extent))
            )
            return list(islice(quads, MOST_STATEMENTS + 1)), None
    except (SegmentError, OSError) as error:
        return [], f"its statements cannot be read: {error}"


def _title(quads: list[Quad], url: str) -> str | None:
    """Return the title of a document, of the vocabulary or catalogue in it, or of its only topic."""
    subjects = {url, url.partition("#")[0]}
    abouts = Counter(quad.subject.value for quad in quads if isinstance(quad.subject, NamedNode))
    subjects.update(each for each, count in abouts.items() if 2 * count > len(quads))
    subjects.update(
        each.subject.value for each in quads if each.object in _WHOLES and isinstance(each.subject, NamedNode)
    )
    for predicate in _TITLES:
        for quad in quads:
            named = isinstance(quad.subject, NamedNode) and quad.subject.value in subjects
            if named and quad.predicate.value == predicate and isinstance(quad.object, Literal):
                return quad.object.value[:300]
    return None


def _links_out(db: ServiceSession, quads: list[Quad], url: str) -> list[Record]:
    """Return the IRIs that a document names, first those that are documents with statements here."""
    named = dict.fromkeys(
        term.value.partition("#")[0]
        for quad in quads
        for term in (quad.object, quad.subject)
        if isinstance(term, NamedNode) and term.value.startswith(("http://", "https://"))
    )
    named.pop(url, None)
    links = list(named)[:MOST_LINKS]
    known = {row[0] for row in rows_of_buckets(db, "known_documents", documents=links)} if links else set()
    links.sort(key=lambda each: each not in known)
    return [{"url": each, "crawled": each in known} for each in links]
