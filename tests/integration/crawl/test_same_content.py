"""The same file under several URLs of several hosts is stored once, and everybody says so."""

import json
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tests.messages import unsaid

ARC = "https://w3id.org/tamias/archive#"
STORED = b"SELECT blob.size, blob.length FROM blob ORDER BY blob.size"


def rows(tamias, statement):
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        return session.fetch_all(statement)


@pytest.fixture(scope="module")
def real_files(suites):
    """A real table and a real graph."""
    histories, graphs = suites("real-histories"), suites("real-rdf-files")
    found = [path.read_bytes() for path in sorted(histories.rglob("*")) if ".csv/" in str(path)]
    tables = [each for each in found if 10_000 < len(each) < 1_000_000 and b"\r" not in each]
    triples = sorted(graphs.glob("*.ttl"), key=lambda path: (path.stat().st_size, path.name))
    return tables[0], triples[-1].read_bytes()


@pytest.fixture
def copies(tamias, site_at, reply, real_files):
    """Each file under five URLs of three hosts, and the table with other line ends under one more."""
    table, graph = real_files
    sites = [site_at(f"127.0.0.{number}") for number in (1, 2, 3)]
    places = [(sites[0], "1"), (sites[0], "2"), (sites[1], "1"), (sites[1], "2"), (sites[2], "1")]
    urls = {"csv": [], "ttl": []}
    for site, name in places:
        site.pages[f"/{name}.csv"] = reply(200, table, Content_Type="text/csv")
        site.pages[f"/{name}.ttl"] = graph
        for kind, listed in urls.items():
            listed.append(site.url(f"/{name}.{kind}"))
    sites[2].pages["/other.csv"] = reply(200, table.replace(b"\n", b"\r\n"), Content_Type="text/csv")
    urls["other"] = [sites[2].url("/other.csv")]
    for batch in (urls["csv"][:1] + urls["ttl"][:1], urls["csv"][1:] + urls["ttl"][1:] + urls["other"]):
        assert tamias.run("add", *batch).returncode == 0
        done = tamias.crawl("--recrawl")
        assert done.returncode == 0, done.stderr
    return urls


def test_a_file_under_five_urls_is_stored_once_and_told(tamias, copies, real_files):
    table, graph = real_files
    sizes = {len(table), len(graph), len(table) + table.count(b"\n")}
    stored = rows(tamias, STORED)
    assert [size for size, _ in stored] == sorted(sizes)
    assert json.loads(tamias.run("stats", "--json").stdout)["shared"] == {
        "versions": 11,
        "same_bytes": 10,
        "bodies": 2,
        "bytes_saved": 4 * (len(table) + len(graph)),
    }
    (last,) = json.loads(tamias.run("versions", copies["csv"][4], "--json").stdout)
    assert {each["url"] for each in last["same_as"]} == {*copies["csv"][:4], *copies["other"]}
    assert {each["url"] for each in last["same_as"] if not each["same_bytes"]} == set(copies["other"])
    assert last["same_as"][0]["url"] == copies["csv"][0]
    told = tamias.run("versions", copies["other"][0]).stdout
    assert not unsaid(told, "1", copies["csv"][0])


def test_the_catalogue_says_where_the_content_was_first(tamias, copies):
    query = (
        f"SELECT ?of ?first {{ ?version <{ARC}sameContentAs> ?before . ?version dcat:isVersionOf ?of_set ."
    )
    query += " ?of_set dcat:distribution/dcat:accessURL ?of . ?before dcat:isVersionOf ?first_set ."
    query += " ?first_set dcat:distribution/dcat:accessURL ?first }"
    found = json.loads(tamias.run("query", query, "--format", "json").stdout)["results"]["bindings"]
    pairs = {(each["of"]["value"], each["first"]["value"]) for each in found}
    expected = {(url, copies[kind][0]) for kind in ("csv", "ttl") for url in copies[kind][1:]}
    assert pairs == expected | {(copies["other"][0], copies["csv"][0])}
