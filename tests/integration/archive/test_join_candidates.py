"""Join candidates of the archive: found by sketches, told by the verb, the service and the catalogue."""

import json

import pytest

from tamias.archive.blobs import BlobReader, LocalPacks
from tamias.features.dcat.joins import read_joins
from tamias.features.dcat.stream import quads_of_resources
from tamias.features.dcat.terms import CatalogueBases
from tamias.features.tables.chores import find_joins, profile_some

TOWNS = "http://data.example/towns.csv"
SCHOOLS = "http://data.example/schools.csv"
BIRDS = "http://data.example/birds.csv"


def table(header, rows):
    return "".join([f"{header}\n", *(f"{','.join(map(str, row))}\n" for row in rows)]).encode()


@pytest.fixture
def joined(filled):
    """Every town of the schools is in the table of towns; the birds have nothing to do with either."""
    filled.run("DELETE FROM figure")
    filled.put(TOWNS, table("town,people", [(f"Ort {n}", n * 17.5) for n in range(90)]))
    filled.put(SCHOOLS, table("school,place", [(f"School {n}", f"Ort {n % 30}") for n in range(120)]))
    filled.put(BIRDS, table("bird,weight", [(f"Vogel {n}", n * 1.5) for n in range(60)]))
    blobs = BlobReader(LocalPacks(filled.data / "blobs"), filled.session)
    assert profile_some(filled.session, blobs) == 3
    assert find_joins(filled.session) == 1
    return filled


def sides(join):
    return join["of"]["url"], join["of"]["name"], join["within"]["url"], join["within"]["name"]


def test_a_column_contained_in_that_of_another_table_is_found_and_no_other(joined):
    (join,) = read_joins(joined.session)
    assert (join.of.url, join.of.name, join.of.distinct) == (SCHOOLS, "place", 30)
    assert (join.within.url, join.within.name, join.within.distinct) == (TOWNS, "town", 90)
    assert join.containment == 1.0


def test_nothing_is_compared_again_until_a_table_is_new(joined):
    assert find_joins(joined.session) is None


def test_what_is_not_contained_any_more_is_no_candidate(joined):
    joined.put(TOWNS, table("town,people", [(f"Stadt {n}", n) for n in range(90)]))
    profile_some(joined.session, BlobReader(LocalPacks(joined.data / "blobs"), joined.session))
    assert find_joins(joined.session) == 0
    assert read_joins(joined.session) == []


def test_the_verb_tells_of_all_or_of_those_of_one_resource(joined, tamias):
    told = tamias("stats", "--joins")
    assert told.stdout == f"100%  place (30) of {SCHOOLS}  in  town (90) of {TOWNS}\n", told.stderr
    (join,) = json.loads(tamias("stats", "--joins", "--url", TOWNS, "--json").stdout)
    assert sides(join) == (SCHOOLS, "place", TOWNS, "town")
    assert json.loads(tamias("stats", "--joins", "--url", BIRDS, "--json").stdout) == []


def test_the_catalogue_leads_from_column_to_column(joined):
    (join,) = read_joins(joined.session)
    bases = CatalogueBases()
    quads = quads_of_resources(joined.session, [join.of.resource], bases)[join.of.resource]
    (found,) = [quad for quad in quads if quad.predicate.value.endswith("#valuesWithin")]
    assert found.subject.value == bases.file_of(join.of.resource, 1).value + "#2"
    assert found.object.value == bases.file_of(join.within.resource, 1).value + "#1"
    assert found.subject in {quad.object for quad in quads if quad.predicate.value.endswith("csvw#column")}


def test_tables_with_most_columns_and_values_in_common_are_alike(filled, tamias):
    filled.run("DELETE FROM figure")
    rows = [(f"Ort {n}", n * 17.5, f"D-{n:05}") for n in range(200)]
    later = [*rows[10:], *((f"Stadt {n}", n * 3.3, f"X-{n:05}") for n in range(10))]
    other = "http://other.example/orte.csv"
    wider = "http://wide.example/towns.csv"
    filled.put(TOWNS, table("town,people,code", rows))
    filled.put(other, table("code,town,people", [(code, town, people) for town, people, code in later]))
    filled.put(wider, table("town,a,b", [(town, f"a{people}", f"b{code}") for town, people, code in rows]))
    filled.put(BIRDS, table("bird,weight", [(f"Vogel {n}", n * 1.5) for n in range(60)]))
    blobs = BlobReader(LocalPacks(filled.data / "blobs"), filled.session)
    assert profile_some(filled.session, blobs) == 4
    find_joins(filled.session)
    (found,) = json.loads(tamias("stats", "--alike", "--json").stdout)
    assert {found["url"], found["other_url"]} == {TOWNS, other}
    assert (found["columns"], found["most_columns"]) == (2, 2)  # numbers that are measures have no sketch
    assert 0.9 < found["alike"] == found["values"] < 1
    (mine,) = json.loads(tamias("stats", "--alike", "--url", other, "--json").stdout)
    assert (mine["url"], mine["other_url"]) == (other, TOWNS)
    assert tamias("stats", "--alike").stdout.startswith(" 95%  http://")
    assert tamias("stats", "--alike", "--joins").returncode == 2
