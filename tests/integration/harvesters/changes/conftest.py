"""An archive in memory that takes in harvests one after the other, and the client that it harvests with."""

import asyncio
import contextlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from tamias.content.containers.documents import documents
from tamias.crawl.analysis.analysers import Analysers
from tamias.features.dcat.datasets.mapping import map_again
from tamias.fetch.credentials import HttpOptions
from tamias.fetch.http import HttpFetcher
from tamias.model.capture import Outcome
from tamias.model.document import Document
from tamias.model.finding import Datasets, Deleted, Harvest, Present, Quads, SourceRecords
from tamias.permit.delay import retry_after_ms
from tamias.settings import Settings


class Server:
    """`answer(path, query, headers)` gives (status, headers, body)."""

    def __init__(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16

            def do_GET(self):
                split = urlsplit(self.path)
                query = {name: values[-1] for name, values in parse_qs(split.query).items()}
                server.log.append(self.path)
                status, headers, body = server.answer(split.path, query, self.headers)
                with contextlib.suppress(ConnectionError):
                    self.send_response_only(status)
                    self.send_header("Date", headers.pop("Date", None) or self.date_time_string())
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.log = []
        self.answer = lambda path, query, headers: (404, {}, b"")
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.root = f"http://127.0.0.1:{self.server.server_port}/"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class MemoryArchive:
    """Keeps what steps bring, as the archive does in its tables."""

    def __init__(self, spool):
        self.spool = spool
        self.records = {}
        self.present = set()
        self.bookmark = None
        self.spent = 0.0
        """Seconds of the processor in the last harvest, without what the archive does with it."""

    def harvest(self, harvester, url):
        """Harvests once more; returns the quads of the document, the end and the number of requests."""
        return asyncio.run(self._harvest(harvester, url))

    async def _harvest(self, harvester, url):
        fetcher = HttpFetcher(
            HttpOptions(user_agent="tamias/test", spool_dir=str(self.spool)),
            forbidden=lambda _address: None,
            now=lambda: time.time_ns() // 1_000_000,
            retry_after=retry_after_ms,
        )
        client = ArchiveClient(fetcher, self)
        seen, quads = set(), []
        harvest = Harvest(url=url, kind=min(harvester.kinds), bookmark=self.bookmark)
        try:
            async with asyncio.timeout(60), contextlib.aclosing(harvester.harvest(harvest, client)) as steps:
                began = time.thread_time()
                async for step in steps:
                    for finding in step.findings:
                        self._take(finding, seen, quads)
                    end = step.end
                self.spent = time.thread_time() - began
        finally:
            await fetcher.close()
        if end.complete:
            self.present &= seen
        self.bookmark = end.bookmark or self.bookmark
        if end.outcome is Outcome.UNCHANGED:
            return self.quads, end, client.requests
        if end.changes_only:
            quads += [quad for key in self.present for quad in map_again(self.records[key])]
        self.quads = quads
        return quads, end, client.requests

    def _take(self, finding, seen, quads):
        if isinstance(finding, SourceRecords):
            self.records |= {each.record: each for each in finding.records}
        elif isinstance(finding, Datasets):
            named = {each.record for each in finding.datasets}
            self.present |= named
            seen |= named
        elif isinstance(finding, Present):
            seen |= set(finding.records)
        elif isinstance(finding, Deleted):
            self.present -= set(finding.records)
        elif isinstance(finding, Quads):
            quads += finding.quads


class ArchiveClient:
    def __init__(self, fetcher, archive):
        self._fetcher = fetcher
        self._archive = archive
        self._analysers = Analysers(Settings())
        self.requests = 0

    async def ask(self, request):
        async def follow(_target):
            return None

        self.requests += 1
        return await self._fetcher.fetch(request, follow)

    def body(self, capture, most):
        if capture.body is None:
            return b""
        if capture.body.data is not None:
            return capture.body.data[:most]
        with open(capture.body.path, "rb") as file:
            return file.read(most)

    def read(self, capture):
        for part in documents(capture.body, url=capture.final_url, declared_type=capture.declared_type):
            known = isinstance(part, Document)
            yield from self._analysers[part.media_type].analyse(part) if known else [part]

    async def records_held(self):
        return len(self._archive.present)


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def archive(tmp_path):
    return MemoryArchive(tmp_path)


@pytest.fixture
def whole(tmp_path):
    """What a harvest of everything brings."""

    def harvest(harvester, url):
        return MemoryArchive(tmp_path).harvest(harvester, url)

    return harvest
