"""One service for all tests of this folder, with empty tables for each."""

import sys
from contextlib import closing
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from frontier_client import Client, Instance


@pytest.fixture(scope="module")
def frontier_data(tmp_path_factory):
    return tmp_path_factory.mktemp("frontier")


@pytest.fixture(scope="module")
def instance(frontier_data):
    running = Instance(frontier_data)
    yield running
    running.stop()


@pytest.fixture
def frontier_session(instance, frontier_data):
    from tamias.database.connect import Database

    with closing(Database(frontier_data)) as database, closing(database.session()) as session:
        yield session


@pytest.fixture
def client(instance, frontier_session):
    frontier_session.transact(_empty)
    with closing(Client(instance.address)) as made:
        yield made


def _empty(cursor):
    cursor.execute("TRUNCATE host, queue, url")
    cursor.execute("UPDATE service SET active = true, delay_ms = 1000")
