"""`tamias query` on a real data directory."""

import json
import os
from contextlib import closing

import pytest

import tamias as library
from tamias.database.disk import alone
from tamias.features.catalogue import catalogue
from tamias.features.dcat.terms import CatalogueBases
from tests import commands
from tests.messages import unsaid

QUERY = "SELECT ?title ?n { ?v dcat:version ?n ; dct:title ?title } ORDER BY ?n"


@pytest.fixture
def tamias(corpus, tmp_path):
    corpus.put("http://data.example/a.csv", b"a\n", b"b\n")
    corpus.crawl(
        "http://d.example/doc",
        b'<http://d.example/s> <http://d.example/p> "\x1b[2J" <http://d.example/doc> .\n',
    )

    def run(*words, data=corpus.data, text=None):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
        return commands.run(
            ["query", *words, "--data", str(data)], cwd=tmp_path, env=clean,
            text=True, capture_output=True, timeout=120, check=False, input=text,
        )  # fmt: skip

    return run


def test_the_answer_is_a_table(tamias):
    told = tamias(QUERY)
    assert told.stdout.splitlines()[0].split() == ["?title", "?n"], told.stderr
    assert len(told.stdout.splitlines()) == 3


def test_the_answer_is_json(tamias):
    assert len(json.loads(tamias(QUERY, "--json").stdout)["results"]["bindings"]) == 2


def test_the_answer_is_csv(tamias):
    assert tamias(QUERY, "--format", "csv").stdout.splitlines()[0] == "title,n"


def test_statements_come_as_nquads(tamias):
    query = "CONSTRUCT WHERE { ?s <http://d.example/p> ?o }"
    assert tamias(query, "--format", "nquads").stdout.startswith("<http://d.example/s>")


def test_the_query_comes_from_a_file(tamias, tmp_path):
    (tmp_path / "q.rq").write_text(QUERY)
    assert len(tamias("@q.rq", "--format", "csv").stdout.splitlines()) == 3


def test_the_query_comes_from_stdin(tamias):
    assert len(tamias("-", "--format", "csv", text=QUERY).stdout.splitlines()) == 3


def test_crawled_text_cannot_steer_the_terminal(tamias):
    assert "\x1b" not in tamias("SELECT ?o { ?s <http://d.example/p> ?o }").stdout


@pytest.mark.parametrize("query", ["SELECT * {", "DROP ALL", "@absent.rq"])
def test_what_is_no_query_is_wrong_usage(tamias, query):
    told = tamias(query)
    assert (told.returncode, told.stdout) == (2, "")


def test_no_data_is_no_answer(tamias, tmp_path):
    assert tamias(QUERY, data=tmp_path / "absent").returncode == 10


def test_the_answer_does_not_wait_for_another_process_that_fills_the_store(tamias, corpus):
    query = "SELECT ?s { ?s <http://d.example/p> ?o }"
    before = tamias(query, "--format", "csv").stdout.splitlines()
    assert len(before) == 2
    corpus.crawl(
        "http://d.example/2", b'<http://d.example/2> <http://d.example/p> "2" <http://d.example/2> .\n'
    )
    with alone(corpus.data / "catalogue" / "refresh.lock", 60):
        meanwhile = tamias(query, "--format", "csv")
    assert meanwhile.stdout.splitlines() == before
    assert not unsaid(meanwhile.stderr, "SPARQL")
    assert len(tamias(query, "--format", "csv").stdout.splitlines()) == 3


def test_a_query_leaves_to_the_service_what_takes_long(corpus, monkeypatch, caplog):
    monkeypatch.setattr(catalogue, "_DOCUMENT_SECONDS", -1.0)
    query = "SELECT ?o { ?s <http://d.example/p> ?o }"
    corpus.crawl(
        "http://d.example/3", b'<http://d.example/3> <http://d.example/p> "3" <http://d.example/3> .\n'
    )
    with library.Archive(corpus.data) as archive:
        with alone(corpus.data / "catalogue" / "eldest.lock", 60):
            assert list(archive.query(query)) == []
        assert not unsaid(caplog.text, "1")
        assert [row["o"].value for row in archive.query(query)] == ["3"]


def test_a_query_leaves_the_store_to_a_service_at_another_address_also_once_it_has_ended(tamias, corpus):
    query = "SELECT DISTINCT ?version { ?version dcat:version ?n } ORDER BY ?version"
    with (
        catalogue.Catalogue(corpus.data) as filled,
        closing(
            filled.refresher(corpus.session, CatalogueBases(service="http://other.example"))
        ) as refresher,
    ):
        refresher.round()
    store = (corpus.data / "catalogue" / "store" / "id").read_bytes()
    with alone(corpus.data / "catalogue" / "eldest.lock", 60):
        found = tamias(query, "--format", "csv").stdout.splitlines()[1:]
    assert len(found) == 2
    assert all(each.startswith("http://other.example/") for each in found)
    assert tamias(query, "--format", "csv").stdout.splitlines()[1:] == found
    assert (corpus.data / "catalogue" / "store" / "id").read_bytes() == store
