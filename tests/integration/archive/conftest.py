"""An archive in a data directory of its own, filled as a crawl fills it."""

import hashlib
import os
import shutil

import pytest

from tamias.archive.blobs import BlobWriter, LocalPacks, insert_blobs
from tamias.archive.captures import insert_captures
from tamias.archive.versions.resources import add_suspects, add_versions, put_resources
from tamias.database.connect import Database
from tamias.model.capture import Body, CaptureRecord, Hop, Outcome, new_capture_id
from tamias.model.lease import Lease, Task
from tamias.model.resource import Resource, Source, Version, resource_id
from tamias.model.url import fetch_url, host, url_key
from tests import commands

START = 1_767_225_600_000
"""2026-01-01T00:00:00Z"""
DAY = 86_400_000
SOURCES = (Source(source="http://portal.example/1", portal="http://portal.example/"),)
TASK = Task(uid=1, url="", crawl=1, depth=0, score=0.0)


class Filled:
    """A data directory, and what a crawl does with it."""

    def __init__(self, data):
        self.data = data
        self.database = Database(data)
        self.session = self.database.session()
        self.writer = BlobWriter(LocalPacks(data / "blobs"), self.database.session())

    def watch(self, url, **words):
        resource = Resource(
            id=resource_id(url_key(url)), url=fetch_url(url), added_at=START,
            **{"sources": SOURCES, **words},
        )  # fmt: skip
        self.session.transact(lambda cursor: put_resources(cursor, [(resource, host(url))], START))
        return resource.id

    def put(
        self, url, *contents, media_type="text/csv", suspect=False, redirect=None, declared_type=None, **words
    ):
        """Each content is one version, a day after the one before."""
        name = self.watch(url, **words)
        previous = None
        for day, content in enumerate(contents):
            told = declared_type or f"{media_type}; charset=iso-8859-2"
            when = START + day * DAY
            previous = self._put(name, url, content, when, previous, (media_type, told), suspect, redirect)
        return name

    def _put(self, name, url, content, when, previous, types, suspect, redirect):
        media_type, declared_type = types
        body = Body(size=len(content), sha256=hashlib.sha256(content).hexdigest(), data=content)
        prepared = self.writer.prepare(body, previous)
        self.writer.sync()
        capture = str(new_capture_id(when))
        version = Version(
            resource=name, captured_at=when, sha256=body.sha256, byte_size=body.size, media_type=media_type,
            declared_type=declared_type, fingerprint=None, noise=None, capture=capture,
        )  # fmt: skip

        def record(cursor):
            insert_captures(
                cursor, [(_lease(), TASK, _record(capture, fetch_url(url), when, body, redirect))]
            )
            insert_blobs(cursor, [prepared])
            if suspect:
                add_suspects(cursor, [(version, "not believed")])
            else:
                add_versions(cursor, [version])

        self.session.transact(record)
        self.writer.settled()
        return body.sha256

    def rows(self, statement, *values):
        return self.session.transact(lambda cursor: cursor.execute(statement, values).fetchall())

    def run(self, statement, *values):
        self.session.transact(lambda cursor: cursor.execute(statement, values))

    def flip(self, sha256):
        """Turns over one bit of the payload of a blob."""
        [(pack, place)] = self.rows(
            "SELECT pack, start + length - 1 FROM blob WHERE sha256 = %b", bytes.fromhex(sha256)
        )
        with (self.data / "blobs" / f"{pack}.pack").open("r+b") as file:
            file.seek(place)
            (byte,) = file.read(1)
            file.seek(place)
            file.write(bytes([byte ^ 1]))

    def clear(self):
        """Takes all that was put."""
        self.writer.close()
        tables = "resource, source, version, suspect, shared_body, profile, profile_due, blob, pack, capture"
        tables += ", stored_file, forgotten, erasing, erasing_capture"
        self.run(f"TRUNCATE {tables} CASCADE")
        self.run("SELECT recount()")
        for folder in ("blobs", "rdf", "warc"):
            shutil.rmtree(self.data / folder, ignore_errors=True)
        self.writer = BlobWriter(LocalPacks(self.data / "blobs"), self.writer.table.session)

    def close(self):
        self.writer.close()
        self.writer.table.session.close()
        self.session.close()
        self.database.close()


def _lease():
    return Lease(host="", qid=1, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())


def _record(capture, url, when, body, redirect):
    hops = (Hop(url=redirect or url, status=200, address="192.0.2.1"),)
    if redirect:
        hops = (Hop(url=url, status=302, address="192.0.2.1", location=redirect), *hops)
    return CaptureRecord(
        id=capture, crawl=1, url=url, started_at=when, ended_at=when + 250, outcome=Outcome.OK, reason="",
        depth=0, hops=hops, final_url=redirect or url, status=200, declared_type="text/csv", bytes=body.size,
        sha256=body.sha256, worker="w", agent="Tamias-test",
    )  # fmt: skip


@pytest.fixture(scope="session")
def shared_archive(tmp_path_factory):
    filled = Filled(tmp_path_factory.mktemp("archive"))
    yield filled
    filled.close()


@pytest.fixture
def filled(shared_archive):
    """An empty archive to be filled."""
    shared_archive.clear()
    return shared_archive


@pytest.fixture
def tamias(filled, tmp_path):
    """`tamias(*words)` runs the executable on the archive."""

    def run(*words, text=True, data=filled.data):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
        return commands.run(
            [*words, "--data", str(data)], cwd=tmp_path, env=clean,
            text=text, capture_output=True, timeout=120, check=False,
        )  # fmt: skip

    return run
