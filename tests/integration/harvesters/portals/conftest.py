"""A portal on loopback whose answers a test writes, and a client that asks it as a crawl would."""

import asyncio
import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from pyoxigraph import Store

from tamias.content.containers.documents import documents
from tamias.content.formats import is_rdf
from tamias.crawl.analysis.analysers import Analysers, open_limits
from tamias.fetch.credentials import HttpOptions
from tamias.fetch.http import HttpFetcher
from tamias.model.capture import Capture, Outcome
from tamias.model.finding import Datasets, Harvest, Links, Problem, Quads
from tamias.permit.delay import retry_after_ms
from tamias.permit.robots import parse
from tamias.settings import Settings

PREFIXES = """
PREFIX dcat: <http://www.w3.org/ns/dcat#>
PREFIX dct: <http://purl.org/dc/terms/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX vcard: <http://www.w3.org/2006/vcard/ns#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""


class LoopbackClient:
    """Asks with the real fetcher, obeys robots.txt, reads with the real analysers; never waits."""

    def __init__(self, fetcher, robots):
        self.fetcher = fetcher
        self.rules = parse(robots)
        self.asked = []

    async def ask(self, request):
        verdict = self.rules.verdict(request.url)
        if not verdict.allowed:
            reason = f"robots.txt, {verdict.rule}"
            return Capture(url=request.url, started_at=0, ended_at=0, outcome=Outcome.REFUSED, reason=reason)
        self.asked.append(request.url)

        async def follow(_target):
            return None

        return await self.fetcher.fetch(request, follow)

    def body(self, capture, most):
        if capture.body is None:
            return b""
        if capture.body.data is not None:
            return capture.body.data[:most]
        with open(capture.body.path, "rb") as file:
            return file.read(most)

    def read(self, capture):
        settings = Settings()
        readers = Analysers(settings)
        parts = documents(
            capture.body,
            url=capture.final_url,
            declared_type=capture.declared_type,
            limits=open_limits(settings),
        )
        for part in parts:
            if isinstance(part, Problem):
                yield part
            elif is_rdf(part.media_type):
                yield from readers[part.media_type].analyse(part)


class HarvestResult:
    """All that a harvest brought."""

    def __init__(self, steps, asked):
        self.steps = steps
        self.asked = asked

    def _of(self, kind):
        return [found for step in self.steps for found in step.findings if isinstance(found, kind)]

    @property
    def end(self):
        return self.steps[-1].end

    @property
    def datasets(self):
        return [dataset for found in self._of(Datasets) for dataset in found.datasets]

    @property
    def records(self):
        return [dataset.record for dataset in self.datasets]

    @property
    def quads(self):
        return [quad for found in self._of(Quads) for quad in found.quads]

    @property
    def problems(self):
        return [problem.what for problem in self._of(Problem)]

    def links(self, kind=None):
        return [url for found in self._of(Links) if found.kind == kind for url in found.references]

    def says(self, pattern):
        store = Store()
        store.extend(self.quads)
        return bool(store.query(f"{PREFIXES} ASK {{ {pattern} }}"))


class Site:
    """A web server; `answer(path, query)` gives a body, or a status, a body and headers."""

    def __init__(self, spool):
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # or headers and body go in two packets, and the second waits for the first

            def do_GET(self):
                site.requests.append(self.path)
                split = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(split.query).items()}
                self.send_all(site.answer(split.path, query))

            def send_all(self, answer):
                status, body, headers = answer if isinstance(answer, tuple) else (200, answer, {})
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                with contextlib.suppress(ConnectionError):
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.root = f"http://127.0.0.1:{self.server.server_port}/"
        self.answer = lambda path, query: (404, b"no such page", {})
        self.requests = []
        self.robots = b""
        self.spool = spool

    def harvest(self, harvester, path="", state=None, most=None, **fetch):
        """The harvest of a harvester from an address of this site; `most` stops it after as many steps."""

        async def main():
            fetcher = HttpFetcher(
                HttpOptions(user_agent="tamias/test", spool_dir=str(self.spool), **fetch),
                forbidden=lambda _address: None,
                now=lambda: time.time_ns() // 1_000_000,
                retry_after=retry_after_ms,
            )
            client = LoopbackClient(fetcher, self.robots)
            [kind] = harvester.kinds
            steps = []
            try:
                async with (
                    asyncio.timeout(60),
                    contextlib.aclosing(
                        harvester.harvest(Harvest(url=self.root + path, kind=kind, state=state), client)
                    ) as harvesting,
                ):
                    async for step in harvesting:
                        steps.append(step)
                        if len(steps) == most:
                            break
            finally:
                await fetcher.close()
            return HarvestResult(steps, client.asked)

        return asyncio.run(main())

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def site(tmp_path):
    found = Site(tmp_path / "spool")
    yield found
    found.close()
