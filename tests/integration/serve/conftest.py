"""The real executable on a loopback port, over an archive that is filled as a crawl fills it."""

import hashlib
import os
import signal
import subprocess
import time
from contextlib import ExitStack

import httpx
import pytest

from tamias.archive.blobs import BlobWriter, LocalPacks, insert_blobs
from tamias.archive.versions.resources import add_versions, put_resources
from tamias.database.connect import Database
from tamias.model.capture import Body, new_capture_id
from tamias.model.resource import Resource, Source, Version, resource_id
from tamias.model.url import fetch_url, host, url_key
from tests import commands
from tests.ports import free_port

START = 1_767_225_600_000
"""2026-01-01T00:00:00Z"""
DAY = 86_400_000
SECRET = "open sesame"
CSV = "http://data.example/a.csv"
QUERIED = "http://data.example/export?format=csv&year=2026"
PORTAL = "http://portal.example/"


class Filled:
    """A data directory, and what a crawl does with it."""

    def __init__(self, data):
        self.data = data
        self.database = Database(data)
        self.session = self.database.session()
        self.writer = BlobWriter(LocalPacks(data / "blobs"), self.database.session())

    def put(self, url, *contents, media_type="text/csv", start=START, step=DAY, **words):
        """Each content is one version, some time after the one before."""
        sources = (Source(source=f"{PORTAL}1", portal=PORTAL),)
        resource = Resource(
            id=resource_id(url_key(url)), url=fetch_url(url), added_at=START, **{"sources": sources, **words}
        )
        self.session.transact(lambda cursor: put_resources(cursor, [(resource, host(url))], START))
        previous = None
        for place, content in enumerate(contents):
            previous = self._put(resource.id, url, content, start + place * step, previous, media_type)
        return resource.id

    def _put(self, name, url, content, when, previous, media_type):
        body = Body(size=len(content), sha256=hashlib.sha256(content).hexdigest(), data=content)
        prepared = self.writer.prepare(body, previous)
        self.writer.sync()
        version = Version(
            resource=name, captured_at=when, sha256=body.sha256, byte_size=body.size, media_type=media_type,
            declared_type=f"{media_type}; charset=iso-8859-2", fingerprint=None, noise=None,
            capture=str(new_capture_id(when)),
        )  # fmt: skip

        def record(cursor):
            insert_blobs(cursor, [prepared])
            add_versions(cursor, [version])

        self.session.transact(record)
        self.writer.settled()
        return body.sha256

    def rows(self, statement, *values):
        return self.session.transact(lambda cursor: cursor.execute(statement, values).fetchall())

    def run(self, statement, *values):
        self.session.transact(lambda cursor: cursor.execute(statement, values))

    def close(self):
        self.writer.close()
        self.writer.table.session.close()
        self.session.close()
        self.database.close()


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    """An archive with a few resources; tests add their own."""
    filled = Filled(tmp_path_factory.mktemp("served"))
    filled.put(CSV, b"a,b\n1,2\n", b"a,b\n1,3\n", b"a,b\n1,4\n5,6\n", title="Numbers")
    filled.put(QUERIED, b"year\n2026\n")
    filled.put("http://other.example/data.ttl", b"<a> <b> <c> .", media_type="text/turtle")
    yield filled
    filled.close()


def environment(**words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    return {**clean, **words}


class Running:
    """A `tamias serve`, from its first answer until it is stopped."""

    def __init__(self, data, *words, **variables):
        self.port = free_port()
        self.said = None
        self.address = f"http://127.0.0.1:{self.port}"
        words = ["serve", "--data", str(data), "--port", str(self.port), *words]
        self.process = commands.start(
            [*words], env=environment(**variables), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.wait()

    def wait(self):
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                httpx.get(f"{self.address}/healthz", timeout=5)
            except httpx.TransportError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"no answer: {self.stop()}")

    def stop(self, number=signal.SIGTERM):
        """Its exit code, and what it said on stdout and stderr."""
        if self.said is None:
            self.process.send_signal(number)
            self.said = self.process.communicate(timeout=300)
        return self.process.returncode, *self.said


@pytest.fixture(scope="session")
def served(filled):
    """The service over the archive, without a crawl."""
    running = Running(filled.data, "--no-crawl", TAMIAS_SECRET=SECRET)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def client(served):
    """Asks the service; redirects are not followed."""
    with httpx.Client(base_url=served.address, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def writer(served):
    """The same, with the secret."""
    headers = {"Authorization": f"Bearer {SECRET}"}
    with httpx.Client(base_url=served.address, headers=headers, timeout=30) as client:
        yield client


@pytest.fixture
def starting():
    """`starting(data, *words)` is a service that runs until the test is over."""
    with ExitStack() as stack:

        def start(*words, **variables):
            running = Running(*words, **variables)
            stack.callback(running.stop)
            return running

        yield start
