"""What a node answers, ready for the wire as far as it can be. Sockets are `serving`'s."""

import io
import json
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

import msgspec
from pyoxigraph import QueryResultsFormat, QueryTriples, RdfFormat, Store, parse, serialize

SYNTAXES: dict[str, RdfFormat] = {
    "text/turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/rdf+xml": RdfFormat.RDF_XML,
    "application/ld+json": RdfFormat.JSON_LD,
    "text/n3": RdfFormat.N3,
    "application/n-quads": RdfFormat.N_QUADS,
    "application/trig": RdfFormat.TRIG,
}
FAVOURITE = "text/turtle"
AS_LINES = frozenset(
    {"text/turtle", "application/n-triples", "text/n3", "application/n-quads", "application/trig"}
)
"""Every N-Triples document is one of these too."""
RESULTS = {"json": QueryResultsFormat.JSON, "xml": QueryResultsFormat.XML, "csv": QueryResultsFormat.CSV,
           "tab-separated": QueryResultsFormat.TSV}  # fmt: skip


class NodeRequest(msgspec.Struct, frozen=True):
    """A request as far as answers differ by it."""

    target: str
    accept: str = "*/*"
    body: bytes = b""


class SaidPage(msgspec.Struct, frozen=True):
    """Triples as N-Triples, given in the syntax the client names first."""

    lines: bytes
    ready: dict[str, bytes] = {}

    def reply(self, asked: NodeRequest) -> bytes:
        """Written once for each syntax that is asked for."""
        media_type = negotiated(asked.accept)
        if media_type is None:
            return response(406)
        if media_type not in self.ready:
            body = written(self.lines, media_type)
            self.ready[media_type] = response(200, body, media_type, ("Vary", "Accept"))
        return self.ready[media_type]


class EndpointPage:
    """A SPARQL endpoint with one named graph; without a query it describes itself."""

    def __init__(self, lines: bytes, graph: str, description: bytes) -> None:
        self._lines, self._graph = lines, graph
        self._description = SaidPage(description, ready={})
        self._store: Store | None = None

    def reply(self, asked: NodeRequest) -> bytes:
        """The answer to a query by GET or POST."""
        form = asked.body.decode() if asked.body else urlsplit(asked.target).query
        given = parse_qs(form).get("query") or (
            [form] if asked.body and "=" not in form.split("{")[0] else []
        )
        if not given:
            return self._description.reply(asked)
        try:
            found = self._filled().query(given[0])
        except (SyntaxError, ValueError, OSError) as error:
            return response(400, str(error).encode(), "text/plain")
        if isinstance(found, QueryTriples):
            return response(200, found.serialize(format=RdfFormat.N_TRIPLES) or b"", "application/n-triples")
        chosen = next(
            (form for word, form in RESULTS.items() if word in asked.accept), QueryResultsFormat.JSON
        )
        return response(200, found.serialize(format=chosen) or b"", chosen.media_type)

    def _filled(self) -> Store:
        if self._store is None:
            self._store = Store()
            quads = self._lines.replace(b" .\n", f" <{self._graph}> .\n".encode())
            self._store.bulk_load(quads, format=RdfFormat.N_QUADS)
        return self._store


class SearchPage:
    """The `package_search` of a CKAN portal."""

    def __init__(self, packages: list[dict[str, object]]) -> None:
        self._packages = packages

    def reply(self, asked: NodeRequest) -> bytes:
        """One page of the packages."""
        query = parse_qs(urlsplit(asked.target).query)
        start, rows = int(query.get("start", ["0"])[0]), int(query.get("rows", ["10"])[0])
        page = self._packages[start : start + min(rows, 1000)]
        return as_json({"success": True, "result": {"count": len(self._packages), "results": page}})


Answer = bytes | SaidPage | EndpointPage | SearchPage


def response(status: int, body: bytes = b"", media_type: str = "", *headers: tuple[str, str]) -> bytes:
    """A whole response."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"Content-Type: {media_type}"] * bool(media_type)
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def as_json(value: object) -> bytes:
    """A JSON answer."""
    return response(200, json.dumps(value).encode(), "application/json")


def html(head: str, body: str) -> bytes:
    """An HTML page."""
    start = f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{head}</head>\n'
    page = f"{start}<body>{body}</body></html>\n"
    return response(200, page.encode(), "text/html; charset=utf-8")


def negotiated(accept: str) -> str | None:
    """The media type that the client names first of those we have; None if it wants none of them."""
    for part in accept.split(","):
        name = part.partition(";")[0].strip().lower()
        if name in SYNTAXES:
            return name
        if name in {"*/*", "text/*", ""}:
            return FAVOURITE
    return None


def written(lines: bytes, media_type: str) -> bytes:
    """N-Triples in another syntax; as they are where that will do."""
    if media_type in AS_LINES:
        return lines
    quads = parse(io.BytesIO(lines), format=RdfFormat.N_TRIPLES)
    return serialize(quads, format=SYNTAXES[media_type]) or b""
