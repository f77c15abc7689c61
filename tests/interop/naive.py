"""What is written first when an endpoint is to be copied: a loop of LIMIT and OFFSET over rows in JSON."""

import json
import time
import urllib.parse
import urllib.request
from pathlib import Path

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, serialize

PAGE = 10_000
DEFAULT = "{ ?s ?p ?o }"
NAMED = "{ GRAPH ?g { ?s ?p ?o } }"


def copy(url: str, target: Path, *, union: bool) -> tuple[int, float]:
    """Requests and seconds of a copy to a file of N-Quads; of a union only the named graphs are copied."""
    began = time.perf_counter()
    requests = 0
    with target.open("wb") as file:
        for pattern in (NAMED,) if union else (DEFAULT, NAMED):
            offset = 0
            while rows := _rows(url, f"SELECT * WHERE {pattern} LIMIT {PAGE} OFFSET {offset}"):
                requests += 1
                offset += len(rows)
                file.write(serialize(map(_quad, rows), format=RdfFormat.N_QUADS))
            requests += 1
    return requests, time.perf_counter() - began


def _rows(url: str, query: str) -> list[dict[str, dict[str, str]]]:
    request = urllib.request.Request(
        url,
        data=urllib.parse.urlencode({"query": query}).encode(),
        headers={"Accept": "application/sparql-results+json"},
    )
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.loads(response.read(), strict=False)["results"]["bindings"]


def _quad(row: dict[str, dict[str, str]]) -> Quad:
    terms = [_term(row[name]) for name in ("s", "p", "o")]
    return Quad(*terms, _term(row["g"])) if "g" in row else Quad(*terms)  # type: ignore[arg-type]


def _term(cell: dict[str, str]) -> NamedNode | BlankNode | Literal:
    if cell["type"] == "uri":
        return NamedNode(cell["value"])
    if cell["type"] == "bnode":
        return BlankNode(cell["value"].removeprefix("nodeID://"))
    if language := cell.get("xml:lang"):
        return Literal(cell["value"], language=language)
    return Literal(cell["value"], datatype=NamedNode(cell["datatype"]) if "datatype" in cell else None)
