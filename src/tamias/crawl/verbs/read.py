"""`tamias.read`: opens and analyses one source as the crawler would, without a database.

The description of one IRI is read by the cheapest way that its publisher declares with the Semantic Sitemap
extension: the IRI itself, an endpoint, and only then a dump.
"""

import asyncio
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from random import Random
from typing import BinaryIO, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from pyoxigraph import BlankNode, NamedNode, Quad

from tamias.analyse.links.discovery import discovery_links, kinds_in
from tamias.archive.sources.access_plan import Access, access_plan
from tamias.archive.sources.claim import authoritative
from tamias.content.containers.documents import documents
from tamias.content.formats import JSON_LD
from tamias.content.quad_lines import rdf_links
from tamias.crawl.analysis.analysers import (
    ACCEPT_CONTEXT,
    ROUNDS,
    Analysers,
    ContextCache,
    in_linked_context,
    open_limits,
)
from tamias.crawl.plan.admit import Admission, resolved
from tamias.crawl.request.robots import LoneClient
from tamias.model.capture import Body, Capture, Outcome, Request
from tamias.model.document import Document, LimitExceeded
from tamias.model.errors import UsageError
from tamias.model.finding import Finding, Links, Problem, Quads
from tamias.model.profile import Profile
from tamias.model.site import SemanticDataset, SemanticDatasets, covers
from tamias.model.url import authority
from tamias.model.vocabulary import sound_iri
from tamias.plugins import find
from tamias.protocols import Analyser
from tamias.settings import FiltersSettings, Settings, resolve

MOST_READ_TWICE = 16 << 20
"""A larger document is not read again when a JSON-LD context is at hand."""
MOST_TEXT = 512_000
_WITH_CONTEXTS = frozenset({JSON_LD, "text/html", "application/xhtml+xml"})

Source = bytes | str | os.PathLike[str] | BinaryIO


class Reading:
    """The content of a source, read on demand. Bad data never raises: see `problems`."""

    def __init__(
        self,
        parts: Iterator[Document | Problem],
        analysers: Mapping[str, Analyser],
        links: Iterable[Links] = (),
    ) -> None:
        self._analysers = analysers
        self._waiting: deque[Quad] = deque()
        self._links: dict[str, None] = {}
        self._problems: list[Problem] = []
        self._media_type: str | None = None
        self._profile: Profile | None = None
        self._declared: list[SemanticDataset] = []
        self._findings = self._read(parts)
        self._first = next(self._findings, None)
        self._add_links(links)

    @property
    def media_type(self) -> str | None:
        """Return the type of the first document; None when nothing could be read."""
        return self._media_type

    @property
    def quads(self) -> Iterator[Quad]:
        """The statements as they stand; plain triples are in the default graph. To be walked once."""
        while self._waiting or self._more():
            while self._waiting:
                yield self._waiting.popleft()

    @property
    def links(self) -> list[str]:
        """Return every address the source refers to, absolute, in order. Reads to the end."""
        self._finish()
        return list(self._links)

    @property
    def problems(self) -> list[Problem]:
        """Return what could not be read. Reads to the end."""
        self._finish()
        return list(self._problems)

    @property
    def declared(self) -> list[SemanticDataset]:
        """The datasets that a Semantic Sitemap declares. Reads to the end."""
        self._finish()
        return list(self._declared)

    @property
    def profile(self) -> Profile | None:
        """Return the profile of the first table; None where there is none. Reads to the end."""
        self._finish()
        return self._profile

    def _finish(self) -> None:
        while self._more():
            pass

    def _more(self) -> bool:
        """Takes in one more finding."""
        finding = self._first or next(self._findings, None)
        self._first = None
        if isinstance(finding, Quads):
            self._waiting.extend(finding.quads)
            self._links.update(dict.fromkeys(sorted(rdf_links(finding.quads))))
            self._add_links(kinds_in(finding.quads, "urn:tamias:source"))
        elif isinstance(finding, Links):
            self._add_links([finding])
        elif isinstance(finding, Problem):
            self._problems.append(finding)
        elif isinstance(finding, SemanticDatasets):
            self._declared += finding.datasets
        return finding is not None

    def _add_links(self, found: Iterable[Links]) -> None:
        urls = (resolved(reference, links.base) for links in found for reference in links.references)
        self._links.update((url, None) for url in urls if url is not None)

    def _read(self, parts: Iterator[Document | Problem]) -> Iterator[Finding]:
        try:
            for part in parts:
                if isinstance(part, Problem):
                    yield part
                    continue
                self._media_type = self._media_type or part.media_type
                analyser = self._analysers.get(part.media_type)
                if analyser is not None:
                    yield from analyser.analyse(part)
                else:
                    yield from self._profiled(part)
        except LimitExceeded as limit:
            yield Problem(str(limit))

    def _profiled(self, part: Document) -> Iterator[Problem]:
        document_profile = find("profilers", "document")
        found: Profile | None = document_profile and document_profile(part)
        self._profile = self._profile or found
        problems = [f"no analyser for {part.media_type}"] if found is None else found.problems
        yield from map(Problem, problems)


def read(source: Source, *, base: str | None = None, media_type: str | None = None) -> Reading:
    """Reads bytes, a path, an open binary file or a URL as the crawler would.

    `base` is what relative references are relative to; `media_type` is believed over the source's own word.
    Never raises on bad data, nor on a source that cannot be had: the reading's problems tell.
    """
    return read_with(resolve().settings, source, base=base, media_type=media_type)


def read_with(
    settings: Settings,
    source: Source,
    *,
    base: str | None = None,
    media_type: str | None = None,
    by_user: bool = True,
) -> Reading:
    """The same under given settings, such as scraping rules.

    Not `by_user` is a URL that a site named: filters, robots.txt and the delay hold for it, as in a crawl.
    """
    try:
        if isinstance(source, str) and "://" in source:
            return _read_url(source, base, media_type, settings, by_user=by_user)
        return _reading(_body(source), base or _base(source), media_type, settings, _name(source))
    except OSError as error:
        return Reading(iter([Problem(f"cannot read {source!r}: {error.strerror or error}")]), {})


def _reading(body: Body, base: str, media_type: str | None, settings: Settings, name: str | None) -> Reading:
    parts = documents(body, url=base, declared_type=media_type, limits=open_limits(settings), name=name)
    return Reading(parts, Analysers(settings))


def _body(source: bytes | str | os.PathLike[str] | BinaryIO) -> Body:
    if isinstance(source, bytes):
        return Body(size=len(source), sha256=sha256(source).hexdigest(), data=source)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        with path.open("rb") as file:
            return Body(
                size=path.stat().st_size, sha256=file_digest(file, "sha256").hexdigest(), path=str(path)
            )
    return _body(source.read())


def _in_memory(body: Body) -> Body:
    """The spool it stands in ends before it is read."""
    return body if body.path is None else _body(Path(body.path).read_bytes())


def _base(source: object) -> str:
    return Path(source).absolute().as_uri() if isinstance(source, str | os.PathLike) else "urn:tamias:source"


def _name(source: object) -> str | None:
    """The file name whose ending says what it is; None for bytes, where that of the base counts."""
    path = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    return Path(path).name if isinstance(path, str | os.PathLike) else None


def _read_url(
    url: str, base: str | None, media_type: str | None, settings: Settings, *, by_user: bool
) -> Reading:
    with tempfile.TemporaryDirectory(prefix="tamias-") as spool:
        named = _as_user_named(settings) if by_user else settings
        capture = asyncio.run(_fetch(url, named, Path(spool)))
        return asyncio.run(_read_with_contexts(capture, base, media_type, settings, Path(spool)))


async def _read_with_contexts(
    capture: Capture, base: str | None, media_type: str | None, settings: Settings, spool: Path
) -> Reading:
    """Return what stands at an address; JSON-LD contexts that it names are fetched, and it is read again."""
    if capture.body is None:
        return Reading(iter([Problem(f"{capture.outcome.word}: {capture.reason}")]), {})
    body, contexts = _in_memory(capture.body), ContextCache()
    client = LoneClient(settings, spool, Admission(settings, []))
    try:
        for _ in range(ROUNDS):
            reading = _reading_of(capture, body, base, media_type, settings, contexts)
            if reading.media_type not in _WITH_CONTEXTS or body.size > MOST_READ_TWICE:
                break
            to_fetch = contexts.to_fetch(each.wants for each in reading.problems if each.wants)
            if not to_fetch:
                break
            for address in to_fetch:
                found = await client.ask(Request(url=address, accept=ACCEPT_CONTEXT))
                contexts.put(address, found.body.data if found.body and found.status == 200 else None)
    finally:
        await client.close()
    return reading


def _reading_of(
    capture: Capture,
    body: Body,
    base: str | None,
    media_type: str | None,
    settings: Settings,
    contexts: ContextCache,
) -> Reading:
    name = capture.final_url.partition("#")[0].partition("?")[0].rpartition("/")[2]
    parts = documents(
        body,
        url=base or capture.final_url,
        declared_type=media_type or capture.declared_type,
        limits=open_limits(settings),
        name=name,
    )
    links = discovery_links(capture.hops[-1].headers if capture.hops else (), capture.final_url)
    return Reading(in_linked_context(parts, capture), Analysers(settings, contexts), links)


def fetch_text(settings: Settings, url: str) -> str:
    """Return what stands at an address, as text, up to a limit; empty if it cannot be had."""
    with tempfile.TemporaryDirectory(prefix="tamias-") as spool:
        capture = asyncio.run(_fetch(url, _as_user_named(settings), Path(spool)))
        if capture.body is None or capture.outcome is not Outcome.OK:
            return ""
        return (_in_memory(capture.body).data or b"")[:MOST_TEXT].decode("utf-8", "replace")


def _as_user_named(settings: Settings) -> Settings:
    """Return settings by which a URL is requested whatever filters and robots.txt say."""
    permit = msgspec.structs.replace(settings.permit, robots=False)
    fetch = msgspec.structs.replace(settings.fetch, delay=0.0)
    return msgspec.structs.replace(settings, filters=FiltersSettings(), permit=permit, fetch=fetch)


async def _fetch(url: str, settings: Settings, spool: Path) -> Capture:
    client = LoneClient(settings, spool, Admission(settings, []))
    try:
        return await client.ask(Request(url=url))
    finally:
        await client.close()


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

    def read_address(url: str) -> Reading:
        if url == iri:
            return read_with(settings, url)
        time.sleep(settings.fetch.delay)
        return read_with(settings, url, by_user=False)

    if declared is None:
        declared = _declared_by_site(settings, read_address, iri)
    found = OneIri(iri, [], [])
    for dataset, access in _ways(declared, iri):
        found.quads, problem = _read_by(read_address, access, dataset, iri)
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
