"""A data directory with resources and crawled documents, its catalogue, and the service over it."""

import asyncio
import hashlib
import shutil
from contextlib import closing, contextmanager

import msgspec
import pytest
from httpx import ASGITransport, AsyncClient

from tamias.archive.blobs import BlobWriter, LocalPacks, insert_blobs
from tamias.archive.captures import insert_captures
from tamias.archive.stored_files import commit_files, new_segment
from tamias.archive.versions.resources import add_versions, put_resources
from tamias.database.connect import Database
from tamias.features.catalogue.catalogue import Catalogue
from tamias.features.service.app import application
from tamias.features.service.http.callers import Secret
from tamias.features.service.queries.thread_pool import SessionPool
from tamias.features.service.service import Service
from tamias.features.service.sparql.endpoint import SparqlEndpoint
from tamias.model.capture import Body, CaptureRecord, Outcome, new_capture_id
from tamias.model.lease import Lease, Task
from tamias.model.resource import Resource, Source, Version, resource_id
from tamias.model.url import host, url_key
from tamias.settings import ServeSettings, Settings
from tamias.sinks.segments.segment_files import SegmentWriter

START = 1_767_225_600_000
DAY = 86_400_000
SECONDS = 3.0
TASK = Task(uid=1, url="", crawl=1, depth=0, score=0.0)
LEASE = Lease(host="", qid=1, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())
TABLES = (
    "resource, source, version, suspect, shared_body, blob, pack, capture, stored_file, sink, outbox, "
    "placed, current_document, catalogue, catalogue_news, portal"
)


class Corpus:
    """What workers would have written."""

    def __init__(self, data):
        self.data = data
        (data / "rdf").mkdir(exist_ok=True)
        self.database = Database(data)
        self.session = self.database.session()
        self.writer = BlobWriter(LocalPacks(data / "blobs"), self.database.session())

    def put(self, url, *contents, media_type="text/csv", portal="http://data.gv.at", start=START):
        """A resource; each content is one version, a day after the one before. Returns its id."""
        sources = (Source(source=f"{portal}/1", portal=portal),)
        name = resource_id(url_key(url))
        resource = Resource(id=name, url=url, added_at=START, sources=sources)
        self.session.transact(lambda cursor: put_resources(cursor, [(resource, host(url))], START))
        for day, content in enumerate(contents):
            self._put(name, url, content, start + day * DAY, media_type)
        return name

    def _put(self, name, url, content, when, media_type):
        body = Body(size=len(content), sha256=hashlib.sha256(content).hexdigest(), data=content)
        prepared = self.writer.prepare(body, None)
        self.writer.sync()
        version = Version(
            resource=name, captured_at=when, sha256=body.sha256, byte_size=body.size, media_type=media_type,
            declared_type=media_type, fingerprint=None, noise=None, capture=str(new_capture_id(when)),
        )  # fmt: skip

        def record(cursor):
            insert_blobs(cursor, [prepared])
            add_versions(cursor, [version])

        self.session.transact(record)
        self.writer.settled()

    def crawl(self, url, nquads, outcome=Outcome.OK, ago=0):
        """A document; without quads it holds none."""
        now = self.session.now() - ago
        segment = new_segment(self.session, 1)
        extent, durable = None, msgspec.structs.replace(segment, sealed=True)
        if nquads:
            with SegmentWriter(self.data / segment.key, segment.segment) as writer:
                with writer.document() as document:
                    document.write(nquads)
                    extent = document.extent
                durable = msgspec.structs.replace(durable, committed=writer.sync())
        record = CaptureRecord(
            id=str(new_capture_id(now)), crawl=1, url=url, started_at=now, ended_at=now + 1, outcome=outcome,
            reason="", depth=0, final_url=url, status=200, extent=extent, read=True, worker="w",
            agent="Tamias-test",
        )  # fmt: skip

        def commit(cursor):
            insert_captures(cursor, [(LEASE, TASK, record)])
            commit_files(cursor, [durable])

        self.session.transact(commit)

    def clear(self):
        """Takes all that was put."""
        self.writer.close()
        shutil.rmtree(self.data / "blobs", ignore_errors=True)
        self.writer = BlobWriter(LocalPacks(self.data / "blobs"), self.writer.table.session)
        self.session.transact(lambda cursor: cursor.execute(f"TRUNCATE {TABLES} CASCADE"))

    def close(self):
        self.writer.close()
        self.writer.table.session.close()
        self.session.close()
        self.database.close()


class Client:
    """Speaks HTTP with the application."""

    def __init__(self, app):
        self._app = app

    def get(self, url, **words):
        return asyncio.run(self.send("GET", url, words))

    def post(self, url, **words):
        return asyncio.run(self.send("POST", url, words))

    async def send(self, method, url, words):
        transport = ASGITransport(self._app)
        async with AsyncClient(transport=transport, base_url="http://127.0.0.1:8080", timeout=60) as client:
            return await client.request(method, url, **words)


@pytest.fixture(scope="session")
def shared_corpus(tmp_path_factory):
    corpus = Corpus(tmp_path_factory.mktemp("sparql"))
    yield corpus
    corpus.close()


@pytest.fixture
def corpus(shared_corpus):
    shared_corpus.clear()
    return shared_corpus


@pytest.fixture(scope="session")
def shared_catalogue(shared_corpus):
    options = ServeSettings(sparql_seconds=SECONDS, sparql_bytes=1 << 20)
    with Catalogue(shared_corpus.data, options, shared_corpus.database) as catalogue:
        yield catalogue


@pytest.fixture
def catalogue(shared_catalogue, corpus):
    """The catalogue of an empty archive."""
    return shared_catalogue


@pytest.fixture
def refresher(catalogue, corpus):
    with closing(corpus.database.session()) as session, closing(catalogue.refresher(session)) as refresher:
        yield refresher


@pytest.fixture(scope="session")
def client_of():
    """`with client_of(corpus, catalogue) as client` asks the service over them."""

    @contextmanager
    def serve(corpus, catalogue):
        endpoint = SparqlEndpoint(catalogue)
        settings = Settings()
        pool = SessionPool(corpus.database, corpus.data, settings, 2)
        service = Service(
            corpus.data, settings, pool, Secret("secret", "a test", chosen=True), sparql=endpoint
        )
        app = application(service)
        yield Client(app)
        endpoint.close()
        pool.close()

    return serve


@pytest.fixture
def client(catalogue, corpus, client_of):
    """A client of the service."""
    with client_of(corpus, catalogue) as client:
        yield client
