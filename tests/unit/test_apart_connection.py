"""Code of others runs at the coordinator of a cluster, also through a pooler."""

from functools import partial

import psycopg
import pytest

from tamias.database import connect
from tamias.database.connect import Database
from tamias.database.nodes import Outage


@pytest.mark.parametrize("pooled", [True, False])
def test_a_connection_apart_goes_to_the_coordinator(monkeypatch, pooled):
    asked = []
    for place in (psycopg, psycopg.Connection):
        monkeypatch.setattr(place, "connect", lambda **place: asked.append(place))
    monkeypatch.setattr(connect, "set_up", lambda _connection, _options: None)
    database = Database.__new__(Database)
    database.embedded, database._role, database._pooled, database.outage = None, None, pooled, Outage()
    database._named = {"host": "node", "port": "6432", "dbname": "archive", "options": "-c a=b"}
    for opened in (database._connection, partial(database._connection, {"host": "first", "port": 5432})):
        opened()
    places = [(place["host"], place["port"], place["dbname"]) for place in asked]
    assert places == [("node", "6432", "archive"), ("first", 5432, "archive")]
