"""`tamias.Archive`: what was put into the archive comes out of it, in every way it can be asked for."""

import hashlib
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import duckdb
import pytest

import tamias
from tamias.archive.blobs import BlobDamaged
from tamias.archive.reader.content import NoTable
from tamias.archive.reader.library import NotArchived
from tamias.model.errors import DataMissing, UsageError
from tests.messages import saying

URL = "http://data.example/a.csv"
VERSIONS = [b"id,name\n1,first\n", b"id,name\n1,first\n2,second\n", b"id,name\n1,changed\n2,second\n"]


@pytest.fixture
def archive(filled):
    filled.put(URL, *VERSIONS, title="A table")
    with tamias.Archive(filled.data) as archive:
        yield archive


def test_versions_are_told_oldest_first(archive):
    versions = archive.versions(URL)
    assert [version.number for version in versions] == [1, 2, 3]
    assert [version.sha256 for version in versions] == [hashlib.sha256(each).hexdigest() for each in VERSIONS]


@pytest.mark.parametrize("spelling", ["HTTP://Data.Example:80/a.csv#top", "http://data.example//a.csv?"])
def test_a_url_is_known_in_any_spelling(archive, spelling):
    assert archive.get(spelling).bytes() == VERSIONS[2]


def test_a_resource_is_known_by_its_id_and_a_version_by_its_own(archive):
    name = archive.resource(URL).id
    assert archive.get(name).bytes() == VERSIONS[2]
    assert archive.get(f"{name}_1").bytes() == VERSIONS[0]


def test_every_version_is_given_back_exactly_by_its_number(archive):
    assert [archive.get(URL, version=number).bytes() for number in (1, 2, 3)] == VERSIONS


@pytest.mark.parametrize(
    ("at", "number"),
    [
        ("2026-01-01T00:00:00Z", 1),
        ("20260101000000", 1),
        ("2026-01-01T23:59:59.999Z", 1),
        ("2026-01-02T01:00:00+01:00", 2),
        ("2026-01-02", 2),
        (datetime(2026, 1, 2, 5, tzinfo=UTC), 2),
        (datetime(2026, 1, 3, 0, 30, tzinfo=timezone(timedelta(hours=1))), 2),
        (datetime(2026, 1, 3), 3),  # noqa: DTZ001
        ("2050-01-01", 3),
    ],
)
def test_at_gives_the_version_that_was_current_then(archive, at, number):
    assert archive.get(URL, at=at).version.number == number


def test_before_the_first_version_there_was_none(archive):
    with pytest.raises(NotArchived, check=saying("2026-01-01T00:00:00.000Z")):
        archive.get(URL, at="2025-12-31")


def test_a_time_that_is_none_is_told(archive):
    with pytest.raises(UsageError, check=saying("yesterday")):
        archive.get(URL, at="yesterday")


def test_a_version_that_is_not_there_is_told(archive):
    with pytest.raises(NotArchived, match="has no version 4; it has 1 to 3"):
        archive.get(URL, version=4)


def test_a_resource_that_is_not_there_is_told(archive):
    with pytest.raises(NotArchived, check=saying()):
        archive.versions("http://data.example/b.csv")


def test_a_resource_without_a_version_says_so(filled):
    filled.watch(URL)
    with tamias.Archive(filled.data) as archive:
        assert archive.versions(URL) == []
        with pytest.raises(NotArchived, check=saying()):
            archive.get(URL)


def test_resources_are_chosen_by_host_type_and_portal(archive, filled):
    filled.put("http://other.example/b.json", b"{}", media_type="application/json", sources=())
    assert {each.url for each in archive.resources()} == {URL, "http://other.example/b.json"}
    assert [each.url for each in archive.resources(host="data.example")] == [URL]
    assert [each.title for each in archive.resources(media_type="text/csv")] == ["A table"]
    assert [each.url for each in archive.resources(portal="http://portal.example/")] == [URL]


def test_a_stream_gives_the_same_bytes(archive):
    with archive.get(URL, version=2).open() as stream:
        assert stream.read(3) == VERSIONS[1][:3]
        assert stream.read() == VERSIONS[1][3:]


def test_a_damaged_body_is_never_given_out(filled, archive):
    filled.flip(hashlib.sha256(VERSIONS[0]).hexdigest())
    with pytest.raises(BlobDamaged):
        archive.get(URL, version=1).bytes()
    with archive.get(URL, version=1).open() as stream, pytest.raises(BlobDamaged):
        stream.read()


def test_text_is_decoded_by_what_the_server_told_unless_it_is_utf8(filled):
    filled.put("http://a.example/", "Łódź".encode("iso-8859-2"), media_type="text/plain")
    filled.put("http://b.example/", "Łódź".encode(), media_type="text/plain")
    filled.put("http://c.example/", "Łódź".encode("utf-16"), media_type="text/plain")
    with tamias.Archive(filled.data) as archive:
        assert [archive.get(f"http://{host}.example/").text() for host in "abc"] == ["Łódź"] * 3


def test_a_table_is_taken_by_whoever_speaks_arrow(archive):
    rows = archive.get(URL, version=2).table()
    assert rows.columns == ["id", "name"]
    assert duckdb.sql("SELECT sum(id), max(name) FROM rows").fetchall() == [(3, "second")]
    assert duckdb.sql("SELECT count(*) FROM rows").fetchall() == [(2,)]


def test_a_stream_of_arrow_outlives_its_table(archive):
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return archive.get(URL).table().__arrow_c_stream__(requested_schema)

    stream = Stream()  # noqa: F841 - DuckDB finds it by its name
    assert duckdb.sql("SELECT name FROM stream ORDER BY id").fetchall() == [("changed",), ("second",)]


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("text/csv", "Orte 2026\n\nNr;Ort\n1;Łódź\n2;Kraków\n".encode("iso-8859-2")),
        ("text/tab-separated-values", "Nr\tOrt\n1\tŁódź\n2\tKraków\n".encode()),
        ("application/json", '[{"Nr": 1, "Ort": "Łódź"}, {"Nr": 2, "Ort": "Kraków"}]'.encode("utf-16")),
        ("application/x-ndjson", '{"Nr": 1, "Ort": "Łódź"}\n{"Nr": 2, "Ort": "Kraków"}\n'.encode()),
    ],
)
def test_tables_of_many_forms_are_read_alike(filled, media_type, content):
    filled.put(URL, content, media_type=media_type)
    with tamias.Archive(filled.data) as archive:
        rows = archive.get(URL).table()
    assert rows.types == ["BIGINT", "VARCHAR"]
    assert duckdb.sql("FROM rows").fetchall() == [(1, "Łódź"), (2, "Kraków")]


def test_a_parquet_file_is_a_table(filled, tmp_path):
    duckdb.sql(f"COPY (SELECT range AS n FROM range(100)) TO '{tmp_path / 'n.parquet'}'")
    filled.put(URL, (tmp_path / "n.parquet").read_bytes(), media_type="application/vnd.apache.parquet")
    with tamias.Archive(filled.data) as archive:
        assert len(archive.get(URL).table()) == 100


@pytest.mark.parametrize(
    ("media_type", "content"),
    [("application/pdf", b"%PDF"), ("application/json", b"[1, 2"), ("text/csv", b"\0\1")],
)
def test_what_is_no_table_is_told(filled, media_type, content):
    filled.put(URL, content, media_type=media_type)
    with tamias.Archive(filled.data) as archive, pytest.raises(NoTable, match=media_type):
        archive.get(URL).table()


def test_an_archive_that_is_not_there_is_told(tmp_path):
    with pytest.raises(DataMissing):
        tamias.Archive(tmp_path / "nowhere")


def test_the_last_step_is_compared_unless_versions_are_named(archive):
    last = archive.diff(URL)
    assert (last.added, last.removed, last.changed) == (0, 0, 1)
    whole = archive.diff(URL, 1, "2026-01-03")
    assert (whole.added, whole.removed, whole.changed) == (1, 0, 1)


def test_a_first_version_has_nothing_to_be_compared_with(filled):
    filled.put(URL, VERSIONS[0])
    with (
        tamias.Archive(filled.data) as archive,
        pytest.raises(NotArchived, check=saying()),
    ):
        archive.diff(URL)


def test_a_query_asks_the_catalogue(archive):
    answer = archive.query(
        "SELECT ?url ?title WHERE { ?set a dcat:Dataset ; dcat:hasVersion ?version ; dct:title ?title ."
        " ?version dcat:distribution/dcat:downloadURL ?url }"
    )
    assert {(row["url"].value.rpartition("/")[2], row["title"].value) for row in answer} == {
        (f"{version.id}", "A table") for version in archive.versions(URL)
    }


def test_a_query_that_cannot_be_read_is_told(archive):
    with pytest.raises(UsageError, check=saying()):
        archive.query("SELECT")


def test_times_are_datetimes_in_utc(archive):
    first, second = archive.versions(URL)[:2]
    resource = archive.resource(URL)
    assert first.captured_at.utcoffset() == timedelta(0)
    assert first.captured_at < second.captured_at
    assert archive.get(URL, at=first.captured_at).version == first
    assert archive.get(URL, at=second.captured_at - timedelta(milliseconds=1)).version == first
    assert resource.added_at.tzinfo is UTC
    assert archive.get(first.id).resource == resource


def test_a_closed_archive_says_so_and_may_be_closed_again(archive):
    archive.close()
    archive.close()
    with pytest.raises(UsageError, match="is closed"):
        archive.versions(URL)


def test_a_pickled_archive_is_opened_by_whoever_unpickles_it(archive, monkeypatch, tmp_path):
    pickled = pickle.dumps(archive)
    wanted = [each.sha256 for each in archive.versions(URL)]
    monkeypatch.chdir(tmp_path)
    with pickle.loads(pickled) as other:
        assert [each.sha256 for each in other.versions(URL)] == wanted
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool, pickle.loads(pickled) as other:
        assert pool.submit(_digests, other).result() == wanted


def _digests(archive):
    with archive:
        return [each.sha256 for each in archive.versions(URL)]
