"""Queries of the Open Dataset Archive's paper, and the files that their results name."""

import io
import zipfile

import pytest

from tamias.features.dcat.terms import CatalogueBases

FIGURE_6 = """
SELECT ?versionURL WHERE {
  ?datasetURL arc:hasPortal ?Portal ;
              dc:hasVersion ?versionURL ;
              dcat:mediaType ?mediaType .
  ?versionURL dc:issued ?dateVersion .
  FILTER (?Portal = <http://data.gv.at> && ?mediaType = "text/csv" &&
          strdt(?dateVersion, xsd:dateTimeStamp) >= "2026-01-02T00:00Z"^^xsd:dateTimeStamp) }
"""
PREFIXES = """
PREFIX arc: <https://archiver.ai.wu.ac.at/ns/csvw#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX csvw: <http://www.w3.org/ns/csvw#>
PREFIX dcat: <http://www.w3.org/ns/dcat#>
PREFIX dc: <http://purl.org/dc/elements/1.1>
"""
"""As Figure 4 declares them: `dc:` without a slash."""
URL = "http://data.example/a.csv"


@pytest.fixture
def archive(corpus, refresher, client):
    name = corpus.put(URL, b"a\n", b"b\n", b"c\n")
    corpus.put("http://data.example/b.json", b"{}", media_type="application/json")
    corpus.put("http://data.example/c.csv", b"x\n", portal="http://other.example")
    refresher.round()
    return name


def files(answer):
    assert answer.status_code == 200, answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist() if name != "manifest.jsonl"}


@pytest.mark.parametrize("prefixes", ["", PREFIXES])
def test_the_query_of_figure_6_gives_the_urls_of_the_versions_it_means(archive, client, prefixes):
    rows = client.get("/sparql", params={"query": prefixes + FIGURE_6}).json()["results"]["bindings"]
    base = CatalogueBases().service
    wanted = {f"{base}/api/v1/get/file/id/{archive}_{number}" for number in (2, 3)}
    assert {row["versionURL"]["value"] for row in rows} == wanted


def test_the_urls_of_figure_6_can_be_fetched(archive, client):
    rows = client.get("/sparql", params={"query": FIGURE_6}).json()["results"]["bindings"]
    assert {client.get(row["versionURL"]["value"]).content for row in rows} == {b"b\n", b"c\n"}


def test_the_versions_of_figure_6_come_as_a_zip(archive, client):
    answer = client.get("/api/v1/get/files/sparql", params={"q": FIGURE_6})
    assert files(answer) == {f"{archive}_2.csv": b"b\n", f"{archive}_3.csv": b"c\n"}


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT (<{URL}> AS ?url) {{}}",
        f"SELECT ?d {{ ?d dcat:distribution/dcat:accessURL <{URL}> ; dcat:hasCurrentVersion ?v }}",
        f"CONSTRUCT {{ ?d a ?d }} {{ ?d dcat:distribution/dcat:accessURL <{URL}> ; arc:state ?s }}",
    ],
)
def test_a_dataset_stands_for_its_current_version(archive, client, query):
    assert files(client.get("/api/v1/get/files/sparql", params={"q": query})) == {f"{archive}_3.csv": b"c\n"}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("ASK {}", 400),
        ("SELECT", 400),
        ("SELECT ?x { VALUES ?x { <http://nowhere.example/> 'text' } }", 404),
        ("SELECT ?x { BIND(<http://127.0.0.1:8080/dataset/aaaaaaaaaaaaaaaaaaaaaaaa/7> AS ?x) }", 404),
    ],
)
def test_a_result_without_files_is_a_problem(archive, client, query, status):
    answer = client.get("/api/v1/get/files/sparql", params={"q": query})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
