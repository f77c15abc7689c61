"""A portal on a real server, and a client with a real fetcher."""

import asyncio
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tamias.content.containers.documents import documents
from tamias.crawl.analysis.analysers import Analysers
from tamias.fetch.credentials import HttpOptions
from tamias.fetch.http import HttpFetcher
from tamias.model.capture import Capture, Outcome
from tamias.model.document import Document
from tamias.model.finding import Datasets, Harvest, Links, Problem, Quads, SourceRecords
from tamias.permit.delay import retry_after_ms
from tamias.settings import Settings


class Portal:
    """Answers with what `serve(path, query)` gives: bytes, a value for JSON, or (status, headers, bytes)."""

    def __init__(self):
        self.serve = lambda path, query: None
        self.log = []
        self.forbidden = ()
        handler = type("Handler", (_Handler,), {"portal": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.root = f"http://127.0.0.1:{self.server.server_address[1]}/"

    def url(self, path):
        return self.root + path.lstrip("/")


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        self.portal.log.append((parts.path, query))
        answer = self.portal.serve(parts.path, query)
        answer = (404, {}, b"") if answer is None else answer
        if not isinstance(answer, bytes | tuple):
            answer = (200, {"Content-Type": "application/json"}, json.dumps(answer).encode())
        status, headers, body = answer if isinstance(answer, tuple) else (200, {}, answer)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class PoliteClient:
    """Asks without delay; instead of robots.txt there are the portal's forbidden paths."""

    def __init__(self, fetcher, forbidden):
        self._fetcher = fetcher
        self._forbidden = forbidden
        self._analysers = Analysers(Settings())

    async def ask(self, request):
        async def follow(_target):
            return None

        if urlsplit(request.url).path.startswith(self._forbidden):
            reason = "robots.txt: Disallow"
            return Capture(url=request.url, started_at=0, ended_at=0, outcome=Outcome.REFUSED, reason=reason)
        return await self._fetcher.fetch(request, follow)

    def body(self, capture, most):
        if capture.body is None:
            return b""
        stored = capture.body.data if capture.body.path is None else Path(capture.body.path).read_bytes()
        return stored[:most]

    def read(self, capture):
        for part in documents(capture.body, url=capture.final_url, declared_type=capture.declared_type):
            if isinstance(part, Document):
                yield from self._analysers[part.media_type].analyse(part)
            else:
                yield part


class HarvestResult:
    """What the steps of a harvest brought together."""

    def __init__(self, steps):
        self.steps = steps
        findings = [finding for step in steps for finding in step.findings]
        self.datasets = [
            each for finding in findings if isinstance(finding, Datasets) for each in finding.datasets
        ]
        self.quads = [quad for finding in findings if isinstance(finding, Quads) for quad in finding.quads]
        self.sources = [
            each for finding in findings if isinstance(finding, SourceRecords) for each in finding.records
        ]
        self.problems = [finding.what for finding in findings if isinstance(finding, Problem)]
        self.links = [
            (reference, finding.kind)
            for finding in findings
            if isinstance(finding, Links)
            for reference in finding.references
        ]
        self.end = steps[-1].end

    @property
    def titles(self):
        return [dataset.title for dataset in self.datasets]


@pytest.fixture
def portal():
    made = Portal()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def harvest(portal, tmp_path):
    """`harvest(harvester, path)` harvests to the end, or, with `most_steps`, part of the way."""

    async def steps(harvester, path, state, most_steps):
        fetcher = HttpFetcher(
            HttpOptions(user_agent="Tamias/test", spool_dir=str(tmp_path)),
            forbidden=lambda _address: None,
            now=lambda: time.time_ns() // 1_000_000,
            retry_after=retry_after_ms,
        )
        told = Harvest(url=portal.url(path), kind=min(harvester.kinds), state=state)
        harvesting = harvester.harvest(told, PoliteClient(fetcher, tuple(portal.forbidden)))
        try:
            found = []
            async with asyncio.timeout(60):
                async for step in harvesting:
                    found.append(step)
                    if len(found) == most_steps:
                        break
            return HarvestResult(found)
        finally:
            await harvesting.aclose()
            await fetcher.close()

    def run(harvester, path="/", *, state=None, most_steps=None):
        return asyncio.run(steps(harvester, path, state, most_steps))

    return run
