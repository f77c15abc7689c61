"""An archive in a real database, filled row by row."""

import hashlib
from contextlib import closing
from uuid import uuid4

import pytest

from tamias.archive.blobs.blob import Blob, BlobPlace, Codec
from tamias.archive.blobs.table import SQL, columns
from tamias.archive.sources.catalogues import note_datasets, note_whole
from tamias.archive.versions.resources import (
    VisitNote,
    add_suspects,
    add_versions,
    note_visits,
    put_resources,
)
from tamias.features.quality.metrics import note_claims
from tamias.model.capture import new_capture_id
from tamias.model.resource import Resource, Source, Version, resource_id
from tamias.model.url import host, url_key

TABLES = (
    "resource, source, version, suspect, shared_body, profile, profile_due, measure, figure, portal, "
    "described, offered, blob, pack, capture, tally, tally_news, attempts"
)
PORTAL = "https://portal.example.org/"


class Corpus:
    """What workers would have written."""

    def __init__(self, session):
        self.session = session
        self.now = session.now()

    def execute(self, statement, parameters=None):
        def work(cursor):
            cursor.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

        return self.session.transact(work)

    def watch(self, url, *sources, **words):
        """A resource under watch; returns its id."""
        found = Resource(id=resource_id(url_key(url)), url=url, added_at=0, sources=sources, **words)
        self.session.transact(lambda cursor: put_resources(cursor, [(found, host(url))], self.now))
        return found.id

    def keep(self, resource, body, media_type="text/csv", *, at=None, suspect=None):
        """A version of it, or a suspect."""
        at = self.now if at is None else at
        sha256 = hashlib.sha256(body).hexdigest()
        new = Version(
            resource=resource, captured_at=at, sha256=sha256, byte_size=len(body), media_type=media_type,
            declared_type=media_type, fingerprint=None, noise=None, capture=str(new_capture_id(at)),
        )  # fmt: skip
        blob = Blob(sha256=sha256, size=len(body), codec=Codec.RAW, base=None, depth=0, stored=len(body),
                    place=BlobPlace(uuid4(), 0, len(body) + 50))  # fmt: skip

        def work(cursor):
            cursor.execute(SQL["insert_blobs"].text, columns([blob]))
            if suspect:
                add_suspects(cursor, [(new, suspect)])
            else:
                add_versions(cursor, [new])

        self.session.transact(work)
        return sha256

    def visit(self, resource, *, fails=0, state="active", rate=None):
        """The latest attempt on it told something, or did not."""
        note = VisitNote(
            resource=resource, state=state, now=self.now, next_visit=self.now, fails=fails, change_rate=rate
        )
        self.session.transact(lambda cursor: note_visits(cursor, [note]))

    def attempt(self, outcome, *, at, size=0, took=1000):
        """A row of `capture`."""
        self.execute(
            "INSERT INTO capture (bucket, capture, qid, crawl, uid, started_at, ended_at, outcome, depth,"
            " bytes, url, reason, worker, agent)"
            " VALUES (0, %s, 1, 1, 1, %s, %s, %s, 0, %s, 'http://a/', '', '', '')",
            [new_capture_id(at), at, at + took, int(outcome), size],
        )

    def describe(self, *datasets, portal=PORTAL, harvest=None, whole=False):
        """What a harvest through a portal saw."""
        harvest = self.now if harvest is None else harvest

        def work(cursor):
            note_datasets(cursor, portal, "ckan", harvest, datasets)
            note_claims(cursor, portal, datasets)
            if whole:
                note_whole(cursor, portal, harvest)

        self.session.transact(work)


@pytest.fixture
def corpus(database):
    """An empty archive."""
    with closing(database.session()) as session:
        session.transact(lambda cursor: cursor.execute(f"TRUNCATE {TABLES} CASCADE"))
        yield Corpus(session)


@pytest.fixture
def source():
    """`source(name)`: a dataset of a portal that names a resource."""
    return lambda name, **words: Source(source=f"{PORTAL}dataset/{name}", portal=PORTAL, **words)
