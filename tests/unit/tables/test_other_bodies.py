"""Archives, RDF, Parquet, and what has only a type and a size."""

import io
import tarfile
import zipfile

import duckdb
import pytest

from tamias.content.containers import archives
from tamias.model.profile import MemberProfile, TermUsage
from tests.messages import unnamed

TURTLE = """
@prefix ex: <http://example.org/> .
ex:a a ex:Place ; ex:name "A", "B" .
ex:b a ex:Place, ex:City ; ex:near ex:a .
"""


@pytest.fixture
def rdf(profiled):
    return lambda text, media_type="text/turtle", **limits: profiled(text, "x.ttl", media_type, **limits)


def zipped(names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, b"12345")
    return buffer.getvalue()


def test_rdf_is_told_in_figures(rdf):
    found = rdf(TURTLE).statements
    assert (found.triples, found.subjects, found.objects) == (6, 2, 5)
    assert (found.class_count, found.property_count, found.complete) == (2, 3, True)


def test_classes_and_properties_are_counted(rdf):
    found = rdf(TURTLE).statements
    assert found.classes == (
        TermUsage("http://example.org/Place", 2),
        TermUsage("http://example.org/City", 1),
    )
    assert found.properties[1] == TermUsage("http://example.org/name", 2)


def test_named_graphs_are_counted(rdf):
    quads = "".join(f"<http://e/{n}> <http://e/p> <http://e/{n}> <http://e/g{n % 3}> .\n" for n in range(10))
    found = rdf(quads, "application/n-quads").statements
    assert (found.triples, found.graphs) == (10, 3)


def test_many_subjects_are_estimated(rdf):
    found = rdf("".join(f"<http://e/{n}> <http://e/p> '1' .\n" for n in range(20_000))).statements
    assert 17_000 < found.subjects < 23_000


def test_faults_of_rdf_are_told_and_the_rest_counts(rdf):
    found = rdf(TURTLE + "ex:c ex:p oops .\nex:d a ex:Place .\n")
    assert (found.statements.triples, found.statements.complete, len(found.problems)) == (7, False, 1)


def test_rdf_in_json_and_xml_is_read(rdf):
    json = '{"@id": "http://e/a", "http://e/p": {"@id": "http://e/b"}}'
    xml = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="http://e/a">'
        '<rdf:type rdf:resource="http://e/B"/></rdf:Description></rdf:RDF>'
    )
    counts = (
        rdf(json, "application/ld+json").statements.triples,
        rdf(xml, "application/rdf+xml").statements.class_count,
    )
    assert counts == (1, 1)


def test_the_members_of_a_zip_are_listed(profiled):
    found = profiled(zipped(["a.csv", "b/c.csv"]), "x.zip", "application/zip").members
    assert (found.count, found.size, found.members[1]) == (2, 10, MemberProfile("b/c.csv", 5))


def test_encrypted_members_are_told(profiled):
    data = bytearray(zipped(["a.csv", "b.csv"]))
    place = data.find(b"PK\x01\x02")
    while place >= 0:
        data[place + 8] |= 1
        place = data.find(b"PK\x01\x02", place + 4)
    found = profiled(bytes(data), "x.zip", "application/zip")
    assert (found.members.encrypted, found.problems) == (2, ("2 of 2 members are encrypted",))


def test_only_the_first_members_are_listed(profiled):
    found = profiled(zipped([f"{n}.csv" for n in range(50)]), "x.zip", "application/zip", members=10).members
    assert (found.count, len(found.members)) == (50, 10)


def test_a_directory_that_would_fill_the_memory_is_not_read(profiled, monkeypatch):
    monkeypatch.setattr(archives, "MAX_DIRECTORY", 1000)
    found = profiled(zipped([f"{n}.csv" for n in range(50)]), "x.zip", "application/zip")
    [problem] = found.problems
    assert (found.members, unnamed(problem, "zip directory", 1000)) == (None, [])


def test_the_members_of_a_tar_are_listed(profiled):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("a.csv")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"12345"))
    found = profiled(buffer.getvalue(), "x.tar", "application/x-tar").members
    assert found.members == (MemberProfile("a.csv", 5),)


@pytest.mark.parametrize("kind", ["zip", "x-tar", "x-7z-compressed"])
def test_a_damaged_archive_is_a_problem(profiled, kind):
    found = profiled(zipped(["a.csv"])[:40], "x", f"application/{kind}")
    assert (found.members, len(found.problems)) == (None, 1)


def test_a_damaged_member_leaves_the_members_listed(profiled):
    data = zipped(["a.csv"]).replace(b"12345", b"1234x", 1)
    found = profiled(data, "x.zip", "application/zip")
    assert (found.members.count, found.tables) == (1, ())
    [problem] = found.problems
    assert unnamed(problem, "zip member", "checksum") == []


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_member_that_unpacks_to_far_more_than_its_size_is_not_read(profiled, method):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("a.csv", (b"1," + b"0" * 4000 + b"\n") * 4400)
    found = profiled(buffer.getvalue(), "x.zip", "application/zip")
    assert (found.members.count, found.tables) == (1, ())
    [problem] = found.problems
    assert unnamed(problem, "100 times", "limit open.max_ratio") == []


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "table.parquet"
    query = (
        "SELECT range AS id, 'Ort ' || range AS ort, DATE '2013-01-01' + range::INT AS tag,"
        " NULL::DOUBLE AS leer"
    )
    duckdb.execute(f"COPY ({query} FROM range(1000)) TO '{path}'")
    return path.read_bytes()


def test_parquet_is_known_by_its_footer(profiled, parquet):
    (table,) = profiled(parquet, "x.parquet", "application/vnd.apache.parquet").tables
    assert (table.rows, [(column.name, column.datatype) for column in table.columns]) == (
        1000, [("id", "integer"), ("ort", "string"), ("tag", "date"), ("leer", "double")],
    )  # fmt: skip


def test_the_statistics_of_parquet_are_taken_over(profiled, parquet):
    (table,) = profiled(parquet, "x.parquet", "application/vnd.apache.parquet").tables
    identifier, _, day, empty = table.columns
    assert (identifier.min, identifier.max, day.min, empty.nulls) == ("0", "999", "2013-01-01", 1000)


def test_parquet_without_a_sound_footer_is_a_problem(profiled, parquet):
    found = profiled(
        parquet[:-20] + b"\xff" * 12 + parquet[-8:], "x.parquet", "application/vnd.apache.parquet"
    )
    assert (found.tables, len(found.problems)) == ((), 1)


def test_anything_else_has_a_type_and_a_size(profiled):
    found = profiled(b"%PDF-1.7 ...", "x.pdf", "application/pdf", declared_type="application/pdf")
    assert (found.size, found.types.found, found.types.agree, found.problems) == (
        12,
        "application/pdf",
        True,
        (),
    )


@pytest.mark.parametrize(
    ("told", "name", "found", "agree"),
    [
        ("text/csv; charset=utf-8", "x.csv", "text/csv", True),
        ("application/octet-stream", "x", "text/csv", True),
        (None, "x", "text/csv", True),
        ("text/plain", "x.csv", "text/csv", True),
        ("application/json", "x.geojson", "application/geo+json", True),
        ("text/xml", "x.xml", "application/rdf+xml", True),
        ("application/json", "x", "text/csv", False),
        ("text/html", "x.csv", "text/csv", False),
        ("text/csv", "x.json", "text/csv", False),
    ],
)
def test_what_was_claimed_agrees_or_not(profiled, told, name, found, agree):
    bodies = {
        "application/geo+json": '{"type": "FeatureCollection", "features": []}',
        "application/rdf+xml": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
    }
    body = bodies.get(found, "a,b\n1,2\n" * 3)
    types = profiled(body, name, found, declared_type=told).types
    assert (types.found, types.agree) == (found, agree)
