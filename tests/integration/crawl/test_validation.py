"""Tables are checked against the schemas next to them, and histories say what broke them."""

import json
from contextlib import closing

import pytest

from tamias.database.connect import Database

GOOD = b"date,amount\n2026-05-01,1\n2026-05-02,2\n"
BAD = GOOD + b"soon,3\n"
FIELDS = [{"name": "date", "type": "date"}, {"name": "amount", "type": "integer"}]
CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "url": "a.csv",
    "tableSchema": {
        "columns": [
            {"titles": each["name"], "name": each["name"], "datatype": each["type"]} for each in FIELDS
        ],
        "primaryKey": "date",
    },
}
SCHEMAS = {
    "/d/datapackage.json": {
        "name": "x",
        "resources": [{"name": "a", "path": "a.csv", "schema": {"fields": FIELDS}}],
    },
    "/d/a.schema.json": {"fields": FIELDS},
    "/d/a.csv-metadata.json": CSVW,
    "/d/csv-metadata.json": {
        "@context": CSVW["@context"],
        "tables": [{name: CSVW[name] for name in ("url", "tableSchema")}],
    },
}


@pytest.fixture
def watch(tamias, site, reply):
    """`watch({path: content})` watches pages and visits them; those that are watched already, too."""

    def visit(pages):
        for path, content in pages.items():
            text = content if isinstance(content, bytes) else json.dumps(content).encode()
            kind = "text/csv" if path.endswith(".csv") else "application/json"
            site.pages[path] = reply(200, text, Content_Type=kind)
        urls = [site.url(path) for path in pages]
        assert tamias.run("add", *urls).returncode == 0
        done = tamias.crawl("--recrawl", *urls)
        assert done.returncode == 0, done.stderr

    return visit


def notes(tamias, site, path="/d/a.csv"):
    done = tamias.run("versions", site.url(path), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return [each.get("notes", []) for each in found]


@pytest.mark.parametrize("path", SCHEMAS)
def test_a_version_that_breaks_its_schema_is_named_with_day_column_and_row(tamias, site, watch, path):
    watch({path: SCHEMAS[path], "/d/a.csv": GOOD})
    assert notes(tamias, site) == [[]]
    watch({"/d/a.csv": BAD})
    [[], [note]] = notes(tamias, site)
    day = json.loads(tamias.run("versions", site.url("/d/a.csv"), "--json").stdout)[1]["captured_at"][:10]
    assert note.startswith(f"broke its schema on {day}: column date, row 4: "), note
    assert note.endswith(f"({site.url(path)})")
    assert note in tamias.run("versions", site.url("/d/a.csv")).stdout
    [row] = json.loads(tamias.run("list", "--trouble", "--json").stdout)
    assert (row["url"], row["trouble"]) == (site.url("/d/a.csv"), note)
    watch({"/d/a.csv": GOOD + b"2026-05-03,3\n"})
    assert notes(tamias, site) == [[], [note], []]
    assert json.loads(tamias.run("list", "--trouble", "--json").stdout) == []


def test_a_table_is_checked_against_the_schema_of_its_time(tamias, site, watch):
    watch({"/d/datapackage.json": SCHEMAS["/d/datapackage.json"], "/d/a.csv": GOOD})
    other = {"resources": [{"path": "a.csv", "schema": {"fields": [{"name": "day"}, {"name": "amount"}]}}]}
    watch({"/d/datapackage.json": other})
    watch({"/d/a.csv": GOOD + b"2026-05-03,3\n"})
    [[], [note]] = notes(tamias, site)
    assert "column day" in note


def test_a_schema_that_comes_later_is_for_earlier_versions_too(tamias, site, watch):
    watch({"/d/a.csv": GOOD})
    watch({"/d/a.csv": BAD})
    assert notes(tamias, site) == [[], []]
    watch({"/d/a.csv-metadata.json": CSVW})
    assert [len(each) for each in notes(tamias, site)] == [0, 1]


def test_a_schema_may_be_a_file_of_its_own(tamias, site, watch):
    package = {"resources": [{"path": "a.csv", "schema": "fields.json"}]}
    watch({"/d/datapackage.json": package, "/d/fields.json": {"fields": FIELDS}, "/d/a.csv": BAD})
    [[note]] = notes(tamias, site)
    assert "column date, row 4" in note


def test_a_schema_that_is_missing_or_refused_is_no_verdict(tamias, site, watch):
    watch({"/d/datapackage.json": {"resources": [{"path": "a.csv", "schema": "no.json"}]}, "/d/a.csv": BAD})
    [[note]] = notes(tamias, site)
    assert note.startswith("not checked: ")
    wrong = {"resources": [{"path": "b.csv", "schema": {"fields": [{"name": "date", "type": "nonsense"}]}}]}
    watch({"/e/datapackage.json": wrong, "/e/b.csv": BAD})
    [[note]] = notes(tamias, site, "/e/b.csv")
    assert note.startswith("not checked: ")
    assert json.loads(tamias.run("list", "--trouble", "--json").stdout) == []


def test_a_file_says_nothing_of_tables_that_are_not_next_to_it(tamias, site, watch):
    paths = ["../d/a.csv", "/d/a.csv", site.url("/d/a.csv")]
    strangers = {"resources": [{"path": path, "schema": {"fields": FIELDS[:1]}} for path in paths]}
    watch({"/e/datapackage.json": strangers, "/d/a.csv": GOOD})
    assert notes(tamias, site) == [[]]


def test_what_was_forgotten_is_in_no_note(tamias, site, watch):
    watch({"/d/datapackage.json": SCHEMAS["/d/datapackage.json"], "/d/a.csv": GOOD})
    watch({"/d/a.csv": GOOD + b"a secret,3\n"})
    watch({"/d/a.csv": BAD})
    assert [len(each) for each in notes(tamias, site)] == [0, 1, 1]
    done = tamias.run("forget", site.url("/d/a.csv"), "--version", "2", "--reason", "wrong")
    assert done.returncode == 0, done.stderr
    assert [len(each) for each in notes(tamias, site)] == [0, 1]
    assert b"a secret" not in stored(tamias)
    assert tamias.run("forget", site.url("/d/datapackage.json"), "--reason", "wrong").returncode == 0
    assert notes(tamias, site) == [[], []]
    assert tamias.crawl("--recrawl", site.url("/d/a.csv")).returncode == 0
    assert notes(tamias, site) == [[], []]
    assert tamias.run("check").returncode == 0


def stored(tamias):
    """What the database has in the table of checks."""
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        return repr(session.fetch_all(b"SELECT faults::text FROM schema_check")).encode()


def test_an_imported_and_a_restored_version_are_checked_like_others(tamias, site, watch, tamias_at):
    watch({"/d/datapackage.json": SCHEMAS["/d/datapackage.json"], "/d/a.csv": BAD})
    [[note]] = notes(tamias, site)
    folder = str(tamias.data.parent / "backup")
    assert tamias.run("backup", folder).returncode == 0
    tamias.end()
    copy = tamias_at("restored")
    assert copy.run("restore", folder).returncode == 0
    assert notes(copy, site) == [[note]]


def test_hostile_schemas_and_tables_end_with_a_sentence(tamias, site, watch):
    endless = {"name": "date", "type": "string", "constraints": {"pattern": "(a+)+$"}}
    fields = {"fields": [endless, {"name": "amount", "type": "string"}]}
    secret = tamias.data.parent / "secret.csv"
    secret.write_bytes(b"secret\nvalue\n")
    pages = {
        "/d/datapackage.json": {"resources": [{"path": "a.csv", "schema": fields}]},
        "/d/a.csv": b"date,amount\n" + b"a" * 40 + b"!,1\n",
        "/e/datapackage.json": {"resources": [{"path": "b.csv", "schema": str(secret)}]},
        "/e/b.csv": GOOD,
        "/f/datapackage.json": b'{"resources": ' + b"[" * 100_000,
        "/f/c.csv": GOOD,
        "/g/d.csv-metadata.json": {
            **CSVW,
            "url": "d.csv",
            "@context": [CSVW["@context"], {"@base": str(secret)}],
        },
        "/g/d.csv": BAD,
        "/h/a.schema.json": {
            "fields": [{"name": "date", "type": "date", "constraints": {"enum": secret.as_uri()}}]
        },
        "/h/a.csv": GOOD,
    }
    watch(pages)
    assert notes(tamias, site, "/d/a.csv")[0][0].startswith("not checked: ")
    assert notes(tamias, site, "/e/b.csv")[0][0].startswith("not checked: ")
    assert notes(tamias, site, "/f/c.csv") == [[]]
    assert "column date, row 4" in notes(tamias, site, "/g/d.csv")[0][0]
    everything = "".join(tamias.run("versions", site.url(path)).stdout for path in pages)
    assert "secret" not in everything.replace(str(secret), "")


def test_schemas_are_looked_for_where_it_is_set(tamias, site, watch):
    tamias.env["TAMIAS_VALIDATION__LOOK"] = "true"
    site.pages["/d/datapackage.json"] = json.dumps(SCHEMAS["/d/datapackage.json"]).encode()
    watch({"/d/a.csv": BAD})
    assert tamias.crawl("--recrawl").returncode == 0
    assert tamias.crawl("--recrawl").returncode == 0
    [[note]] = notes(tamias, site)
    assert note.endswith(f"({site.url('/d/datapackage.json')})")
    listed = {each["url"]: each["state"] for each in json.loads(tamias.run("list", "--json").stdout)}
    assert listed[site.url("/d/datapackage.json")] == "active"
    assert listed[site.url("/d/csv-metadata.json")] == "stopped"
    before = [path for path, _ in site.log].count("/d/csv-metadata.json")
    assert tamias.crawl("--recrawl").returncode == 0
    assert [path for path, _ in site.log].count("/d/csv-metadata.json") == before == 1
