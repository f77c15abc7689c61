"""Rows of versions of tables: values, filters, forms, limits, attacks, and that access rules hold."""

import csv
import io
import re
from urllib.parse import quote

import duckdb
import pytest

from tamias.features.rows import rows as module
from tamias.features.rows.filters import compile_filter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.tables.limits import ProfileLimits
from tamias.model.errors import UsageError

from .conftest import CSV
from .test_forgetting import forget
from .test_usage import say

URL = "http://rows.example/trees.csv"
ROWS = [
    ("name", "height", "planted", "native"),
    ("oak", 20.5, "1900-05-01", True),
    ('o\'ak "big"', 31, "1850-01-01", True),
    ("plane", 25, "2001-10-10", False),
    ("élm, wych", 12.25, "1999-12-31", True),
    ("", 3, None, None),
]
TREES = [dict(zip(ROWS[0], row, strict=True)) for row in ROWS[1:]]


def as_csv(rows):
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


@pytest.fixture(scope="module")
def trees(filled):
    first = as_csv([*ROWS[:2]])
    return filled.put(URL, first, as_csv(ROWS))


def asked(client, **words):
    answer = client.get("/api/v1/rows", params={"url": URL, **words})
    assert answer.status_code == 200, answer.text
    return answer


def names(client, **words):
    return [row["name"] for row in asked(client, **words).json()["rows"]]


def test_all_rows_have_their_values_and_types(client, trees):
    found = asked(client).json()
    assert found["rows"] == [*TREES[:4], {**TREES[4], "name": None}]
    assert (found["id"], found["version"], found["total"], found["next"]) == (trees, 2, 5, None)
    assert found["columns"] == {
        "name": "VARCHAR", "height": "DOUBLE", "planted": "DATE", "native": "BOOLEAN",
    }  # fmt: skip


def test_every_version_has_its_rows(client, trees):
    assert asked(client, version=1).json()["rows"] == TREES[:1]


def test_the_rows_of_each_version_are_those_of_its_bytes(client):
    for number in (1, 2, 3):
        body = client.get(f"/api/v1/get/file/{quote(CSV, safe='')}?version={number}").text
        rows = [
            {name: int(value) for name, value in row.items()} for row in csv.DictReader(io.StringIO(body))
        ]
        assert client.get("/api/v1/rows", params={"url": CSV, "version": number}).json()["rows"] == rows


@pytest.mark.parametrize(
    ("where", "places"),
    [("height > 20.5", {1, 2}), ("height >= 20.5 AND native = TRUE", {0, 1}), ("name = 'o''ak \"big\"'", {1}),
     ("NOT native = true", {2}), ("name ILIKE '%OAK%' OR name LIKE 'pl%'", {0, 2}), ("name IS NULL", {4}),
     ("height IN (12.25, 31)", {1, 3}), ("name NOT IN ('oak', 'plane')", {1, 3}),
     ("planted < '1900-01-01'", {1}),
     ('("name" = \'oak\' OR height=25) and planted IS NOT NULL', {0, 2}), ("name NOT LIKE '%a%'", {3}),
     ("height != 25", {0, 1, 3, 4}), ("name = 'true'", set()), ("height <> '25'", {0, 1, 3, 4})],
)  # fmt: skip
def test_a_filter_lets_the_rows_through_for_which_it_holds(client, trees, where, places):
    shown = [*TREES[:4], {**TREES[4], "name": None}]
    assert asked(client, where=where).json()["rows"] == [shown[place] for place in sorted(places)]


def test_rows_are_sorted_chosen_and_paged(client, trees):
    assert names(client, sort="height") == [None, "élm, wych", "oak", "plane", 'o\'ak "big"']
    assert names(client, sort="-name") == ["élm, wych", "plane", "oak", 'o\'ak "big"', None]
    first = asked(client, columns="height,name", limit=2).json()
    assert (list(first["rows"][0]), first["next"]) == (["height", "name"], 2)
    assert names(client, limit=2, offset=2) == ["plane", "élm, wych"]


def test_csv_and_parquet_have_the_same_rows(client, trees, tmp_path):
    text = asked(client, format="csv", where="height > 12.25").text
    assert list(csv.reader(io.StringIO(text))) == [
        list(ROWS[0]),
        ["oak", "20.5", "1900-05-01", "true"],
        ['o\'ak "big"', "31.0", "1850-01-01", "true"],
        ["plane", "25.0", "2001-10-10", "false"],
    ]
    (tmp_path / "rows.parquet").write_bytes(asked(client, format="parquet", where="height > 12.25").content)
    rows = duckdb.sql(
        f"SELECT name, height, planted::VARCHAR, native FROM '{tmp_path}/rows.parquet'"
    ).fetchall()
    assert rows == [(tree["name"], tree["height"], tree["planted"], tree["native"]) for tree in TREES[:3]]
    again = asked(client, format="parquet", where="height > 12.25").content
    assert again == (tmp_path / "rows.parquet").read_bytes()
    accepted = client.get("/api/v1/rows", params={"url": URL}, headers={"Accept": "text/csv"})
    assert accepted.headers["content-type"].startswith("text/csv")


ATTACKS = [
    "1=1", "true", "name", "name = name", "height > (SELECT 1)", "name IN (SELECT name FROM t)",
    "name = read_text('/etc/passwd')", "lower(name) = 'oak'", "name = 'oak'; DROP TABLE t", "name = 'oak' --",
    "name = 'oak' /* x */", "name = 'oak' UNION SELECT 1", "EXISTS (SELECT 1)", "name = $1", "name = ?",
    "name = 'a' || 'b'", "name::INT = 1", "t.name = 'oak'", "rowid = 1", "duckdb_settings() IS NULL",
    '"name"".x" = 1', "name = E'\\x41'", "name = 'oak' OR 1", "name LIKE name", "name = current_user",
    "[name] = 'oak'", "name = {a: 1}", "name = x'41'", "CASE WHEN true THEN name END = 'oak'",
    "name BETWEEN 1 AND 2",
    "name = 'unended", "(" * 40 + "name = 'a'" + ")" * 40, "NOT " * 40 + "name = 'a'",
    "name = 'a' AND", "()", ")", "name COLLATE x = 'a'", "name = DATE '2020-01-01'", "height > 'x'",
    "planted = 'never'", "native = 'perhaps'",
    "name = \x27a\x27\x00", "height IN ()", "x" * 2001,
]  # fmt: skip


@pytest.mark.parametrize("where", ATTACKS)
def test_what_is_no_filter_is_refused_in_words(client, trees, where):
    answer = client.get("/api/v1/rows", params={"url": URL, "where": where})
    detail = answer.json()["detail"] if answer.status_code != 200 else answer.json()["rows"]
    assert (answer.status_code, "Error" in detail and "Conversion" not in detail) == (400, False), detail
    assert len(names(client)) == 5


@pytest.mark.parametrize(
    "words",
    [{"sort": "name; DROP TABLE t"}, {"sort": "-nothing"}, {"columns": "name,(SELECT 1)"}, {"columns": "*"},
     {"limit": "0"}, {"limit": "1001"}, {"limit": "100001", "format": "csv"}, {"offset": "-1"},
     {"format": "xls"}, {"version": "x"}, {"url": ""}],
)  # fmt: skip
def test_what_is_asked_out_of_bounds_is_refused(client, trees, words):
    assert client.get("/api/v1/rows", params={"url": URL, **words}).status_code == 400


def test_columns_of_any_name_are_compared(client, filled):
    odd = ['a "b"', "select", "x'); DROP", "é ü", "2020"]
    filled.put("http://rows.example/odd.csv", as_csv([odd, [1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]))
    for place, name in enumerate(odd):
        where = '"' + name.replace('"', '""') + f'" = {place + 6}'
        answer = client.get(
            "/api/v1/rows",
            params={"url": "http://rows.example/odd.csv", "where": where, "sort": name, "columns": name},
        )
        assert answer.json()["rows"] == [{name: place + 6}], name


def test_a_filter_becomes_sql_of_columns_parameters_and_operators_only():
    for where in ("a = 'x' AND (b > 1 OR NOT a IN ('y', 'z')) AND a ILIKE '%q%' OR b IS NOT NULL",):
        sql, values = compile_filter(where, {"a": "VARCHAR", "b": "BIGINT"})
        rest = re.sub(
            r'"a"|"b"|CAST\(\? AS (VARCHAR|HUGEINT)\)|::VARCHAR|[=>(),]|\b(AND|OR|NOT|IN|ILIKE|IS|NULL)\b',
            "",
            sql,
        )
        assert (rest.split(), values) == ([], ["x", "1", "y", "z", "%q%"])


def test_what_is_no_table_or_too_large_is_refused(client, filled):
    filled.put("http://rows.example/page.html", b"<p>x", media_type="text/html")
    large = filled.put("http://rows.example/large.csv", b"a\n1\n")
    filled.run("UPDATE tamias.version SET byte_size = %s WHERE resource = %s", module.LARGEST + 1, large)
    answers = [
        client.get("/api/v1/rows", params={"url": f"http://rows.example/{name}"})
        for name in ("page.html", large)
    ]
    answers[1] = client.get("/api/v1/rows", params={"url": large})
    assert [each.status_code for each in answers] == [422, 422]
    assert client.get("/api/v1/rows", params={"url": "http://rows.example/absent.csv"}).status_code == 404
    assert client.get("/api/v1/rows", params={"url": URL, "version": 99}).status_code == 404


def test_a_question_that_takes_long_ends(filled, trees, monkeypatch):
    from tamias import Archive

    with Archive(filled.data) as archive:
        table = module.LoadedTable(archive.get(URL))
    monkeypatch.setattr(module, "ASKING", ProfileLimits(seconds=0.2))
    table.types = {"name": "VARCHAR"}
    table._rows.execute(
        "DROP TABLE t; CREATE VIEW t AS SELECT range::VARCHAR AS name, range AS rowid FROM range(10000000000)"
    )
    with pytest.raises(HttpProblem) as refused:
        table.select(module.RowsQuery(where="name LIKE '%b%c%'"))
    assert refused.value.status == 422


def test_what_is_withheld_has_rows_for_its_owner_only(client, writer, filled):
    url = "http://rows.example/shy.csv"
    name = filled.put(url, b"a\n1\n")
    say(filled, name, 1, "noarchive")
    answers = [
        each.get(path, params={"url": url}) for each in (client, writer) for path in ("/api/v1/rows", "/rows")
    ]
    assert [each.status_code for each in answers] == [403, 403, 200, 200]
    assert answers[2].json()["rows"] == [{"a": 1}]
    assert (
        "no-store" in answers[2].headers["cache-control"] or "private" in answers[2].headers["cache-control"]
    )
    assert client.get("/api/v1/rows", params={"url": url}).status_code == 403


def test_what_is_forgotten_has_no_rows_although_they_were_loaded(client, writer, filled):
    url = "http://rows.example/forgotten.csv"
    filled.put(url, b"a\n1\n", b"a\n2\n")
    assert [client.get("/api/v1/rows", params={"url": url, "version": n}).json()["rows"] for n in (1, 2)] == [
        [{"a": 1}], [{"a": 2}],
    ]  # fmt: skip
    assert forget(writer, url, version=1).status_code < 300
    statuses = [client.get("/api/v1/rows", params={"url": url, "version": n}).status_code for n in (1, 2)]
    assert statuses == [410, 200]
    assert forget(writer, url).status_code < 300
    answers = [client.get(path, params={"url": url}) for path in ("/api/v1/rows", "/rows")]
    assert [each.status_code for each in answers] == [410, 410]


def test_the_page_filters_sorts_and_shows_text_as_text(client, filled, trees):
    html = {"Accept": "text/html"}
    page = client.get(
        "/rows", params={"url": trees, "column": "name", "is": "contains", "value": "O'AK"}, headers=html
    )
    assert (page.status_code, "o&#39;ak" in page.text, "plane" in page.text) == (200, True, False)
    assert 'value="&#34;name&#34; ILIKE &#39;%O&#39;&#39;AK%&#39;"' in page.text
    wrong = client.get("/rows", params={"url": trees, "where": "lower(name) = 1"}, headers=html)
    assert (wrong.status_code, 'role="alert"' in wrong.text) == (200, True)
    hostile = filled.put(
        "http://rows.example/evil.csv", b"a,<script>alert(1)</script>\nx,<script>alert(2)</script>\n"
    )
    assert "<script>alert" not in client.get("/rows", params={"url": hostile}, headers=html).text
    assert f'href="/rows?url={trees}"' in client.get(f"/dataset/{trees}", headers=html).text


def test_a_deep_filter_is_refused_before_it_is_run():
    with pytest.raises(UsageError, match="nested"):
        compile_filter("(" * 31 + "a = 1" + ")" * 31, {"a": "BIGINT"})
