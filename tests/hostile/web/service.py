"""Asks the service what an attacker would ask it, after the crawl."""

import http.client
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import msgspec

from benchmarks.measuring.children import answers, running
from tests.hostile.web.attack import Probe
from tests.hostile.web.attacks.service import PAGE_URL

PORT = 8099
MOST_READ = 4 << 20
HUGE = 100_000_000
_ARCHIVED = quote(PAGE_URL, safe="")
_JSON = {"Content-Type": "application/json"}
_QUERY = {"Content-Type": "application/sparql-query"}


def probes(data: Path, folder: Path) -> dict[str, Probe]:
    """Serves the data and asks."""
    with _serving(data, folder):
        return {
            "page": _ask("GET", f"/dataset/{_number(PAGE_URL)}"),
            "search": _ask("GET", "/search?q=" + quote("<script>alert('owned')</script>")),
            "archived": _ask("GET", f"/api/v1/get/file/{_ARCHIVED}"),
            "table": _ask("GET", "/search?q=test&format=csv"),
            "no secret": _ask("POST", "/api/v1/post/resource", b'{"url":"http://x.test/"}', _JSON),
            "wrong secret": _ask(
                "POST",
                "/api/v1/post/resource",
                b'{"url":"http://x.test/"}',
                {**_JSON, "Authorization": "Bearer no"},
            ),
            "huge body": _ask("POST", "/api/v1/post/resource", None, {**_JSON, "Content-Length": str(HUGE)}),
            "update": _ask("POST", "/sparql", b"DROP ALL", {"Content-Type": "application/sparql-update"}),
            "load": _ask("POST", "/sparql", b"SELECT * { SERVICE <http://10.66.0.1/> { ?s ?p ?o } }", _QUERY),
            "foreign host": _ask("GET", "/api/v1/stats/basic", headers={"Host": "evil.test"}),
        }


def _number(url: str) -> str:
    """Under which the service knows what was archived."""
    known = _ask("GET", f"/api/v1/get/dataset/{quote(url, safe='')}")
    return str(msgspec.json.decode(known.body)["id"]) if known.status == 200 else "unknown"


@contextmanager
def _serving(data: Path, folder: Path) -> Iterator[None]:
    words = ["serve", "--no-crawl", "--data", str(data), "--port", str(PORT)]
    with (
        (folder / "serve.log").open("wb") as log,
        running(
            [sys.executable, "-m", "tamias", *words],
            ready=lambda: answers(PORT, "/healthz"),
            stdout=log,
            stderr=log,
            env={**os.environ, "TAMIAS_SECRET": "right"},
        ),
    ):
        yield


def _ask(method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Probe:
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    try:
        connection.putrequest(method, path, skip_host="Host" in (headers or {}))
        sent = dict(headers or {})
        if body is not None:
            sent["Content-Length"] = str(len(body))
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Probe(
            status=answer.status, headers=found, body=answer.read(MOST_READ).decode("utf-8", "replace")
        )
    finally:
        connection.close()
