"""The verbs of the archive, as a user types them."""

import json

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, Store, parse, serialize

from tests.messages import unsaid

URL = "http://data.example/a.csv"
VERSIONS = [b"id,name\n1,first\n", b"id,name\n1,first\n2,second\n", b"id,name\n1,changed\n3,third\n"]


PAIRS = ((b"1", b"old"), (b"2", b"new"))


@pytest.fixture
def kept(filled):
    filled.put(URL, *VERSIONS, title="A table")
    filled.watch("http://data.example/none.csv")
    return filled


def one_sentence(result):
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("tamias: ")
    return lines[0]


def test_versions_as_json_have_what_a_client_needs(tamias, kept):
    told = json.loads(tamias("versions", URL, "--json").stdout)
    assert [each["number"] for each in told] == [1, 2, 3]
    assert told[1]["captured_at"] == "2026-01-02T00:00:00.000Z"
    assert told[1]["byte_size"] == len(VERSIONS[1])
    assert told[1]["media_type"] == "text/csv"
    assert told[1]["download"].endswith(f"/api/v1/get/file/id/{told[1]['id']}")


def test_versions_are_a_table_for_people(tamias, kept):
    lines = tamias("versions", URL).stdout.splitlines()
    assert lines[0] == f"{URL} (active)"
    assert len(lines) == 4


def test_get_writes_the_exact_bytes_to_stdout(tamias, kept):
    for number, content in enumerate(VERSIONS, start=1):
        assert tamias("get", URL, "--version", str(number), text=False).stdout == content


def test_get_at_a_time_writes_a_file(tamias, kept, tmp_path):
    result = tamias("get", URL, "--at", "20260102120000", "-o", "then.csv", "--json")
    assert (tmp_path / "then.csv").read_bytes() == VERSIONS[1]
    assert json.loads(result.stdout)["number"] == 2


def test_get_by_the_id_of_a_version(tamias, kept):
    name = json.loads(tamias("versions", URL, "--json").stdout)[0]["id"]
    assert tamias("get", name, text=False).stdout == VERSIONS[0]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["versions", "http://data.example/b.csv"], 1, "is not in the archive"),
        (["get", "http://data.example/none.csv"], 1, "has no version yet"),
        (["get", URL, "--version", "9"], 1, "has no version 9"),
        (["get", URL, "--at", "1999-01-01"], 1, "there was no version"),
        (["get", URL, "--at", "soon"], 2, "is not a time"),
        (["get", URL, "--at", "2026-01-01", "--version", "1"], 2, "not both"),
        (["get", URL, "--json"], 2, "-o FILE"),
        (["versions", "data.example"], 2, "is not a URL"),
        (["diff", URL, "7"], 1, "has no version 7"),
        (["diff", URL, "--key", "no such"], 2, "no column 'no such' in both versions"),
        (["export", "--url", URL], 2, "use it with"),
        (["export", "--format", "bagit", "--url", "http://data.example/b.csv"], 1, "is not in the archive"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(tamias, kept, words, code, said):
    result = tamias(*words)
    assert result.returncode == code, result.stderr
    assert said in one_sentence(result)


@pytest.mark.parametrize("words", [["versions", URL], ["get", URL], ["diff", URL], ["check"]])
def test_without_data_the_verb_says_so(tamias, words):
    result = tamias(*words, data="nowhere")
    assert result.returncode == 10
    assert not unsaid(one_sentence(result))


def test_diff_as_json_counts_the_last_step(tamias, kept):
    told = json.loads(tamias("diff", URL, "--key", "id", "--json").stdout)
    assert (told["kind"], told["added"], told["removed"], told["changed"]) == ("rows", 1, 1, 1)
    assert len(told["changes"]) == 3
    assert told["truncated"] is False


def test_diff_tells_people_each_change_and_the_sum(tamias, kept):
    head, *changes = tamias("diff", URL, "1", "2").stdout.splitlines()
    assert head.endswith("1 added, 0 removed, 0 changed")
    assert [line[0] for line in changes] == ["+"]


def test_diff_as_sparql_turns_the_old_graph_into_the_new_one(tamias, filled):
    old = b'@prefix e: <http://e.example/> . e:a e:p "1" ; e:q [ e:r "old" ] .'
    new = b'@prefix e: <http://e.example/> . e:a e:p "2" ; e:q [ e:r "new" ] .'
    filled.put("http://data.example/g.ttl", old, new, media_type="text/turtle")
    store, wanted = Store(), Store()
    store.load(old, RdfFormat.TURTLE)
    wanted.load(new, RdfFormat.TURTLE)
    store.update(tamias("diff", "http://data.example/g.ttl", "--sparql-update").stdout)
    graphs = [Dataset(each) for each in (store, wanted)]
    for graph in graphs:
        graph.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    assert graphs[0] == graphs[1]


def test_diff_as_rdf_patch_has_the_statements_that_go_and_come(tamias, kept):
    old, new = (
        b'@prefix e: <http://e.example/> . e:a e:p "%b" ; e:q [ e:r "%b" ] .' % each for each in PAIRS
    )
    kept.put("http://data.example/p.ttl", old, new, media_type="text/turtle")
    patch = tamias("diff", "http://data.example/p.ttl", "1", "2", "--rdf-patch").stdout
    first, *rows, last = patch.splitlines()
    assert (first, last) == ("TX .", "TC .")
    was = {line[2:] for line in rows if line[0] == "D"}
    now = {line[2:] for line in rows if line[0] == "A"}
    assert len(rows) == 6
    for lines, wanted in ((was, old), (now, new)):
        found = Dataset(parse("\n".join(lines), format=RdfFormat.N_QUADS))
        expected = Dataset(parse(wanted, format=RdfFormat.TURTLE))
        for graph in (found, expected):
            graph.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
        assert found == expected
    assert tamias("diff", "http://data.example/p.ttl", "2", "1", "--rdf-patch").stdout.splitlines()[1:-1] == [
        *sorted(f"D {line}" for line in now),
        *sorted(f"A {line}" for line in was),
    ]
    assert tamias("diff", URL, "--rdf-patch").returncode == 2


def test_versions_in_two_syntaxes_are_compared_by_their_statements(tamias, filled):
    url = "http://data.example/vocabulary"
    told = '<http://e.example/{0}> <http://e.example/p> "{0}" .\n'.format
    quads = [*parse("".join(map(told, range(9))).encode(), format=RdfFormat.N_TRIPLES)]
    old = serialize([quad.triple for quad in quads], format=RdfFormat.RDF_XML)
    filled.put(url, old, media_type="application/rdf+xml")
    new = "".join(map(told, range(2, 10))).encode()
    filled.put(url, new, media_type="text/turtle")
    found = json.loads(tamias("diff", url, "--json").stdout)
    assert (found["kind"], found["added"], found["removed"], found["notes"]) == ("triples", 1, 2, [])
    assert {change["old"] or change["new"] for change in found["changes"]} == {
        told(number).strip() for number in (0, 1, 9)
    }
    store, wanted = Store(), Store()
    store.load(old, RdfFormat.RDF_XML)
    wanted.load(new, RdfFormat.TURTLE)
    store.update(tamias("diff", url, "--sparql-update").stdout)
    assert set(store) == set(wanted)


def test_diff_as_sparql_of_a_table_is_one_sentence(tamias, kept):
    result = tamias("diff", URL, "--sparql-update")
    assert result.returncode == 2
    assert "not RDF" in one_sentence(result)


def test_stats_tell_of_the_archive(tamias, kept):
    told = json.loads(tamias("stats", "--json").stdout)["archive"]
    assert (told["datasets"], told["versions"], told["hosts"]) == (2, 3, 1)
    assert told["bytes"] == sum(map(len, VERSIONS))
    assert "versions     3 of" in tamias("stats").stdout


def test_stats_have_the_types_sizes_hosts_and_portals(tamias, kept):
    told = json.loads(tamias("stats", "--json").stdout)
    assert told["types"] == [{"media_type": "text/csv", "versions": 3, "bytes": sum(map(len, VERSIONS))}]
    assert told["hosts"] == [{"host": "data.example", "datasets": 2}]
    assert told["portals"] == [{"portal": "http://portal.example/", "files": 2, "datasets": 1}]
    assert [each["share"] for each in told["sizes"]] == [0.1, 0.25, 0.5, 0.75, 0.85, 0.95, 0.99]
    said = tamias("stats").stdout
    assert f"type         text/csv: 3 versions, {sum(map(len, VERSIONS)):,} bytes" in said
    assert "portal       http://portal.example/: 2 files, 1 datasets" in said
