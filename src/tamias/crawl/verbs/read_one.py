"""The description of one IRI, read by the cheapest way that its publisher declares.

The ways are those of the Semantic Sitemap extension: the IRI itself, an endpoint, and only then a dump.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from pyoxigraph import BlankNode, NamedNode, Quad

from tamias.archive.sources.access_plan import Access, access_plan
from tamias.archive.sources.claim import authoritative
from tamias.crawl.verbs.read import Reading, fetch_text, read_with
from tamias.model.errors import UsageError
from tamias.model.site import SemanticDataset, covers
from tamias.model.url import authority
from tamias.model.vocabulary import sound_iri
from tamias.settings import Settings

MOST_SITEMAPS: Final = 5
_LOOKED_UP: Final = ("/sitemap.xml",)
_SITEMAP: Final = "sitemap:"
_NAMED: Final = "named-graph-uri"

Read = Callable[[str], Reading]


class WayTried(msgspec.Struct, frozen=True):
    """An attempt and its result."""

    kind: str
    url: str
    why: str
    statements: int
    problem: str | None = None


class OneIri(msgspec.Struct):
    """The statements about an IRI, and the way they were read."""

    iri: str
    quads: list[Quad]
    tried: list[WayTried]


def read_one(
    settings: Settings, iri: str, declared: Sequence[tuple[SemanticDataset, frozenset[str]]] | None = None
) -> OneIri:
    """Reads about one IRI. `declared`: datasets, and what counts of them; None: its site is asked."""

    if sound_iri(iri) is None:
        raise UsageError(f"{iri!r} is not an IRI")

    def read(url: str) -> Reading:
        if url == iri:
            return read_with(settings, url)
        time.sleep(settings.fetch.delay)
        return read_with(settings, url, by_user=False)

    if declared is None:
        declared = _declared_by_site(settings, read, iri)
    found = OneIri(iri, [], [])
    for dataset, access in _ways(declared, iri):
        found.quads, problem = _read_by(read, access, dataset, iri)
        found.tried.append(WayTried(access.kind, access.urls[0], access.why, len(found.quads), problem))
        if found.quads:
            break
    return found


def _ways(
    declared: Iterable[tuple[SemanticDataset, frozenset[str]]], iri: str
) -> list[tuple[SemanticDataset, Access]]:
    """Return all ways, the cheap ones of every dataset before any dump."""
    chance, own = Random(iri), [each for each in declared if covers(each[0], iri, each[1])]
    cheap = [
        (dataset, access)
        for dataset, among in own
        for access in access_plan(dataset, "one", chance, iri=iri, among=among)
    ]
    large = [
        (dataset, access)
        for dataset, among in own
        for access in access_plan(dataset, "query", chance, among=among)
        if access.kind in {"dump", "fragments"}
    ]
    if not own:
        return [(SemanticDataset(), Access("dereference", (iri,), "nothing is declared about it"))]
    itself = [each for each in cheap if each[1].kind == "dereference"]
    return [*itself[:1], *(each for each in cheap if each[1].kind != "dereference"), *large]


def _read_by(read: Read, access: Access, dataset: SemanticDataset, iri: str) -> tuple[list[Quad], str | None]:
    urls = access.urls
    if access.kind == "sparql":
        urls = tuple(_question(url, iri, _slicing(dataset, url)) for url in urls)
    quads: list[Quad] = []
    problem: str | None = None
    for url in urls:
        reading = read(url)
        quads += _about(reading.quads, iri) if access.kind in {"dump", "fragments"} else list(reading.quads)
        problem = problem or next((each.what for each in reading.problems), None)
    if not any(NamedNode(iri) in (quad.subject, quad.object) for quad in quads):
        return [], problem or "it says nothing about the IRI"
    return quads, problem


def _slicing(dataset: SemanticDataset, url: str) -> str | None:
    place = url.partition("?")[0]
    found = (each.slicing for each in dataset.endpoints if each.url.partition("?")[0] == place)
    return next(found, None)


def _question(endpoint: str, iri: str, slicing: str | None) -> str:
    """The address that asks an endpoint for the description, as its slicing says that it is made."""
    address, _, query = endpoint.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    graphs = "".join(f" FROM <{graph}>" for name, graph in pairs if name == _NAMED and sound_iri(graph))
    others = [pair for pair in pairs if pair[0] != _NAMED]
    node = f"<{iri}>"
    if slicing in {"cbd", "scbd", "msg"}:
        text = f"DESCRIBE {node}{graphs}"
    elif slicing == "subject-object":
        text = (
            f"CONSTRUCT {{ {node} ?p ?o . ?s ?q {node} }}{graphs} "
            f"WHERE {{ {{ {node} ?p ?o }} UNION {{ ?s ?q {node} }} }}"
        )
    else:
        text = f"CONSTRUCT {{ {node} ?p ?o }}{graphs} WHERE {{ {node} ?p ?o }}"
    return f"{address}?{urlencode([*others, ('query', text)])}"


def _about(quads: Iterable[Quad], iri: str) -> list[Quad]:
    """The statements about an IRI in a dump, with those about the blank nodes that they name."""
    wanted: set[NamedNode | BlankNode] = {NamedNode(iri)}
    blank: dict[BlankNode, list[Quad]] = {}
    found: list[Quad] = []
    for quad in quads:
        if quad.subject in wanted:
            found.append(quad)
        elif isinstance(quad.subject, BlankNode):
            blank.setdefault(quad.subject, []).append(quad)
    for quad in found:
        if isinstance(quad.object, BlankNode):
            found += blank.pop(quad.object, [])
    return found


def _declared_by_site(
    settings: Settings, read: Read, iri: str
) -> list[tuple[SemanticDataset, frozenset[str]]]:
    """Return what the sitemaps of its host declare, as far as they may speak for it."""
    if urlsplit(iri).scheme not in {"http", "https"}:
        return []
    place = authority(iri)
    found = []
    for sitemap in _sitemaps(settings, place):
        found += [(each, authoritative(each, sitemap, ())) for each in read(sitemap).declared]
    return found


def _sitemaps(settings: Settings, place: str) -> list[str]:
    """Return those that robots.txt names, and where one usually is."""
    lines = fetch_text(settings, f"{place}/robots.txt").splitlines()
    named = [line[len(_SITEMAP) :].strip() for line in lines if line.lower().startswith(_SITEMAP)]
    usual = [place + path for path in _LOOKED_UP]
    return list(dict.fromkeys([*named, *usual]))[:MOST_SITEMAPS]
