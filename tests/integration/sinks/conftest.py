"""A SPARQL server that can be killed, a server that answers as it is told to, and a crawl's captures."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import UUID

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from tamias.model.capture import CaptureRecord, Outcome
from tamias.sinks.segments.segment_files import SegmentReader, SegmentWriter
from tests.ports import free_port


class SparqlServer:
    """The `oxigraph` server on a free port of the loopback address."""

    def __init__(self, folder):
        self._folder = folder
        self._port = free_port()
        self._process = None
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self):
        program = shutil.which(
            "oxigraph", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        )
        assert program is not None, "the oxigraph package is a dependency of the tests"
        self._process = subprocess.Popen(
            [program, "serve", "--location", self._folder, "--bind", f"127.0.0.1:{self._port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the SPARQL server does not start")

    def kill(self):
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stored(self):
        """All quads, as lines."""
        asked = urllib.request.Request(f"{self.url}/store", headers={"Accept": "application/n-quads"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.read()

    def content(self):
        """All quads, with the names of blank nodes made comparable."""
        return comparable(self.stored())


@pytest.fixture
def sparql_server(tmp_path):
    server = SparqlServer(tmp_path / "sparql-store")
    server.start()
    yield server
    server.kill()


class TellingServer:
    """Answers each request with the next of the answers it was given, and keeps what it was asked."""

    def __init__(self):
        self.answers = []
        self.asked = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each body waits 40 ms until its headers are acknowledged

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked.append((self.command, self.path, dict(self.headers), body))
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                status, headers = answer(outer.asked[-1]) if callable(answer) else answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_PUT = do_POST = do_DELETE = do_GET = answer  # noqa: N815

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/data"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def telling_server():
    server = TellingServer()
    yield server
    server.close()


@pytest.fixture
def session(database):
    with closing(database.session()) as session:
        session.transact(
            lambda cursor: cursor.execute("TRUNCATE sink, outbox, placed, capture, current_document")
        )
        yield session


class Corpus:
    """Captures as a crawl leaves them: quads in a segment, a record for each."""

    def __init__(self, folder):
        folder.mkdir()
        self._folder = folder
        self._writer = SegmentWriter(folder / "1.nq.zst", 1)
        self._reader = SegmentReader(lambda segment: (folder / f"{segment}.nq.zst").open("rb"))
        self._count = 0
        self.current = {}

    def capture(self, url, nquads, *, outcome=Outcome.OK):
        self._count += 1
        extent = None
        if nquads:
            with self._writer.document() as document:
                document.write(nquads)
                extent = document.extent
            self._writer.sync()
        self.current[url] = nquads
        return CaptureRecord(
            id=str(UUID(int=self._count)),
            crawl=1,
            url=url,
            started_at=self._count,
            ended_at=self._count,
            outcome=outcome,
            reason="",
            depth=0,
            final_url=url,
            extent=extent,
            read=True,
            quads=nquads.count(b"\n"),
            worker="w",
            agent="a",
        )

    def read(self, extent):
        return self._reader.read(extent)

    def exported(self):
        """What the N-Quads export gives: the latest capture of each document."""
        return comparable(b"".join(self.current.values()))

    def close(self):
        self._reader.close()
        self._writer.close()


@pytest.fixture
def corpus(tmp_path):
    corpus = Corpus(tmp_path / "rdf")
    yield corpus
    corpus.close()


def comparable(nquads):
    """The quads as a set of lines in which blank nodes have canonical names."""
    dataset = Dataset(parse(nquads, format=RdfFormat.N_QUADS))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad) for quad in dataset}


@pytest.fixture(name="comparable")
def comparable_fixture():
    return comparable
