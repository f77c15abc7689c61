"""A snapshot is exported with the same bytes whatever happened since, and says what is missing."""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from pyld import jsonld
from pyoxigraph import RdfFormat, parse
from rdflib import Graph
from rdflib.compare import isomorphic

from tamias.archive.blobs import BlobWriter
from tamias.archive.blobs.collect import collect
from tamias.archive.blobs.store import packs_of
from tamias.archive.references import referenced
from tamias.database.connect import Database
from tests.messages import unsaid

GRAPHS = [
    b'<> <http://purl.org/dc/terms/license> <http://l.example/by> . <#a> <#says> "1", "\\u0085" .',
    b'@prefix : <http://v.example/> . :a :says "2" ; :knows [ :name "C" ] .',
]
TABLES = [b"id,name\n1,a\n", b"id,name\n1,a\n2,b\n"]
CRATES = Path(sys.prefix) / "crates" / "bin" / "python"
"""Has the package rocrate, which `make nightly` installs."""
VALIDATOR = CRATES.with_name("rocrate-validator")
LICENCE = "https://l.example/by"
READ_CRATE = """
import json, sys
from rocrate.rocrate import ROCrate
crate = ROCrate(sys.argv[1])
files = [each for each in crate.data_entities if each.type == "File"]
print(json.dumps({"root": crate.name, "files": {each.id: each["sha256"] for each in files},
                  "authors": [each["name"] for each in crate.root_dataset["author"]]}))
"""
CACHE_CONTEXT = """
import sys
from pathlib import Path
from requests_cache import CachedResponse, CachedSession
answer = CachedResponse(url="https://w3id.org/ro/crate/1.2/context", content=Path(sys.argv[2]).read_bytes(),
                        status_code=200, headers={"Content-Type": "application/ld+json"})
answer.request.method, answer.request.url = "GET", answer.url
CachedSession(sys.argv[1], backend="sqlite").cache.save_response(answer)
"""
FORMATS = {"nquads": "nq", "bagit": "zip", "ro-crate": "zip", "manifest": "jsonl"}


@pytest.fixture
def crawled(tamias, site, reply):
    """A table and two documents under watch, visited once."""
    site.pages |= {
        "/a.csv": reply(200, TABLES[0], Content_Type="text/csv"),
        "/a.ttl": GRAPHS[0],
        "/b.ttl": GRAPHS[1],
    }
    assert tamias.run("add", *map(site.url, site.pages)).returncode == 0
    assert tamias.crawl("--recrawl").returncode == 0
    return tamias


@pytest.fixture
def later(crawled, site, reply):
    """`later()`: other versions come, one document goes, history is repacked, all is checked."""

    def happen():
        site.pages |= {
            "/a.csv": reply(200, TABLES[1], Content_Type="text/csv"),
            "/a.ttl": GRAPHS[1],
            "/b.ttl": reply(410),
            "/c.ttl": GRAPHS[0],
        }
        assert crawled.run("add", site.url("/c.ttl")).returncode == 0
        assert crawled.crawl("--recrawl", *map(site.url, site.pages)).returncode == 0
        assert crawled.run("repack", "--after", "0").returncode == 0
        done = crawled.run("check", "--repair")
        assert done.returncode == 0, done.stdout + done.stderr
        free_at_once(crawled)

    return happen


def free_at_once(tamias):
    """What a repair does with blobs that nothing has used for a day."""
    with (
        closing(Database(tamias.data)) as database,
        closing(database.session()) as session,
        closing(database.session()) as second,
        closing(BlobWriter(packs_of(session, tamias.data), second)) as writer,
    ):
        collect(writer, session, referenced(session), grace=0)


def made(tamias, name="one", *words):
    done = tamias.run("snapshot", name, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def exported(tamias, name="one", forms=tuple(FORMATS), code=0):
    """The export of a snapshot in some forms."""
    found = {}
    for form in forms:
        path = tamias.data.parent / f"export.{FORMATS[form]}"
        done = tamias.run("snapshot export", name, "--format", form, "-o", str(path))
        assert done.returncode == code, done.stderr
        found[form] = path.read_bytes()
        path.unlink()
    return found


def files(content):
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def entries(manifest):
    return [json.loads(line) for line in manifest.splitlines()]


def test_the_same_bytes_after_other_versions_came_and_history_was_repacked(crawled, later):
    about = made(crawled)
    first = exported(crawled)
    assert hashlib.sha256(first["manifest"]).hexdigest() == about["manifest"]
    assert exported(crawled) == first
    later()
    assert exported(crawled) == first
    made(crawled, "two")
    before, after = entries(first["manifest"]), entries(exported(crawled, "two", ["manifest"])["manifest"])
    versions = [[each for each in some if each["kind"] == "version"] for some in (before, after)]
    assert (len(versions[0]), len(versions[1])) == (3, 6)
    assert all(each in versions[1] for each in versions[0])
    assert crawled.run("snapshot remove", "two").returncode == 0
    assert exported(crawled) == first


def test_a_document_whose_name_is_no_url_is_in_the_snapshot_under_its_name(crawled, site):
    """As an archive of long ago may have one: it is of no host."""
    with closing(Database(crawled.data)) as database, closing(database.session()) as session:
        session.execute(
            b"UPDATE capture SET final_url = 'a name' WHERE url = %(url)b", {"url": site.url("/a.ttl")}
        )
    made(crawled)
    found = exported(crawled)
    named = [each["document"] for each in entries(found["manifest"]) if each["kind"] == "graph"]
    assert sorted(named) == ["a name", site.url("/b.ttl")]
    assert exported(crawled) == found


def test_the_same_bytes_on_a_restored_copy(crawled, later, tamias_at):
    made(crawled)
    first = exported(crawled)
    later()
    assert crawled.run("backup", "saved").returncode == 0
    copy = tamias_at("copy")
    done = copy.run("restore", str(crawled.data.parent / "saved"))
    assert done.returncode == 0, done.stderr
    crawled.end()
    shutil.rmtree(crawled.data)
    assert exported(copy) == first


def test_a_snapshot_of_the_past_is_what_was_there_then(crawled, later):
    now = made(crawled)
    later()
    then = made(crawled, "then", "--at", now["at"])
    assert then["manifest"] == now["manifest"]
    assert then["provenance"] == now["provenance"]


def test_the_graphs_are_sorted_statements_of_the_documents(crawled, site):
    made(crawled)
    lines = exported(crawled, forms=["nquads"])["nquads"].split(b"\n")
    assert lines.pop() == b""
    assert lines == sorted(set(lines))
    assert all(line.endswith(b" .") for line in lines)
    found = {}
    for quad in parse(b"\n".join(lines), format=RdfFormat.N_QUADS):
        found.setdefault(quad.graph_name.value, []).append(f"{quad.triple} .")
    assert set(found) == {site.url("/a.ttl"), site.url("/b.ttl"), "urn:tamias:metadata"}
    for path, text in zip(("/a.ttl", "/b.ttl"), GRAPHS, strict=True):
        read = Graph().parse(data="\n".join(found[site.url(path)]), format="nt")
        expected = Graph().parse(data=text, format="turtle", publicID=site.url(path))
        assert isomorphic(read, expected)


def test_the_manifest_has_the_digests_of_what_is_in_the_bag(crawled, site):
    made(crawled)
    exports = exported(crawled)
    bag = {path.removeprefix("one/data/"): content for path, content in files(exports["bagit"]).items()}
    listed = entries(exports["manifest"])
    versions = [each for each in listed if each["kind"] == "version"]
    assert {each["url"] for each in versions} == {site.url(path) for path in ("/a.csv", "/a.ttl", "/b.ttl")}
    for each in versions:
        assert hashlib.sha256(bag[each["path"]]).hexdigest() == each["sha256"]
    graphs = [each for each in listed if each["kind"] == "graph"]
    for each in graphs:
        end = f" <{each['document']}> .\n".encode()
        own = [line for line in bag["graphs.nq"].splitlines(keepends=True) if line.endswith(end)]
        assert hashlib.sha256(b"".join(own)).hexdigest() == each["sha256"]
        assert len(own) == each["statements"]
    assert sum(each["statements"] for each in graphs) == bag["graphs.nq"].count(b"\n")
    assert bag["manifest.jsonl"] == exports["manifest"]
    crate = files(exports["ro-crate"])
    assert all(crate[path] == bag[path] for path in crate if path != "ro-crate-metadata.json")


def test_licences_are_counted_by_source(crawled, site):
    licences = made(crawled)["licences"]
    host = site.url("/").split("/")[2].partition(":")[0]
    assert licences == [
        {"source": host, "declared_by": None, "licence": None, "versions": 3, "graphs": 1},
        {
            "source": host,
            "declared_by": "document",
            "licence": "http://l.example/by",
            "versions": 0,
            "graphs": 1,
        },
    ]


def test_what_was_taken_down_is_a_gap_and_nothing_else_differs(crawled, site):
    made(crawled)
    first = exported(crawled, forms=["bagit", "manifest"])
    with closing(Database(crawled.data)) as database, closing(database.session()) as session:
        session.execute(
            b"DELETE FROM version USING resource WHERE version.resource = resource.resource"
            b" AND resource.url = %(url)b::text",
            {"url": site.url("/a.csv")},
        )
        session.execute(
            b"UPDATE capture SET segment = NULL WHERE url = %(url)b::text", {"url": site.url("/b.ttl")}
        )
    second = exported(crawled, forms=["bagit", "manifest"])
    before, after = entries(first["manifest"]), entries(second["manifest"])
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert [new.pop("gap") for _, new in changed] == [{"reason": "removed from the archive"}] * 2
    assert all(old == new for old, new in changed)
    assert {old.get("url") or old["document"] for old, _ in changed} == {
        site.url("/a.csv"), site.url("/b.ttl")
    }  # fmt: skip
    old, new = files(first["bagit"]), files(second["bagit"])
    (gone,) = old.keys() - new.keys()
    assert old[gone] == TABLES[0]
    differ = {path.removeprefix("one/") for path in new if new[path] != old[path]}
    assert differ == {
        "data/graphs.nq", "data/manifest.jsonl", "bag-info.txt", "manifest-sha256.txt",
        "tagmanifest-sha256.txt",
    }  # fmt: skip
    done = crawled.run("snapshot show", "one")
    assert done.stderr.count("gap: ") == 2
    assert f"graph of {site.url('/b.ttl')}: removed from the archive" in done.stderr


def gaps_by_url(manifest):
    return {each.get("url") or each["document"]: each["gap"] for each in entries(manifest) if "gap" in each}


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "under way"])
@pytest.mark.parametrize("words", [["--version", "1"], []], ids=["version", "resource"])
def test_what_was_forgotten_is_a_gap_with_its_reason_as_soon_as_it_is_ordered(crawled, site, words, finished):
    """The same bytes are not given out though they are still there when the process is killed."""
    made(crawled)
    url = site.url("/a.ttl")
    if not finished:
        crawled.env["TAMIAS_FAULT"] = "forget-noted"
    done = crawled.run("forget", url, *words, "--reason", "personal data")
    assert ("killed at" in done.stderr) is not finished
    crawled.env.pop("TAMIAS_FAULT", None)
    got = exported(crawled, forms=["bagit", "manifest"])
    told = [each for each in entries(got["manifest"]) if "gap" in each]
    assert sorted(each["kind"] for each in told) == ["graph", "version"]
    assert set(gaps_by_url(got["manifest"])) == {url}
    assert {each["gap"]["reason"] for each in told} == {"forgotten: personal data"}
    assert all(each["gap"]["at"].endswith("Z") for each in told)
    content = files(got["bagit"])
    assert GRAPHS[0] not in content.values()
    assert b"license" not in content["one/data/graphs.nq"]
    assert b"says" in content["one/data/graphs.nq"]


def test_a_document_whose_name_is_no_url_is_a_gap_as_any_other(crawled, site):
    odd, url = "http://of old.example/", site.url("/b.ttl")
    with closing(Database(crawled.data)) as database, closing(database.session()) as session:
        named = {"url": url, "odd": odd}
        session.execute(b"UPDATE capture SET final_url = %(odd)b::text WHERE url = %(url)b::text", named)
        made(crawled)
        session.execute(b"UPDATE capture SET segment = NULL WHERE url = %(url)b::text", {"url": url})
    gaps = gaps_by_url(exported(crawled, forms=["manifest"])["manifest"])
    assert gaps == {odd: {"reason": "removed from the archive"}}


def test_a_check_misses_the_manifest_and_a_repair_finds_it(crawled):
    about = made(crawled)
    first = exported(crawled, forms=["bagit"])
    with closing(Database(crawled.data)) as database, closing(database.session()) as session:
        session.execute(
            b"DELETE FROM blob WHERE sha256 = %(sha256)b::bytea", {"sha256": bytes.fromhex(about["manifest"])}
        )
    told = crawled.run("check")
    assert told.returncode == 1
    assert not unsaid(told.stdout, about["manifest"])
    assert crawled.run("check", "--repair").returncode == 0
    assert exported(crawled, forms=["bagit"]) == first


def test_a_damaged_graph_is_told_and_the_rest_is_there(crawled, site):
    made(crawled)
    old = files(exported(crawled, forms=["bagit"])["bagit"])
    crawled.end()
    (segment,) = (crawled.data / "rdf").glob("*.nq.zst")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    new = files(exported(crawled, forms=["bagit"], code=1)["bagit"])
    assert {path for path in old if path.startswith("one/data/versions/")} <= new.keys()
    told = [each for each in entries(new["one/data/manifest.jsonl"]) if "gap" in each]
    assert told
    assert all(each["gap"]["damaged"] and each["kind"] == "graph" for each in told)


def test_only_what_was_chosen_is_in_a_snapshot(crawled, site):
    only = ["manifest"]
    made(crawled, "table", "--url", site.url("/a.csv"))
    made(crawled, "graph", "--url", site.url("/a.ttl"), "--latest")
    made(crawled, "host", "--host", "127.0.0.1")
    assert [each["kind"] for each in entries(exported(crawled, "table", only)["manifest"])] == ["version"]
    assert [each["kind"] for each in entries(exported(crawled, "graph", only)["manifest"])] == [
        "graph",
        "version",
    ]
    assert len(entries(exported(crawled, "host", only)["manifest"])) == 5
    names = [each["name"] for each in json.loads(crawled.run("snapshot list", "--json").stdout)]
    assert sorted(names) == ["graph", "host", "table"]


def test_what_cannot_be_is_said(crawled):
    made(crawled)
    for words, told in (
        (("one",), "there is a snapshot 'one' already"),
        (("a/b",), "cannot be a name"),
        (("none", "--at", "2001-01-01"), "would be empty"),
        (("none", "--at", "2101-01-01"), "still to come"),
        (("show", "none"), "there is no snapshot 'none'"),
        (("make", "list"), "is an action"),
    ):
        done = crawled.run("snapshot " + " ".join(words))
        assert done.returncode in (1, 2)
        assert told in done.stderr


def test_a_bag_is_valid_to_the_package_bagit(crawled, tmp_path):
    bagit = pytest.importorskip("bagit", reason="the package bagit is not installed; make nightly")
    made(crawled)
    assert crawled.run("snapshot export", "one", "--format", "bagit", "-o", "bag").returncode == 0
    bag = bagit.Bag(str(tmp_path / "bag"))
    bag.validate()
    assert bag.info["External-Identifier"].startswith("sha256:")


def test_the_metadata_are_valid_to_the_schema_of_datacite(crawled):
    schema = pytest.importorskip(
        "datacite.schema45", reason="the package datacite is not installed; make nightly"
    )
    words = ("--doi", "10.5072/a", "--creator", "A", "--creator", "B", "--license", "http://l.example/")
    told = made(crawled, "one", *words)
    schema.validator.validate(told["datacite"])
    assert [each["rights"] for each in told["datacite"]["rightsList"]] == [
        "http://l.example/", "http://l.example/by"
    ]  # fmt: skip
    assert told["citation"].startswith("A; B (20")
    assert told["citation"].endswith("https://doi.org/10.5072/a")


@pytest.mark.skipif(not CRATES.exists(), reason="the package rocrate is not there; make nightly")
def test_a_crate_is_read_by_the_package_rocrate(crawled, tmp_path):
    made(crawled, "one", "--creator", "A")
    assert crawled.run("snapshot export", "one", "--format", "ro-crate", "-o", "crate").returncode == 0
    done = subprocess.run(
        [str(CRATES), "-c", READ_CRATE, str(tmp_path / "crate")], check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    digests = {
        path.relative_to(tmp_path / "crate").as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tmp_path / "crate").rglob("*")
        if path.is_file() and path.name != "ro-crate-metadata.json"
    }
    assert found == {"root": "Snapshot one", "files": digests, "authors": ["A"]}


@pytest.fixture
def issues_of(tmp_path):
    """`issues_of(crate)`: what the validator of RO-Crate finds wrong with it.

    The context of RO-Crate 1.2, which the validator would fetch, is put into its cache of HTTP.
    """
    if not VALIDATOR.exists():
        pytest.skip("the package roc-validator is not there; make nightly")
    from servers.packages import NotRun, npm

    try:
        context = npm("ro-crate@3.7.2") / "node_modules" / "ro-crate" / "lib" / "context.json"
    except NotRun as reason:
        pytest.skip(f"the context of RO-Crate: {reason}")
    subprocess.run([str(CRATES), "-c", CACHE_CONTEXT, str(tmp_path / "http"), str(context)], check=True)

    def validate(crate):
        report = tmp_path / "report.json"
        asked = [
            "-y",
            "validate",
            "--no-paging",
            "-f",
            "json",
            "-o",
            str(report),
            "--skip-availability-check",
        ]
        asked += ["--offline", "--cache-path", str(tmp_path / "http"), str(crate)]
        done = subprocess.run([str(VALIDATOR), *asked], check=False, capture_output=True, text=True)
        assert report.exists(), done.stdout + done.stderr
        found = json.loads(report.read_bytes())
        issues = [f"{each['check']['identifier']} {each['message']}" for each in found["issues"]]
        assert found["passed"] == (not issues)
        return issues

    return validate


@pytest.mark.parametrize("words", [(), ("--creator", "A", "--doi", "10.5072/a", "--license", LICENCE)])
def test_a_crate_is_valid_to_the_validator_of_ro_crate(crawled, tmp_path, issues_of, words):
    """All that the specification requires."""
    made(crawled, "one", *words)
    assert crawled.run("snapshot export", "one", "--format", "ro-crate", "-o", "crate").returncode == 0
    assert issues_of(tmp_path / "crate") == []


def test_a_crate_without_a_date_is_not_valid_to_the_validator(crawled, tmp_path, issues_of):
    made(crawled, "one")
    assert crawled.run("snapshot export", "one", "--format", "ro-crate", "-o", "crate").returncode == 0
    file = tmp_path / "crate" / "ro-crate-metadata.json"
    metadata = json.loads(file.read_bytes())
    (root,) = (each for each in metadata["@graph"] if each["@id"] == "./")
    del root["datePublished"]
    file.write_text(json.dumps(metadata))
    assert any("datePublished" in each for each in issues_of(tmp_path / "crate"))


@pytest.mark.skipif(shutil.which("rapper") is None, reason="rapper is not installed; make nightly")
def test_the_n_quads_are_read_by_rapper(crawled):
    made(crawled)
    done = subprocess.run(
        ["rapper", "-q", "-c", "-i", "nquads", "-", "http://base.example/"],
        input=exported(crawled, forms=["nquads"])["nquads"], capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")


def test_graphs_have_a_digest_that_another_implementation_computes_too(crawled, site, tamias_at):
    site.pages["/c.ttl"] = b"@prefix : <http://v.example/> . _:a :n _:b . _:b :n _:a . [] :n [ :n [] ] ."
    site.pages["/a.ttl"] = b"<#a> <#says> '1'."  # PyLD ends lines at the U+0085 that was there
    assert crawled.run("add", site.url("/c.ttl")).returncode == 0
    assert crawled.crawl("--recrawl", *map(site.url, site.pages)).returncode == 0
    snapshot = made(crawled)
    shown = crawled.run("snapshot show", "one", "--rdfc", "--json")
    assert shown.returncode == 0, shown.stderr
    digest = json.loads(shown.stdout)["rdfc_1_0"]
    assert f"sha256:{digest}" in crawled.run("snapshot show", "one", "--rdfc").stdout
    graphs = zipfile.ZipFile(io.BytesIO(exported(crawled, forms=["bagit"])["bagit"])).read(
        "one/data/graphs.nq"
    )
    words = {"inputFormat": "application/n-quads", "format": "application/n-quads", "algorithm": "URDNA2015"}
    assert hashlib.sha256(jsonld.normalize(graphs.decode(), words).encode()).hexdigest() == digest
    other = tamias_at("other")
    assert other.run("add", *map(site.url, site.pages)).returncode == 0
    assert other.crawl("--recrawl").returncode == 0
    assert made(other)["manifest"] != snapshot["manifest"]
    assert json.loads(other.run("snapshot show", "one", "--rdfc", "--json").stdout)["rdfc_1_0"] == digest


def test_a_digest_that_cannot_be_computed_is_one_sentence(crawled, site):
    nodes = [f"_:n{number}" for number in range(20)]
    clique = "".join(f"{one} <http://v.example/n> {other} .\n" for one in nodes for other in nodes)
    site.pages["/c.nt"] = clique.encode()
    assert crawled.run("add", site.url("/c.nt")).returncode == 0
    assert crawled.crawl("--recrawl").returncode == 0
    made(crawled)
    done = crawled.run("snapshot show", "one", "--rdfc")
    assert (done.returncode, done.stdout) == (1, "")
    assert "RDFC-1.0" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert crawled.run("forget", site.url("/b.ttl"), "--reason", "wrong").returncode == 0
    done = crawled.run("snapshot show", "one", "--rdfc")
    assert done.returncode == 1
    assert "missing" in done.stderr
