"""Read requests of the SPARQL 1.1 Protocol: parameters and bodies in, a query out."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from tamias.features.catalogue.query_text import asks_elsewhere
from tamias.features.service.http.problems import HttpProblem

LONGEST_QUERY: Final = 128 * 1024
_MOST_PARAMETERS: Final = 1000
_GRAPHS: Final = ("default-graph-uri", "named-graph-uri")

Parameters = Sequence[tuple[str, str]]


class SparqlRequest(msgspec.Struct, frozen=True):
    """A query and the graphs that it is about; without graphs it is about all."""

    query: str
    graphs: dict[str, list[str]]


def by_get(parameters: Parameters) -> SparqlRequest | None:
    """A query by its parameters; None asks for the description of the service."""
    _refuse_update(parameters)
    queries = [value for name, value in parameters if name == "query"]
    if not queries:
        return None
    return _request(queries, parameters)


def by_post(content_type: str, body: bytes, parameters: Parameters) -> SparqlRequest:
    """A query by either form of POST. Raises `HttpProblem`."""
    kind = content_type.partition(";")[0].strip().lower()
    _refuse_update(parameters)
    if kind == "application/sparql-query":
        return _request([_decoded(body)], parameters)
    if kind == "application/x-www-form-urlencoded":
        form = _form(body)
        _refuse_update(form)
        return _request([value for name, value in form if name == "query"], form)
    if kind == "application/sparql-update":
        raise _read_only()
    raise HttpProblem(
        415, "a query is posted as application/sparql-query or as application/x-www-form-urlencoded"
    )


def _request(queries: list[str], parameters: Parameters) -> SparqlRequest:
    if len(queries) != 1 or not queries[0].strip():
        raise HttpProblem(400, "send exactly one 'query'")
    (query,) = queries
    if len(query) > LONGEST_QUERY:
        raise HttpProblem(413, f"a query may have {LONGEST_QUERY} characters at most")
    if asks_elsewhere(query):
        raise HttpProblem(400, "SERVICE is not supported: other servers are not queried")
    graphs = {name: [value for each, value in parameters if each == name] for name in _GRAPHS}
    return SparqlRequest(query, {name: values for name, values in graphs.items() if values})


def _form(body: bytes) -> Parameters:
    try:
        return parse_qsl(
            _decoded(body), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS, errors="strict"
        )
    except ValueError as error:
        raise HttpProblem(400, f"the form cannot be read: {error}") from None


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise HttpProblem(400, f"the query is not UTF-8 at byte {error.start}") from None


def _refuse_update(parameters: Parameters) -> None:
    if any(name == "update" for name, _ in parameters):
        raise _read_only()


def _read_only() -> HttpProblem:
    return HttpProblem(403, "this endpoint is for reading only: it takes no updates")
