"""The page about the API: every route with its parameters and an example, from the table of endpoints."""

import shlex
from collections.abc import Sequence
from functools import partial
from urllib.parse import quote

from starlette.requests import Request

from tamias.features.pages.html.page import HtmlPage, table_of
from tamias.features.pages.queries import Record
from tamias.features.service.http.endpoints import Endpoint
from tamias.features.service.http.exchange import base_of
from tamias.features.service.service import Service

_EXAMPLES = {
    "URL": quote("https://example.org/data.csv", safe=""),
    "TYPE": "csv",
    "domain": "example.org",
    "ID": "3b1f0c5d9a7e4c2b8f6d1a0e_1",
}
_GROUPS = (
    ("/api/v1/get", "Datasets and files"),
    ("/api/v1/stats", "Figures"),
    ("/api/v1/post", "Writing"),
    ("/api/v1/crawl", "Writing"),
    ("/api/v1", "Lists and changes"),
    ("/timegate", "Time (Memento)"),
    ("/timemap", "Time (Memento)"),
    ("/memento", "Time (Memento)"),
    ("/cdx", "Time (Memento)"),
    ("/sparql", "SPARQL"),
    ("/", "Others"),
)


def reference_page(endpoints: Sequence[Endpoint]) -> HtmlPage:
    """The page that lists them."""
    return HtmlPage(
        path="/api",
        template="api.html",
        view=partial(_listing, endpoints),
        data="/openapi.json",
        elsewhere=True,
        table=table_of("", "method", "path", "about", "secret"),
    )


async def _listing(endpoints: Sequence[Endpoint], request: Request, _: Service) -> list[Record]:
    """Return the routes of the API, those of a group together."""
    base = base_of(request)
    order = list(dict.fromkeys(name for _, name in _GROUPS))
    return sorted((_listed(each, base) for each in endpoints), key=lambda each: order.index(each["group"]))


def _listed(endpoint: Endpoint, base: str) -> Record:
    return {
        "group": next(name for start, name in _GROUPS if endpoint.path.startswith(start)),
        **{name: getattr(endpoint, name) for name in ("method", "path", "about", "secret", "parameters")},
        "answers": {status: answer.about for status, answer in endpoint.answers.items()},
        "example": _example(endpoint, base),
    }


def _example(endpoint: Endpoint, base: str) -> str:
    """Return a curl command for a route."""
    path = endpoint.path
    for name, value in _EXAMPLES.items():
        path = path.replace(f"{{{name}}}", value)
    words = ["curl", base + path]
    if endpoint.secret:
        words += ["-H", "Authorization: Bearer SECRET"]
    if endpoint.method == "POST":
        words += (
            ["-X", "POST"] if endpoint.body is None else ["--json", '{"url": "https://example.org/data.csv"}']
        )
    return shlex.join(words)
