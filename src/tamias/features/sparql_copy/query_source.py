"""Harvester for a query: the addresses or datasets that a SELECT or CONSTRUCT returns, read like a portal.

The source is a URL as the SPARQL protocol has it: the endpoint, with the query as the parameter `query`. It
is asked page by page, however few rows the server gives at once.
"""

import re
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from urllib.parse import urlencode

import msgspec
from pyoxigraph import NamedNode

from tamias.content.blank_labels import Labels
from tamias.features.dcat.datasets.dcat import catalogue_quads, dataset_quads
from tamias.features.dcat.datasets.descriptions import MOST_STATEMENTS, Descriptions, is_web
from tamias.features.dcat.datasets.from_dcat import datasets_in
from tamias.features.dcat.datasets.records import addresses_of, catalogue_findings, failure, links
from tamias.features.dcat.datasets.terms import below
from tamias.features.sparql_copy.answers import Row, SparqlAnswer
from tamias.features.sparql_copy.client import (
    LONG_QUERY,
    RESULT_FORMATS,
    EndpointClient,
    EndpointDialect,
    EndpointLimits,
    QueryFailed,
    query_request,
    without_parameter,
)
from tamias.model.capture import Capture, Outcome
from tamias.model.dataset import Dataset, Distribution
from tamias.model.errors import UsageError
from tamias.model.finding import Datasets, Finding, Harvest, HarvestEnd, HarvestStep, Problem, Quads
from tamias.protocols import PoliteClient

_TOKEN = re.compile(
    r"""
    (?P<skip> \#[^\n]* | <[^\s<>"{}|^`\\]*>
        | \"{3}(?:[^"\\]|\\.|\"{1,2}(?!\"))*\"{3} | '{3}(?:[^'\\]|\\.|'{1,2}(?!'))*'{3}
        | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | [?$@]\w+ | [\w.\-]*:[\w.\-%:]* )
    | (?P<open> [{(] ) | (?P<close> [})] ) | (?P<word> [A-Za-z]\w* ) | (?P<number> \d+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_ADDRESS_NAMES = ("url", "uri")
_FORMS = ("SELECT", "CONSTRUCT", "ASK", "DESCRIBE")
_TRIES = 3


class Question(msgspec.Struct, frozen=True):
    """A query without its window, cut where a window goes."""

    head: str
    tail: str
    """A VALUES clause at the end comes after the window."""
    limit: int | None
    offset: int
    ordered: bool
    constructs: bool = False

    def window(self, limit: int, offset: int, order: str = "") -> str:
        """The query for some of its rows."""
        return f"{self.head}{order}\nLIMIT {limit} OFFSET {offset}\n{self.tail}"


def question(query: str) -> Question:
    """Takes a user's query apart. Raises `UsageError` when it is neither SELECT nor CONSTRUCT.

    >>> question("SELECT ?s { ?s a <urn:c> } LIMIT 5 # all").limit
    5
    """
    words = list(_outer_words(query))
    names = [word.upper() for word, _ in words]
    form = next((name for name in names if name in _FORMS), None)
    if form is None or form not in ("SELECT", "CONSTRUCT"):
        raise UsageError("The query is neither a SELECT nor a CONSTRUCT.")
    end = next((at for (_, at), name in zip(words, names, strict=True) if name == "VALUES"), len(query))
    cuts = []
    found = {"LIMIT": 0, "OFFSET": 0}
    for (_, at), name, (number, number_at) in zip(words, names, [*words[1:], ("", 0)], strict=True):
        if name in found and number.isdigit():
            found[name] = int(number)
            cuts.append((at, number_at + len(number)))
    head = query[:end]
    for start, stop in reversed(cuts):
        head = head[:start] + head[stop:]
    limit = found["LIMIT"] if "LIMIT" in names else None
    return Question(
        head.rstrip() + "\n", query[end:], limit, found["OFFSET"], "ORDER" in names, form == "CONSTRUCT"
    )


def _outer_words(query: str) -> Iterator[tuple[str, int]]:
    """The words and numbers outside of all brackets, strings, names and comments, with their places."""
    depth = 0
    for token in _TOKEN.finditer(query):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if depth == 0 and (token["word"] or token["number"]):
            yield token[0], token.start()


class SelectState(msgspec.Struct, kw_only=True):
    """The state of a query: it goes on after the last page that was stored."""

    dialect: EndpointDialect = msgspec.field(default_factory=EndpointDialect)
    rows: int = 0
    """Read so far."""
    order: str | None = None
    """What pages are sorted by; None before the first page."""
    ended: bool = False


async def select_pages(
    client: EndpointClient, query: Question, state: SelectState, *, page: int = 10_000, most: int = 1_000_000
) -> AsyncIterator[list[dict[str, str]]]:
    """The rows of a SELECT that have an address, page by page; the state is that after the page.

    The address is the variable called `url` or `uri`, else the first that is an IRI, and comes first. There
    are no more rows than the query's own LIMIT, or `most`. Raises `QueryFailed`.
    """
    wanted = most if query.limit is None else min(query.limit, most)
    if state.order is None and wanted > 0:
        first = await _first(client, query.window(min(page, wanted), query.offset))
        state.order = await _order(client, query, first, wanted)
        if not state.order:
            yield _taken(first, state, wanted)
    while not state.ended and state.rows < wanted:
        window = query.window(min(page, wanted - state.rows), query.offset + state.rows, state.order or "")
        yield _taken(await client.answer(window, _TRIES), state, wanted)


def _taken(answer: SparqlAnswer, state: SelectState, wanted: int) -> list[dict[str, str]]:
    rows = answer.rows[: wanted - state.rows]
    state.rows += len(rows)
    state.ended = not rows or state.rows >= wanted
    return [found for row in rows if (found := _addressed(row, answer.variables))]


async def _order(client: EndpointClient, query: Question, first: SparqlAnswer, wanted: int) -> str:
    """The order to page in, where there is more than one page and the user gave none."""
    rows = len(first.rows)
    if query.ordered or rows >= wanted or not first.variables:
        return ""
    more = await client.answer(query.window(1, query.offset + rows), _TRIES)
    return f"ORDER BY {' '.join(f'?{name}' for name in first.variables)}" if more.rows else ""


async def _first(client: EndpointClient, query: str) -> SparqlAnswer:
    """The first answer, in the form of results that the server gives."""
    for results in RESULT_FORMATS[:-1]:
        client.dialect.results = results
        try:
            return await client.answer(query, _TRIES)
        except QueryFailed as failed:
            if failed.final or failed.lasting or failed.capture is None or failed.capture.body is None:
                raise
    client.dialect.results = RESULT_FORMATS[-1]
    return await client.answer(query, _TRIES)


def _addressed(row: Row, variables: list[str]) -> dict[str, str] | None:
    """The row with its address first; None when it has none."""
    names = [name for name in variables or row if name in row]
    named = [name for name in names if name.lower() in _ADDRESS_NAMES]
    first = next(iter(named or (name for name in names if row[name].type == "uri")), None)
    if first is None:
        return None
    return {name: row[name].text for name in sorted(names, key=lambda name: name != first)}


MOST_BYTES = 1 << 30
"""Of the answer to a CONSTRUCT; it is read as a stream."""
MOST_NAMED = 1_000_000
"""IRIs of an answer without datasets that are followed."""
_QUERY = "query"
_ACCEPT = "application/n-triples, text/turtle;q=0.9, application/rdf+xml;q=0.8, */*;q=0.1"
_CAP = "x-sparql-maxrows"
"""How Virtuoso says that it cut an answer."""
_FINDINGS_A_STEP = 20


class QueryHarvester:
    """Sends a user's query at each harvest."""

    kinds = frozenset({"sparql-query"})

    @staticmethod
    def address(endpoint: str, query: str) -> str:
        """Return the URL of a query. Raises `UsageError` when it is neither SELECT nor CONSTRUCT.

        >>> QueryHarvester.address("http://example.org/sparql", "SELECT ?url { ?url a <urn:c> }")
        'http://example.org/sparql?query=SELECT+%3Furl+%7B+%3Furl+a+%3Curn%3Ac%3E+%7D'
        """
        question(query)
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode({_QUERY: query})}"

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        endpoint, queries = without_parameter(harvest.url, _QUERY)
        query = queries[-1] if queries else ""
        try:
            parsed = question(query)
        except UsageError as error:
            yield HarvestStep(state=b"", end=HarvestEnd(outcome=Outcome.FAILED, reason=str(error)))
            return
        if parsed.constructs:
            steps = _constructed(endpoint, query, harvest.url, client)
        else:
            steps = _selected(endpoint, parsed, harvest, client)
        async for step in steps:
            yield step


async def _selected(
    endpoint: str, parsed: Question, harvest: Harvest, http: PoliteClient
) -> AsyncIterator[HarvestStep]:
    state = msgspec.msgpack.decode(harvest.state, type=SelectState) if harvest.state else SelectState()
    client = EndpointClient(http, endpoint, state.dialect, EndpointLimits().most_bytes)
    quads = [] if harvest.state else catalogue_quads(harvest.url, f"Query to {endpoint}", None, None)
    try:
        async for rows in select_pages(client, parsed, state):
            datasets = _datasets(rows, harvest.url)
            quads += [quad for each in datasets for quad in dataset_quads(each, harvest.url)]
            findings = [Quads(quads), Datasets(datasets), *links(addresses_of(datasets), harvest.url)]
            yield HarvestStep(state=msgspec.msgpack.encode(state), findings=findings if datasets else [])
            quads = []
    except QueryFailed as failed:
        said = f"{state.rows:,} rows read in {state.dialect.requests:,} requests"
        end = failed.end(said, retry=not failed.lasting)
        yield HarvestStep(state=msgspec.msgpack.encode(state), end=end)
        return
    found = state.rows > 0
    reason = f"{state.rows:,} rows in {state.dialect.requests:,} requests"
    end = HarvestEnd(outcome=Outcome.OK if found else Outcome.FAILED, reason=reason, complete=found)
    yield HarvestStep(state=msgspec.msgpack.encode(state), end=end)


def _datasets(rows: list[dict[str, str]], source: str) -> list[Dataset]:
    """The datasets of rows: those with the same `dataset` (or `source`) are one, with several files."""
    found: dict[str, Dataset] = {}
    for row in rows:
        address = next(iter(row.values()))
        if not is_web(address):
            continue
        name = row.get("dataset") or row.get("source") or address
        part = below(source, address, "distribution").value
        form = Distribution(url=address, iri=part, title=row.get("title"), format=row.get("format"))
        known = found.get(name)
        if known is None:
            known = Dataset(iri=name, record=name, title=row.get("title") or name, portal=row.get("portal"))
        found[name] = msgspec.structs.replace(known, distributions=(*known.distributions, form))
    return list(found.values())


async def _constructed(
    endpoint: str, query: str, source: str, client: PoliteClient
) -> AsyncIterator[HarvestStep]:
    """Send one request: a window of a CONSTRUCT would cut what belongs together."""
    form, post = urlencode({_QUERY: query}), len(query) > LONG_QUERY
    capture = await client.ask(query_request(endpoint, form, _ACCEPT, post=post))
    if end := failure(capture, "the answer to the query,", MOST_BYTES):
        yield HarvestStep(state=b"", end=end)
        return
    result = _ConstructResult(source)
    findings = result.findings(client, capture)
    while part := list(islice(findings, _FINDINGS_A_STEP)):
        yield HarvestStep(state=b"", findings=part)
    yield HarvestStep(state=b"", end=result.end(capture))


class _ConstructResult:
    """The statements of a CONSTRUCT, and the datasets that they describe."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._said = Descriptions()
        self._statements = self._problems = self._datasets = 0
        self._full = False

    def findings(self, client: PoliteClient, capture: Capture) -> Iterator[Finding]:
        labels, named = Labels("q"), dict[str, None]()
        for finding in client.read(capture):
            if isinstance(finding, Quads):
                quads = [labels.quad(quad) for quad in finding.quads]
                self._statements += len(quads)
                self._said.add(quads)
                nodes = (term for quad in quads for term in (quad.subject, quad.object))
                if len(named) < MOST_NAMED:
                    named.update((node.value, None) for node in nodes if isinstance(node, NamedNode))
                yield Quads(quads)
            elif isinstance(finding, Problem):
                self._problems += 1
                yield finding
        self._full = len(named) >= MOST_NAMED
        datasets = datasets_in(self._said, self._source)
        self._datasets = len(datasets)
        if datasets:
            yield from catalogue_findings(self._said, datasets, self._source)
        else:
            yield from links(dict.fromkeys(named), self._source)

    def end(self, capture: Capture) -> HarvestEnd:
        """Return the end of the harvest: counts, and whether that is all."""
        said = [f"{self._statements:,} statements, {self._datasets:,} datasets"]
        doubts = [f"{self._problems} problems in reading them"] if self._problems else []
        if capture.hops and (cap := capture.hops[-1].header(_CAP)):
            doubts.append(f"the server gives no more than {cap} rows")
        if self._full and not self._datasets:
            doubts.append(f"only the first {MOST_NAMED:,} IRIs are followed")
        if self._said.full:
            doubts.append(f"datasets were read from the first {MOST_STATEMENTS:,} statements only")
        outcome = Outcome.OK if self._statements else Outcome.FAILED
        complete = bool(self._datasets) and not doubts
        return HarvestEnd(outcome=outcome, reason="; ".join(said + doubts), complete=complete)
