"""A script as a user of the package writes it: every public name, and what each gives, under a type checker.

`assert_type` fails where a type is missing, for then it is `Any`.
"""

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO, assert_type

from pyoxigraph import Quad, QueryBoolean, QuerySolutions, Triple

import tamias


def read_something(source: bytes) -> list[str]:
    reading: tamias.Reading = tamias.read(source, base="http://a.example/", media_type="text/turtle")
    assert_type(reading.quads, Iterator[Quad])
    assert_type(reading.links, list[str])
    assert_type(reading.media_type, str | None)
    if reading.profile is not None:
        assert_type(reading.profile.tables[0].rows, int)
    assert_type([each.uri for each in reading.declared], list[str | None])
    return [f"{each.what}" for each in reading.problems]


def look_at(archive: tamias.Archive, url: str) -> None:
    for resource in archive.resources(host="a.example", media_type="text/csv", portal=None):
        assert_type(resource.added_at, datetime)
        assert_type(resource.next_visit, datetime | None)
    assert_type(archive.resource(url).title, str | None)
    assert_type(archive.versions(url)[0].captured_at, datetime)
    content = archive.get(url, at=datetime(2026, 1, 1, tzinfo=UTC), version=None)
    assert_type(content.bytes(), bytes)
    assert_type(content.text(), str)
    assert_type(content.open(), BinaryIO)
    assert_type(content.pieces(), Iterator[bytes])
    assert_type(content.version.sha256, str)
    assert_type(content.resource.url, str)
    assert_type(content.table().columns, list[str])
    assert_type(len(archive.history(url)), int)
    graph = archive.graph_history(url)
    assert_type(graph.at(graph.times[0]), list[Quad])
    assert_type(graph.changes("2026-01-01", "2026-02-01"), tuple[list[Quad], list[Quad]])


def compare(archive: tamias.Archive, url: str) -> int:
    change = archive.diff(url, 1, "2026-01-01", key="id")
    assert_type(archive.diff_update(url, 1, 2), str)
    assert_type(archive.diff_portal(url, datetime(2026, 1, 1, tzinfo=UTC), "2026-02-01").gone, list[str])
    assert_type([each.iri for each in archive.records(url)], list[str])
    return change.added + change.removed + change.changed


def ask(archive: tamias.Archive) -> None:
    answer = archive.query("SELECT * { ?s ?p ?o }", at=datetime(2026, 1, 1, tzinfo=UTC))
    assert_type(answer, QuerySolutions | QueryBoolean | Iterator[Triple])


with tamias.Archive("archive", data="archive") as opened:
    look_at(opened, "http://a.example/")
    assert_type(compare(opened, "http://a.example/"), int)
    ask(opened)
    again: tamias.Archive = pickle.loads(pickle.dumps(opened))
    again.close()
assert_type(tamias.__version__, str)
