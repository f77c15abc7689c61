"""A blob store on a real database, its packs in a folder or on an S3-like server."""

import hashlib
import random
from contextlib import closing
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from tamias.archive.blobs import BlobReader, BlobWriter, LocalPacks, insert_blobs
from tamias.model.capture import Body


def body_of(content):
    """A body in memory, as a fetcher gives it."""
    return Body(size=len(content), sha256=hashlib.sha256(content).hexdigest(), data=content)


def body_at(path, content):
    """The same in a spool file."""
    path.write_bytes(content)
    return Body(size=len(content), sha256=hashlib.sha256(content).hexdigest(), path=str(path))


def table(rows, seed=1):
    """A file of lines that no codec can guess."""
    chance = random.Random(seed)
    return [b"%d,%032x" % (number, chance.getrandbits(128)) for number in range(rows)]


def edited(lines, seed):
    """The same with one line in a hundred changed."""
    chance = random.Random(seed)
    return [b"%032x" % chance.getrandbits(128) if chance.random() < 0.01 else line for line in lines]


def versions(count, rows=3000, seed=1):
    """Bodies that are each like the one before."""
    lines = table(rows, seed)
    found = []
    for number in range(count):
        found.append(b"\n".join(lines))
        lines = edited(lines, number)
    return found


class Store:
    """A writer and what its callers do with it."""

    def __init__(self, packs, database, **options):
        self.packs = packs
        self.database = database
        self.session = database.session()
        self.other = database.session()
        self.writer = BlobWriter(packs, self.session, **options)

    def put(self, *bodies, previous=None):
        """All steps of a commit; returns what was prepared."""
        prepared = [self.writer.prepare(body, previous) for body in bodies]
        self.writer.sync()
        self.other.transact(lambda cursor: insert_blobs(cursor, prepared))
        self.writer.settled()
        return prepared

    def put_versions(self, contents):
        """Each as the successor of the one before; returns their rows."""
        blobs, previous = [], None
        for content in contents:
            (prepared,) = self.put(body_of(content), previous=previous)
            blobs += prepared.blobs
            previous = prepared.sha256
        return blobs

    def reader(self):
        """One that has nothing at hand."""
        return BlobReader(self.packs, self.other)

    def rows(self, statement, *values):
        return self.other.transact(lambda cursor: cursor.execute(statement, values).fetchall())

    def close(self):
        self.writer.close()
        self.session.close()
        self.other.close()


def empty(database):
    with closing(database.session()) as session:
        session.transact(lambda cursor: cursor.execute("TRUNCATE blob, pack"))


@pytest.fixture
def make_store(database, tmp_path):
    """`make_store(…)` opens a store on the same folder and the same, at first empty, tables."""
    empty(database)
    opened = []

    def make(packs=None, **options):
        opened.append(Store(packs or LocalPacks(tmp_path / "blobs"), database, **options))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store):
    return make_store()


@pytest.fixture
def database_url(database):
    """The embedded server's, for other processes."""
    return "postgresql:///?" + urlencode(conninfo_to_dict(database.embedded.address()))


@pytest.fixture
def flip(tmp_path):
    """`flip(blob, at)` turns one bit of a record over."""

    def turn(blob, at):
        path = tmp_path / "blobs" / f"{blob.place.pack}.pack"
        with path.open("r+b") as file:
            file.seek(blob.place.start + at)
            (byte,) = file.read(1)
            file.seek(blob.place.start + at)
            file.write(bytes([byte ^ 16]))

    return turn
