"""A table has the same charset, header, columns, types and rows whoever is asked for it."""

import gzip
import io
import json
import os
import subprocess
import sys
import zipfile
from datetime import date
from pathlib import Path

import duckdb
import msgspec
import pytest
from pyoxigraph import Literal

import tamias
from tamias.archive.reader.content import NoTable
from tamias.archive.versions.resources import read_resources, read_versions
from tamias.features.dcat.profiles import read_profile
from tamias.features.dcat.terms import CatalogueBases
from tamias.features.pages.jsonld import dataset_jsonld
from tamias.features.tables.chores import profile_some
from tamias.model.resource import resource_id
from tamias.model.url import url_key

EVERY = 1 if os.environ.get("TAMIAS_NIGHTLY") else 6
"""Of the real tables."""
PAGE = "060-3007.csv"
"""An HTML page among the tables."""
BASE = "http://data.example/"
TYPES = {
    "integer": "BIGINT", "gYear": "BIGINT", "decimal": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE",
    "dateTime": "TIMESTAMP", "time": "TIME",
}  # fmt: skip
CROISSANT = {
    "BIGINT": "sc:Integer", "DOUBLE": "sc:Float", "BOOLEAN": "sc:Boolean", "DATE": "sc:Date",
    "TIMESTAMP": "sc:DateTime", "TIME": "sc:Time", "VARCHAR": "sc:Text",
}  # fmt: skip
COLUMNS = """
    SELECT ?file ?name ?datatype ?encoding WHERE {
      ?table csvw:url ?file ; csvw:dialect/csvw:encoding ?encoding ; csvw:tableSchema/csvw:column ?column .
      ?column csvw:title ?name ; csvw:datatype ?datatype . FILTER(isLiteral(?datatype)) }
"""
CSVW = "http://www.w3.org/ns/csvw#"
VALIDATOR = Path(sys.prefix) / "csvw" / "bin" / "csvwvalidate"
UNKNOWN_FORMATS = {"006-characters.csv": "FAIL\nyyyy/MM/dd HH:mm:ss\n"}
"""A format that CSVW allows, and that this validator does not know."""
XSD = "http://www.w3.org/2001/XMLSchema#"
WORDS = {
    "windows-1251": "Город;Число;Дата;Доля\nМосква;12000000;01.02.2020;1,5\nКазань;12;02.03.2021;NA\n",  # noqa: RUF001
    "windows-1250": "Seznam obcí\n\nObec;Počet;Žádost\nPlzeň;12;ano\nÚstí nad Labem;7;ne\nŽďár;3;ano\n",
    "mac-cyrillic": "Город;Число;Дата;Доля\nМосква;12000000;01.02.2020;1,5\nКазань;12;02.03.2021;NA\n",  # noqa: RUF001
    "cp852": "Obec;Počet;Žádost\nPlzeň;12;ano\nÚstí nad Labem;7;ne\nŽďár;3;ano\n",
    "cp857": "Şehir;Nüfus\nİstanbul;15\nAğrı;1\nIğdır;2\nMuğla;3\n",  # noqa: RUF001
    "windows-1254": "Şehir;Nüfus\nİstanbul;15\nAğrı;1\nIğdır;2\nMuğla;3\n",  # noqa: RUF001
}


def types_of(table):
    return [TYPES.get(column.read_as, "VARCHAR") for column in table.columns]


def croissant_fields(session, name, profile):
    """The columns that the JSON-LD of a dataset's page has for Croissant, which knows one dialect only."""
    [resource], versions = read_resources(session, [name]), read_versions(session, [name])[name]
    found = dataset_jsonld(resource, versions, profile, CatalogueBases())
    fields = (field for records in found.get("recordSet", ()) for field in records["field"])
    return [(field["description"], field["dataType"]) for field in fields]


def count_current(history):
    """Return how many rows of a history are in the newest version."""
    return len(duckdb.from_arrow(history).filter("valid_to IS NULL"))


def truth(archive, filled, url):
    """What each way of asking says of the columns of a table, and how many rows there are."""
    content = archive.get(url)
    found = read_profile(filled.session, content.version.sha256)
    [table] = found.tables
    expected = [column.name for column in table.columns]
    rows, history = content.table(), archive.history(url)
    changed = archive.diff(url, 1, 2)
    shown = {name for change in changed.changes for name in (change.new or change.old or {})}
    plain = msgspec.structs.replace(table, header=True, delimiter=",", encoding="utf-8", skipped=0)
    is_plain, name = plain == table, resource_id(url_key(url))
    asked = {
        "table": (rows.columns, rows.types, len(rows)),
        "history": (history.columns[:-2], history.types[:-2], count_current(history)),
        "diff": (changed.kind, shown - {*expected}),
        "text": content.text().startswith("\ufffd"),
        "croissant": croissant_fields(filled.session, name, msgspec.structs.replace(found, tables=(plain,))),
        "croissant of another dialect": [] if is_plain else croissant_fields(filled.session, name, found),
    }
    told = {
        "table": (expected, types_of(table), table.rows),
        "history": (expected, types_of(table), table.rows),
        "diff": ("rows", set()),
        "text": False,
        "croissant": list(zip(expected, map(CROISSANT.__getitem__, types_of(table)), strict=True)),
        "croissant of another dialect": [],
    }
    return asked, told


@pytest.fixture
def real_tables(filled, suites):
    """Each real table twice: the second version lacks its last line."""
    paths = sorted(path for path in suites("real-csv-samples").rglob("*.*sv") if path.is_file())
    for path in paths[:43:EVERY]:
        whole = path.read_bytes()
        end = whole.rstrip(b"\r\n\0").rfind(b"\n\0" if b"\0" in whole else b"\n")
        if path.name != PAGE and end > 0:
            filled.put(f"{BASE}{path.name}", whole[:end] + b"\n", whole, declared_type="text/csv")
    while profile_some(filled.session, filled.writer.reader):
        pass
    with tamias.Archive(filled.data) as archive:
        yield archive


def test_real_tables_are_the_same_in_profile_table_history_diff_text_and_croissant(real_tables, filled):
    wrong, count = {}, 0
    for resource in real_tables.resources():
        asked, told = truth(real_tables, filled, resource.url)
        count += 1
        if asked != told:
            wrong[resource.url] = {
                name: (asked[name], told[name]) for name in told if asked[name] != told[name]
            }
    assert (count >= 40 // EVERY, wrong) == (True, {})


def metadata_of(statements, file):
    """The CSVW of the catalogue about a file, in the JSON that the standard's context makes of it."""
    nodes = {}
    for subject, predicate, value in statements:
        if subject.value.partition("#")[0] == file:
            nodes.setdefault(subject, {}).setdefault(predicate.value.removeprefix(CSVW), []).append(value)

    def written(node):
        told = {}
        for name, values in nodes[node].items():
            if name == "column":
                ordered = sorted(values, key=lambda each: int(each.value.rpartition("#")[2]))
                told["columns"] = [written(each) for each in ordered]
            elif name == "null":
                told["null"] = [each.value for each in values]
            elif name == "datatype":
                own = [each for each in values if each in nodes]
                [short] = (each for each in values if isinstance(each, Literal))
                told["datatype"] = written(own[0]) if own else short.value
            else:
                [value] = values
                told["titles" if name == "title" else name] = (
                    written(value) if value in nodes else literal(value)
                )
        return told

    def literal(value):
        is_json = isinstance(value, Literal) and value.datatype.value != f"{XSD}string"
        return json.loads(value.value) if is_json else value.value

    [table] = (each for each, told in nodes.items() if "tableSchema" in told)
    return {"@context": CSVW.rstrip("#"), **written(table)}


def complaint(told, name, content, folder):
    """What csvwvalidate says against a file with this metadata; None if it takes it."""
    (folder / name).write_bytes(content)
    (folder / "metadata.json").write_text(json.dumps(told | {"url": name}))
    done = subprocess.run(
        [VALIDATOR, "--verbose", "metadata.json"], cwd=folder, check=False, capture_output=True, text=True
    )
    return done.stdout[:500] if done.returncode else None


@pytest.mark.nightly
@pytest.mark.skipif(not VALIDATOR.exists(), reason="csvwvalidate is not there; make nightly")
def test_forty_real_tables_have_csvw_that_csvwvalidate_takes(real_tables, tmp_path):
    query = f'SELECT * WHERE {{ ?s ?p ?o FILTER(STRSTARTS(STR(?p), "{CSVW}")) }}'
    statements = [(row["s"], row["p"], row["o"]) for row in real_tables.query(query)]
    said = {}
    for resource in real_tables.resources():
        file = CatalogueBases().file(real_tables.versions(resource.url)[-1]).value
        name = resource.url.rpartition("/")[2]
        content = real_tables.get(resource.url).bytes()
        said[name] = complaint(metadata_of(statements, file), name, content, tmp_path)
    assert len(said) >= 40
    assert {name: each for name, each in said.items() if each} == UNKNOWN_FORMATS


@pytest.mark.parametrize("charset", WORDS)
def test_a_table_without_a_declared_charset_reads_right_everywhere(filled, charset):
    url, text = f"{BASE}a.csv", WORDS[charset]
    before = text.rpartition("\n")[0].rpartition("\n")[0] + "\n"
    filled.put(url, before.encode(charset), text.encode(charset), declared_type="text/csv")
    while profile_some(filled.session, filled.writer.reader):
        pass
    with tamias.Archive(filled.data) as archive:
        asked, told = truth(archive, filled, url)
        assert asked == told
        assert archive.get(url).text() == text
        header = text.split("\n\n")[-1].partition("\n")[0].split(";")
        assert archive.get(url).table().columns == header
        [change] = archive.diff(url, key=header[0]).changes
        assert change.where == text.rstrip("\n").rpartition("\n")[2].split(";")[0]
        file = CatalogueBases().file(archive.versions(url)[-1])
        described = {
            (row["name"].value, row["datatype"].value, row["encoding"].value)
            for row in archive.query(COLUMNS)
            if row["file"] == file
        }
        [table] = read_profile(filled.session, archive.get(url).version.sha256).tables
        assert described == {(each.name, each.read_as, table.encoding) for each in table.columns}


def zipped(text):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("readme.txt", "a;b")
        archive.writestr("a.csv", text)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("pack", "media_type"), [(gzip.compress, "application/gzip"), (zipped, "application/zip")]
)
def test_a_packed_table_has_the_columns_types_and_rows_of_its_profile(filled, pack, media_type):
    lines = WORDS["windows-1251"].splitlines(keepends=True)
    bodies = [pack("".join(some).encode("windows-1251")) for some in (lines[:-1], lines)]
    name = filled.put(f"{BASE}a", *bodies, media_type=media_type)
    while profile_some(filled.session, filled.writer.reader):
        pass
    with tamias.Archive(filled.data) as archive:
        [table] = read_profile(filled.session, archive.get(name).version.sha256).tables
        rows, history = archive.get(name).table(), archive.history(name)
    expected = ([column.name for column in table.columns], types_of(table), table.rows)
    assert (rows.columns, rows.types, len(rows)) == expected
    assert (history.columns[:-2], history.types[:-2], count_current(history)) == expected
    moscow = ("Москва", 12_000_000, date(2020, 2, 1), 1.5)
    assert duckdb.from_arrow(rows).fetchall() == [moscow, ("Казань", 12, date(2021, 3, 2), None)]


def test_what_is_packed_and_is_no_table_is_refused(filled):
    filled.put(f"{BASE}a", gzip.compress(gzip.compress(b"a,b\n1,2\n")), media_type="application/gzip")
    filled.put(f"{BASE}b", gzip.compress(b"a,b\n1,2\n")[:-9], media_type="application/gzip")
    with tamias.Archive(filled.data) as archive:
        for name in "ab":
            with pytest.raises(NoTable):
                archive.get(f"{BASE}{name}").table()


def test_a_table_of_many_columns_is_read_without_a_word_on_the_screen(filled, capfd):
    """The optimizer of DuckDB needed more than its memory; its bar is on the screen after two seconds."""
    table = [[f"c{number}" for number in range(300)], *([str(row)] * 300 for row in range(5))]
    filled.put(f"{BASE}a", "\n".join(map(",".join, table)).encode())
    with tamias.Archive(filled.data) as archive:
        rows = archive.get(f"{BASE}a").table()
    assert (rows.types, len(rows), capfd.readouterr()) == (["BIGINT"] * 300, 5, ("", ""))


@pytest.mark.parametrize("ending", ["xlsx", "ods"])
def test_a_workbook_has_a_table_and_a_history(filled, ending):
    from tests.workbook_files import ODS, ods, xlsx

    make, media_type = {
        "xlsx": (xlsx, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        "ods": (ods, ODS),
    }[ending]
    versions = [[["id", "name"], ["1", "one"]], [["id", "name"], ["1", "one"], ["2", "two"]]]
    filled.put(f"{BASE}a", *(make({"Sheet": rows}) for rows in versions), media_type=media_type)
    with tamias.Archive(filled.data) as archive:
        rows, history = archive.get(f"{BASE}a").table(), archive.history(f"{BASE}a")
    assert duckdb.from_arrow(rows).fetchall() == [(1, "one"), (2, "two")]
    found = duckdb.from_arrow(history).project("id, name, valid_from::DATE::VARCHAR, valid_to")
    assert found.order("id").fetchall() == [(1, "one", "2026-01-01", None), (2, "two", "2026-01-02", None)]


def test_parquet_is_compared_by_rows(filled, tmp_path):
    bodies = []
    for count in (3, 4):
        duckdb.sql(f"COPY (SELECT range AS id FROM range({count})) TO '{tmp_path / 'n.parquet'}'")
        bodies.append((tmp_path / "n.parquet").read_bytes())
    filled.put(f"{BASE}n", *bodies, media_type="application/vnd.apache.parquet")
    with tamias.Archive(filled.data) as archive:
        found = archive.diff(f"{BASE}n", key="id")
    assert (found.kind, found.added, [each.where for each in found.changes]) == ("rows", 1, ["3"])
