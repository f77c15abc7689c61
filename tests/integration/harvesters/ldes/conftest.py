"""An event stream on a real server, and a client with a real fetcher."""

import asyncio
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from plain_client import PlainClient

from tamias.features.ldes.harvester import LdesHarvester
from tamias.fetch.credentials import HttpOptions
from tamias.fetch.http import HttpFetcher
from tamias.model.finding import Harvest
from tamias.permit.delay import retry_after_ms

PREFIXES = """@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> .
@prefix dct: <http://purl.org/dc/terms/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <http://x/> .
</stream> a ldes:EventStream ; ldes:timestampPath dct:created .
"""


class Stream:
    """Pages that a test writes, and a log of what was asked."""

    def __init__(self):
        self.pages = {}
        self.log = []
        handler = type("Handler", (_Handler,), {"stream": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.root = f"http://127.0.0.1:{self.server.server_address[1]}"

    def url(self, path):
        return self.root + path

    def write(self, path, members=(), leads=(), *, extra="", etag=True, status=200, headers=None):
        """A page with members (by the day they were made), and pages it leads to (or whole relations)."""
        relations = [each if "[" in each else f"[ tree:node <{each}> ]" for each in leads]
        body = PREFIXES + extra + "".join(f"<> tree:relation {each} .\n" for each in relations)
        for number in members:
            body += (
                f"</stream> tree:member </m/{number}> . </m/{number}> :n {number} ; :deep [ :n {number} ] ;"
            )
            body += f' dct:created "2024-01-{number:02}T00:00:00Z"^^xsd:dateTime .\n'
        fields = {"Content-Type": "text/turtle"} | ({"ETag": f'"{hash(body)}"'} if etag else {})
        self.pages[path] = (status, fields | (headers or {}), body.encode())

    def asked(self):
        """The paths asked for since this was last called, with the status they were answered with."""
        log, self.log = self.log, []
        return log


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        status, headers, body = self.stream.pages.get(self.path, (404, {}, b""))
        if headers.get("ETag") and self.headers.get("If-None-Match") == headers["ETag"]:
            status, body = 304, b""
        self.stream.log.append((self.path, status))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 304:
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def stream():
    made = Stream()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def harvest(stream, tmp_path):
    """`harvest(path, ...)` gives the steps of a harvest, `most_steps` of them at most."""

    async def steps(path, state, bookmark, most_steps, most_pages):
        options = HttpOptions(user_agent="Tamias/test", spool_dir=str(tmp_path))
        fetcher = HttpFetcher(
            options,
            forbidden=lambda _address: None,
            now=lambda: time.time_ns() // 1_000_000,
            retry_after=retry_after_ms,
        )
        told = Harvest(url=stream.url(path), kind="ldes", state=state, bookmark=bookmark)
        harvesting = LdesHarvester(most_pages).harvest(told, PlainClient(fetcher))
        try:
            found = []
            async for step in harvesting:
                found.append(step)
                if len(found) == most_steps:
                    break
            return found
        finally:
            await harvesting.aclose()
            await fetcher.close()

    def run(path="/p1", *, state=None, bookmark=None, most_steps=None, most_pages=1000):
        return asyncio.run(steps(path, state, bookmark, most_steps, most_pages))

    return run
