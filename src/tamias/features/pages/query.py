"""The page to write a SPARQL query, with examples; results and files come from the API."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tamias.features.pages.html.page import POLICY, page
from tamias.features.pages.queries import Record
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service

LONGEST_QUERY = 32 * 1024
_POLICY = POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace(
    "img-src 'self'", "img-src 'self' data:"
)
"""Yasgui makes styles and small pictures as it goes; its scripts are a file, as all others."""
_GOALS = {
    "answer": ("/sparql", "query"),
    "files": ("/api/v1/get/files/sparql", "q"),
    "feed": ("/feed", "sparql"),
}


EXAMPLES = (
    (
        "The newest versions of all datasets",
        "SELECT ?dataset ?version ?issued WHERE {\n  ?dataset dcat:hasVersion ?version .\n"
        "  ?version dct:issued ?issued .\n}\nORDER BY DESC(?issued) LIMIT 100",
    ),
    (
        "How many datasets each catalogue offers",
        "SELECT ?portal (COUNT(?dataset) AS ?datasets) WHERE {\n  ?dataset arc:hasPortal ?portal .\n}\n"
        "GROUP BY ?portal ORDER BY DESC(?datasets)",
    ),
    (
        "Tables with a column about places",
        "SELECT DISTINCT ?file ?name WHERE {\n  ?table csvw:url ?file ;\n"
        "         csvw:tableSchema/csvw:column/csvw:title ?name .\n"
        '  FILTER(CONTAINS(LCASE(STR(?name)), "place") || CONTAINS(LCASE(STR(?name)), "city"))\n} LIMIT 100',
    ),
    (
        "Resources that are gone from the web but stored here",
        'SELECT ?dataset WHERE {\n  ?dataset arc:state "gone" .\n} LIMIT 100',
    ),
    (
        "What crawled documents call things; each document is a named graph",
        "SELECT ?document ?thing ?label WHERE {\n  GRAPH ?document { ?thing rdfs:label ?label }\n} LIMIT 100",
    ),
    (
        "Why visits failed in the last crawls",
        "SELECT ?reason (COUNT(*) AS ?visits) WHERE {\n  GRAPH <urn:tamias:metadata> {\n"
        '    ?visit tamias:outcome "failed" ; tamias:reason ?reason\n  }\n'
        "} GROUP BY ?reason ORDER BY DESC(?visits)",
    ),
    (
        "Suspicious responses, and why",
        "SELECT ?dataset ?reason WHERE {\n  ?dataset arc:hasSuspect ?suspect .\n"
        "  ?suspect arc:reason ?reason .\n} LIMIT 100",
    ),
)
"""Queries to begin with, each after what it asks."""


@page("/query", "query.html", headers={"Content-Security-Policy": _POLICY})
async def query(request: Request, _: Service) -> Record:
    """The form, with the query that the address has or the first example."""
    examples = [{"about": about, "query": text} for about, text in EXAMPLES]
    return {"query": _given_query(request) or examples[0]["query"], "examples": examples}


async def sent(request: Request) -> Response:
    """Leads a query to where it is answered: a form without scripts has one goal and one name only."""
    text = _given_query(request)
    goal = _GOALS.get(request.query_params.get("get", "answer"))
    if goal is None or not text:
        raise HttpProblem(400, "'query' must be a SPARQL query, and 'get' must be answer, files or feed")
    path, name = goal
    return RedirectResponse(f"{path}?{urlencode({name: text})}", 303)


def _given_query(request: Request) -> str:
    text = request.query_params.get("query", "").strip()
    if len(text) > LONGEST_QUERY:
        raise HttpProblem(400, f"a query in an address may have {LONGEST_QUERY} characters at most; POST it")
    return text
