"""A client on the real fetcher, a real SPARQL server, and a proxy that gives it the manners of others."""

import asyncio
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from tamias.content.containers.documents import documents
from tamias.crawl.analysis.analysers import Analysers, open_limits
from tamias.fetch.credentials import HttpOptions
from tamias.fetch.http import HttpFetcher
from tamias.model.finding import Harvest, Problem, Quads
from tamias.settings import Settings
from tests.ports import free_port

QUERY_TYPE = "application/x-www-form-urlencoded"
_LABEL = re.compile(r"_:[0-9a-f]+")
_WINDOW = re.compile(r" LIMIT (\d+)(?: OFFSET (\d+))?\s*$")


class RealClient:
    """Asks without waiting; reads as a crawl does."""

    def __init__(self, spool, **options):
        self._fetcher = HttpFetcher(
            HttpOptions(user_agent="Tamias/test", spool_dir=str(spool), **options),
            forbidden=lambda _address: None,
            now=lambda: time.time_ns() // 1_000_000,
            retry_after=lambda value, _now: int(value) * 1000 if value else None,
        )
        settings = Settings()
        self._limits = open_limits(settings)
        self._analysers = Analysers(settings)
        self._last = None

    async def ask(self, request):
        self._discard()
        self._last = await self._fetcher.fetch(request, self._go_anywhere)
        return self._last

    def _discard(self):
        if self._last is not None and self._last.body is not None and self._last.body.path is not None:
            Path(self._last.body.path).unlink(missing_ok=True)

    def body(self, capture, most):
        if capture.body is None:
            return b""
        data = capture.body.data
        return (Path(capture.body.path).read_bytes() if data is None else data)[:most]

    def read(self, capture):
        told = capture.declared_type
        for part in documents(capture.body, url=capture.final_url, declared_type=told, limits=self._limits):
            if isinstance(part, Problem):
                yield part
            elif part.media_type in self._analysers:
                yield from self._analysers[part.media_type].analyse(part)

    async def close(self):
        await self._fetcher.close()

    @staticmethod
    async def _go_anywhere(_target):
        return None


class HarvestResult:
    """What a harvest brought."""

    def __init__(self):
        self.steps = []

    @property
    def end(self):
        return self.steps[-1].end

    @property
    def findings(self):
        return [finding for step in self.steps for finding in step.findings]

    @property
    def quads(self):
        return [quad for finding in self.findings if isinstance(finding, Quads) for quad in finding.quads]

    @property
    def problems(self):
        return [finding for finding in self.findings if isinstance(finding, Problem)]


@pytest.fixture
def copied(tmp_path):
    """`copied(harvester, url, kind)` is all that a harvest brings; `until(steps)` may end it early."""

    def go(harvester, url, kind, *, state=None, until=None, **options):
        async def main():
            client = RealClient(tmp_path / "spool", **options)
            found = HarvestResult()
            try:
                async with asyncio.timeout(300):
                    async for step in harvester.harvest(Harvest(url=url, kind=kind, state=state), client):
                        found.steps.append(step)
                        if until is not None and until(found.steps):
                            break
            finally:
                await client.close()
            return found

        return asyncio.run(main())

    return go


@pytest.fixture
def with_client(tmp_path):
    """`with_client(use)` is what the coroutine function `use(client)` returns."""

    def go(use, **options):
        async def main():
            client = RealClient(tmp_path / "spool", **options)
            try:
                async with asyncio.timeout(300):
                    return await use(client)
            finally:
                await client.close()

        return asyncio.run(main())

    return go


class SparqlServer:
    """The `oxigraph` server on a free port of the loopback address, in memory."""

    def __init__(self, *options):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        program = shutil.which(
            "oxigraph", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        )
        assert program is not None, "the oxigraph package is a dependency of the tests"
        self._process = subprocess.Popen(
            [program, "serve", "--bind", f"127.0.0.1:{port}", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the SPARQL server does not start")

    def load(self, nquads):
        """Puts these quads in the place of what it has."""
        asked = urllib.request.Request(
            f"{self.url}/store",
            data=nquads.encode(),
            headers={"Content-Type": "application/n-quads"},
            method="PUT",
        )
        urllib.request.urlopen(asked, timeout=60).close()

    def content(self):
        """All quads, as N-Quads."""
        asked = urllib.request.Request(f"{self.url}/store", headers={"Accept": "application/n-quads"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.read()

    def stop(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def shared_sparql_server():
    server = SparqlServer()
    yield server
    server.stop()


@pytest.fixture
def sparql_server(shared_sparql_server):
    shared_sparql_server.load("")
    return shared_sparql_server


@pytest.fixture
def union_server():
    server = SparqlServer("--union-default-graph")
    yield server
    server.stop()


class Proxy:
    """Before a SPARQL server: caps answers, mixes their order, fails when told to, keeps what was asked."""

    def __init__(self, target):
        self.target = target
        self.cap = None
        self.shuffled = False
        self.relabelled = False
        self.refuses = None
        """A pattern: queries in which it is found are answered with 400."""
        self.slow = None
        """A pattern: queries in which it is found take more than two seconds."""
        self.faults = {}
        """The number of an answer, counted from 1, or a function of it, to the way it fails."""
        self.gives = {}
        """What is sent instead of what the Accept header names first."""
        self.posts = True
        self.description = None
        """In Turtle, or None for that of the server itself."""
        self.asked = []
        self.described = 0
        """How often its own address was requested, without a query."""
        self.rows = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each body waits 40 ms until its headers are acknowledged

            def do_GET(self):
                outer._serve(self, urllib.parse.urlsplit(self.path).query)

            def do_POST(self):
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                if outer.posts:
                    outer._serve(self, form)
                else:
                    outer._send(self, 405, "text/plain", b"no POST")

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/sparql"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    @property
    def pages(self):
        """The queries for statements, the counted and listed ones left out."""
        forms = ("SELECT ?s ?p ?o", "SELECT ?g ?s ?p ?o", "CONSTRUCT")
        return [query for query in self.asked if query.startswith(forms)]

    def _serve(self, handler, form):
        query = urllib.parse.parse_qs(form).get("query", [None])[0]
        accept = handler.headers["Accept"]
        if query is None:
            self.described += handler.path == "/sparql"
            status, kind, body = self._described(accept)
        else:
            self.asked.append(query)
            if self.slow is not None and re.search(self.slow, query):
                time.sleep(2.1)
            status, kind, body = self._answer(query, accept)
        fault = self.faults(len(self.asked)) if callable(self.faults) else self.faults.get(len(self.asked))
        if fault is not None and query is not None:
            self._fail(handler, fault, kind, body)
        else:
            self._send(handler, status, kind, body)

    def _described(self, accept):
        if self.description is None:
            return self._forward(None, accept)
        return 200, "text/html" if "<html" in self.description else "text/turtle", self.description.encode()

    def _answer(self, query, accept):
        if self.refuses is not None and re.search(self.refuses, query):
            return 400, "text/plain", b"not here"
        instead = next((given for asked, given in self.gives.items() if accept.startswith(asked)), None)
        if instead is not None:
            return self._forward(self._windowed(query), instead)
        if query.startswith("CONSTRUCT") and "n-triples" in accept:
            return self._construct(query, accept)
        if "json" not in accept or not query.startswith("SELECT"):
            status, kind, body = self._forward(self._windowed(query), accept)
            self.rows.append(body.count(b"\n"))
            return status, kind, body
        return self._select(query)

    def _windowed(self, query):
        window = _WINDOW.search(query)
        if window is None or self.cap is None:
            return query
        limit = min(int(window[1]), self.cap)
        return f"{query[: window.start()]} LIMIT {limit} OFFSET {window[2] or 0}"

    def _construct(self, query, accept):
        window = _WINDOW.search(query)
        status, kind, body = self._forward(query[: window.start()], accept)
        if status != 200:
            return status, kind, body
        lines = body.decode().splitlines(keepends=True)
        if self.shuffled and "ORDER BY" not in query:
            random.shuffle(lines)
        start = int(window[2] or 0)
        lines = lines[start : start + int(window[1])][: self.cap]
        self.rows.append(len(lines))
        labels = {}
        if self.relabelled:
            lines = [
                _LABEL.sub(lambda label: labels.setdefault(label[0], f"_:b{len(labels)}"), line)
                for line in lines
            ]
        return status, kind, "".join(lines).encode()

    def _select(self, query):
        window = _WINDOW.search(query)
        bare = query[: window.start()] if window else query
        status, kind, body = self._forward(bare, "application/sparql-results+json")
        if status != 200:
            return status, kind, body
        answer = json.loads(body)
        rows = answer["results"]["bindings"]
        if self.shuffled and "ORDER BY" not in query:
            random.shuffle(rows)
        if window:
            start = int(window[2] or 0)
            rows = rows[start : start + int(window[1])]
        rows = rows[: self.cap]
        self.rows.append(len(rows))
        if self.relabelled:
            _relabel(rows)
        answer["results"]["bindings"] = rows
        return status, kind, json.dumps(answer).encode()

    def _forward(self, query, accept):
        url, data = f"{self.target}/query", None
        if query is not None:
            data = urllib.parse.urlencode({"query": query}).encode()
        asked = urllib.request.Request(url, data=data, headers={"Accept": accept})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, "text/plain", error.read()

    def _fail(self, handler, fault, kind, body):
        if fault == "slow":
            time.sleep(2)
        if fault == "html":
            self._send(handler, 200, "text/html", b"<!DOCTYPE html><html><body>Overloaded</body></html>")
        elif fault == "cut":
            self._send(handler, 200, kind, body[: len(body) // 2])
        elif fault == "gone":
            handler.send_response(200)
            handler.send_header("Content-Type", kind)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body[: len(body) // 2])
            handler.close_connection = True
        elif fault == "csv":
            self._send(handler, 200, "text/csv", b"s,p,o\r\nhttp://example.org/s,http://example.org/p,1\r\n")
        elif isinstance(fault, tuple):
            status, pause = fault
            self._send(handler, status, "text/plain", b"", {} if pause is None else {"Retry-After": pause})
        elif fault == "busy":
            self._send(handler, 503, "text/plain", b"", {"Retry-After": "7"})
        else:
            self._send(handler, 500, "text/plain", b"internal")

    def _send(self, handler, status, kind, body, headers=None):
        try:
            handler.send_response(status)
            handler.send_header("Content-Type", kind or "text/plain")
            handler.send_header("Content-Length", str(len(body)))
            for name, value in (headers or {}).items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True


def _relabel(rows):
    """As servers do that label blank nodes by their turn in each answer."""
    labels = {}

    def relabel(cells):
        for cell in cells:
            if cell["type"] == "bnode":
                cell["value"] = labels.setdefault(cell["value"], f"b{len(labels)}")
            elif cell["type"] == "triple":
                relabel(cell["value"].values())

    for row in rows:
        relabel(row.values())


@pytest.fixture
def proxy(sparql_server):
    found = Proxy(sparql_server.url)
    yield found
    found.close()


@pytest.fixture
def union_proxy(union_server):
    found = Proxy(union_server.url)
    yield found
    found.close()


def comparable(quads):
    """The quads as a set of lines in which blank nodes have canonical names."""
    if isinstance(quads, bytes | str):
        quads = parse(quads, format=RdfFormat.N_QUADS)
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad) for quad in dataset}


@pytest.fixture(name="comparable")
def comparable_fixture():
    return comparable
