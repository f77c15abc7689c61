"""Harvester for a query: the addresses or datasets that a SELECT or CONSTRUCT returns, read like a portal.

The source is a URL as the SPARQL protocol has it: the endpoint, with the query as the parameter `query`.
"""

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
from tamias.features.sparql_copy.client import (
    LONG_QUERY,
    EndpointClient,
    EndpointLimits,
    QueryFailed,
    query_request,
    without_parameter,
)
from tamias.features.sparql_copy.select import Question, SelectState, question, select_pages
from tamias.model.capture import Capture, Outcome
from tamias.model.dataset import Dataset, Distribution
from tamias.model.errors import UsageError
from tamias.model.finding import Datasets, Finding, Harvest, HarvestEnd, HarvestStep, Problem, Quads
from tamias.protocols import PoliteClient

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
