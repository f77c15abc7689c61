"""The pages as a browser gets them."""

import hashlib
import re
import time
from pathlib import Path
from xml.etree import ElementTree

import httpx
import msgspec
import pytest

from tamias.archive.versions.resources import add_suspects
from tamias.features.dcat.profiles import keep_profiles
from tamias.features.quality.metrics import measure_resources
from tamias.features.tables.body import profile
from tamias.frontier.keys import bucket_of, host_hash
from tamias.model.capture import new_capture_id
from tamias.model.resource import Source, Version
from tamias.permit.robots import parse
from tests.messages import unsaid

SECRET = "open sesame"
CSV = "http://data.example/a.csv"
PORTAL = "http://portal.example/"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
HOSTILE = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


@pytest.fixture(scope="module")
def numbers(client):
    """The id of the resource with three versions."""
    return client.get(f"/api/v1/get/dataset/{CSV}").json()["id"]


@pytest.fixture(scope="module")
def hostile(filled):
    """The id of a resource of which every word is an attack."""
    url = "http://evil.example/%3Cscript%3E.csv"
    contents = f'a,"{HOSTILE}"\n1,{HOSTILE}\n', f'a,"{HOSTILE}"\n1,{HOSTILE}2\n'
    return filled.put(url, *(each.encode() for each in contents), title=HOSTILE)


@pytest.mark.parametrize(
    "path", ["/", "/search", "/search?q=numbers", "/dataset/{id}", "/dataset/{id}/diff", "/host/data.example",
             "/hosts", "/portals", "/portal?url=http://portal.example/", "/frontier", "/crawl/default",
             "/documents", "/graph", "/add", "/snapshots",
             "/api"],
)  # fmt: skip
def test_every_page_is_html_with_a_strict_policy(client, numbers, path):
    answer = client.get(path.format(id=numbers), headers=BROWSER)
    told = (answer.status_code, answer.headers["content-type"], answer.headers["content-security-policy"])
    assert told == (
        200,
        "text/html; charset=utf-8",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    )


@pytest.mark.parametrize(
    ("page", "data"),
    [
        ("/", "/overview.json"),
        ("/search?q=numbers", "/search.json?q=numbers"),
        ("/dataset/{id}", "/dataset/{id}.json"),
        ("/dataset/{id}/diff?a=1&b=3", "/dataset/{id}/diff.json?a=1&b=3"),
        ("/host/data.example", "/host/data.example.json"),
        ("/query", "/query.json"),
        ("/hosts", "/hosts.json"),
        ("/portals", "/portals.json"),
        ("/portal?url=http://portal.example/", "/portal.json?url=http://portal.example/"),
        ("/frontier", "/frontier.json"),
        ("/crawl/default", "/crawl/default.json"),
        ("/documents", "/documents.json"),
        ("/graph", "/graph.json"),
        ("/snapshots", "/snapshots.json"),
        ("/dataset/{id}/preview?version=2", "/dataset/{id}/preview.json?version=2"),
        ("/dataset/{id}/2", "/dataset/{id}/2.json"),
        ("/api", "/openapi.json"),
    ],
)
def test_every_page_links_to_its_data_as_json(client, numbers, page, data):
    page, data = page.format(id=numbers), data.format(id=numbers)
    assert f'href="{data.replace("&", "&amp;")}">This page as JSON' in client.get(page).text
    answer = client.get(data)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")


def test_a_search_finds_by_title_address_and_host(client, numbers):
    found = [client.get("/search.json", params={"q": words}).json()["hits"] for words in
             ("nUmBers", "a.csv data.example", "100% numbers")]  # fmt: skip
    assert [[hit["id"] for hit in hits] for hits in found] == [[numbers], [numbers], []]


def test_the_page_of_a_dataset_leads_to_each_version(client, numbers):
    rows = client.get(f"/dataset/{numbers}.json").json()["versions"]
    got = [[client.get(row[way]).content for way in ("download", "memento")] for row in rows]
    assert got == [[b"a,b\n1,4\n5,6\n"] * 2, [b"a,b\n1,3\n"] * 2, [b"a,b\n1,2\n"] * 2]


def test_the_page_of_a_version_tells_what_it_is_and_what_changed(client, numbers):
    told = client.get(f"/dataset/{numbers}/3.json").json()
    asked = {name: told[name] for name in ("number", "newest", "byte_size", "media_type", "grown", "changed")}
    assert asked == {
        "number": 3, "newest": 3, "byte_size": 12, "media_type": "text/csv", "grown": 4,
        "changed": {"kind": "rows", "added": 1, "removed": 0, "changed": 1},
    }  # fmt: skip
    assert told["sha256"] == hashlib.sha256(b"a,b\n1,4\n5,6\n").hexdigest()


def test_the_page_of_a_version_leads_to_its_bytes_and_to_the_versions_around_it(client, numbers):
    text = client.get(f"/dataset/{numbers}/2").text
    ways = re.findall(r'<a class="button[^"]*"[^>]* href="([^"]+)"', text)
    assert ways[:2] == [f"/dataset/{numbers}/1", f"/dataset/{numbers}/3"]
    assert [client.get(way).content for way in ways[2:4]] == [b"a,b\n1,3\n"] * 2
    assert client.get(ways[4].replace("&amp;", "&")).status_code == 200


def test_the_first_version_is_compared_with_none(client, numbers):
    told = client.get(f"/dataset/{numbers}/1.json").json()
    assert (told["grown"], told["changed"], told["compare"]) == (None, None, None)


@pytest.mark.parametrize("number", ["0", "4", "9" * 30, "9" * 5000, "1234567890x"])
def test_a_version_that_is_not_there_has_no_page(client, numbers, number):
    assert client.get(f"/dataset/{numbers}/{number}").status_code == 404
    assert client.get(f"/api/v1/get/file/id/{numbers}_{number}").status_code in (400, 404)


def test_the_page_of_a_difference_shows_both_values(client, numbers):
    text = client.get(f"/dataset/{numbers}/diff?a=1&b=2").text
    sides = [f'<td class="{side}"><dl><dt>b</dt><dd><{tag}>{value}</{tag}></dd></dl></td>'
             for side, tag, value in (("old", "del", 2), ("new", "ins", 3))]  # fmt: skip
    assert "".join(sides) in text


@pytest.fixture(scope="module")
def known(filled, tmp_path_factory):
    """The id of a resource of which all is known that can be."""
    url, content = "http://known.example/full.csv", f"when,{HOSTILE}\n2026-01-01,1\n2026-01-02,2\n".encode()
    name = filled.put(url, content, expected="text/csv")
    folder = tmp_path_factory.mktemp("known")
    Path(folder, "full.csv").write_bytes(content)
    found = profile(folder / "full.csv", media_type="text/csv", declared_type=None, name=url, scratch=folder)
    [(digest,)] = filled.rows("SELECT sha256 FROM version WHERE resource = %b", name)
    keep_profiles(filled.session, {digest.hex(): found}, 0)
    lie = Version(
        resource=name, captured_at=1, sha256=digest.hex(), byte_size=7, media_type="text/html",
        declared_type=None, fingerprint=None, noise=None, capture=str(new_capture_id(1)),
    )  # fmt: skip
    filled.session.transact(lambda cursor: add_suspects(cursor, [(lie, f"a lie: {HOSTILE}")]))
    measure_resources(filled.session)
    filled.run("UPDATE resource SET change_rate = 0.5, visited_at = 1, next_visit = 172800001"
               " WHERE resource = %b", name)  # fmt: skip
    return name


@pytest.mark.parametrize(
    "said",
    ["every 2 days", "The next visit is 2 days after the last", "full.csv: 2 rows, 2 columns", "<td>date",
     f"a lie: {ESCAPED}", "Format (accuracy)", f'<th scope="row">{ESCAPED}</th>'],
)  # fmt: skip
def test_the_page_of_a_dataset_tells_all_that_is_known(client, known, said):
    text = client.get(f"/dataset/{known}").text
    assert (said in text, HOSTILE in text) == (True, False)


def test_the_page_of_a_host_tells_how_it_is_asked(client, writer, filled):
    writer.post("/api/v1/post/resource", json={"url": "http://polite.example/a.csv"})
    qid = host_hash("polite.example")
    rules = parse(f"User-agent: *\nCrawl-delay: 7\nDisallow: /{HOSTILE}\n".encode())
    [(buckets,)] = filled.rows("SELECT buckets FROM meta")
    filled.run("INSERT INTO robots (bucket, qid, authority, fetched_at, expires_at, status, rules)"
               " VALUES (%b::int2, %b::int8, 'http://polite.example:80', 0, 0, 200::int2, %b)",
               bucket_of(qid, buckets), qid, msgspec.msgpack.encode(rules))  # fmt: skip
    text = client.get("/host/polite.example").text
    wanted = ("Seconds between requests", "7 seconds", f"Disallow: /{ESCAPED}", "Addresses known</dt><dd>1<")
    assert [each for each in wanted if each not in text] == []


@pytest.mark.parametrize(
    "path", ["/search?q=evil", "/dataset/{id}", "/dataset/{id}/diff", "/host/evil.example"]
)
def test_crawled_text_is_escaped(client, hostile, path):
    text = client.get(path.format(id=hostile)).text
    assert (ESCAPED in text, HOSTILE in text) == (True, False)


def test_the_overview_tells_of_the_crawl_and_escapes_what_came(filled, tmp_path, starting):
    other = type(filled)(tmp_path / "data")
    other.put("http://evil.example/a.csv", b"a\n", media_type=f"text/{HOSTILE}", title=HOSTILE)
    other.close()
    address, deadline = starting(tmp_path / "data").address, time.monotonic() + 60
    while "Workers" not in (text := httpx.get(f"{address}/").text) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [text.count(each) for each in ("Workers", ESCAPED, HOSTILE)] == [1, 2, 0]


def test_an_address_that_is_no_web_address_is_no_link(client, filled):
    sources = (Source(source="javascript:alert(1)", portal="javascript:alert(2)"),)
    name = filled.put("http://evil.example/sourced.csv", b"a\n", sources=sources)
    text = client.get(f"/dataset/{name}").text
    assert ("javascript:alert(1)" in text, 'href="javascript' in text) == (True, False)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/dataset/" + 24 * "0", 404), ("/dataset/x", 404), ("/dataset/{id}/diff?a=9", 404), ("/nowhere", 404),
     ("/host/absent.example", 404), ("/dataset/{id}/diff?a=x", 400), ("/search?q=" + 300 * "x", 400),
     ("/host/data.example?cursor=x", 400), ("/search?q=%00", 400), ("/query/send?query=a&get=x", 400)],
)  # fmt: skip
def test_an_error_is_a_page_for_a_browser_and_a_problem_document_for_others(client, numbers, path, status):
    path = path.format(id=numbers)
    answers = [client.get(path, headers=headers) for headers in (BROWSER, {"Accept": "application/json"})]
    assert [(each.status_code, each.headers["content-type"]) for each in answers] == [
        (status, "text/html; charset=utf-8"),
        (status, "application/problem+json"),
    ]


@pytest.mark.parametrize("told", [{}, {"secret": ""}, {"secret": "wrong"}, {"secret": "wröng"}])
def test_the_form_adds_nothing_without_the_secret(client, told):
    url = "http://added.example/unsecret.csv"
    answer = client.post("/add", data={"url": url, **told})
    assert (answer.status_code, client.get("/search.json?q=unsecret.csv").json()["hits"]) == (403, [])


def test_the_form_puts_an_address_under_watch(client):
    form = {"url": "http://added.example/b.csv", "title": HOSTILE, "format": "csv", "secret": SECRET}
    answers = [client.post("/add", data=form).status_code for _ in range(2)]
    (hit,) = client.get("/search.json?q=added.example/b.csv").json()["hits"]
    assert (answers, hit["title"]) == ([201, 200], HOSTILE)


def test_the_form_never_shows_the_secret_again(client):
    answer = client.post("/add", data={"url": "no url", "secret": SECRET})
    assert (answer.status_code, SECRET in answer.text, 'value="no url"' in answer.text) == (422, False, True)


def test_a_body_that_is_no_form_is_refused(client):
    assert client.post("/add", json={"url": "http://added.example/c.csv"}).status_code == 415


def test_a_query_is_led_to_the_endpoint_to_its_files_or_to_its_feed(client):
    led = [client.get("/query/send", params={"query": "ASK {}", "get": goal}).headers["location"]
           for goal in ("answer", "files", "feed")]  # fmt: skip
    asked = "ASK+%7B%7D"
    assert led == [f"/sparql?query={asked}", f"/api/v1/get/files/sparql?q={asked}", f"/feed?sparql={asked}"]


@pytest.mark.parametrize(("name", "kind"), [("style.css", "text/css"), ("tamias.js", "text/javascript")])
def test_what_pages_load_is_served_under_a_name_that_changes_with_it(client, name, kind):
    (address,) = re.findall(rf'"(/static/{name}\?v=[0-9a-f]+)"', client.get("/").text)
    answer = client.get(address)
    told = answer.headers["content-type"], answer.headers["cache-control"]
    assert told == (f"{kind}; charset=utf-8", "public, max-age=31536000, immutable")


def test_nothing_else_is_served_beside_it(client):
    assert client.get("/static/..%2fpage.py").status_code == 404


def test_the_columns_of_a_table_are_found(client, known):
    (hit,) = client.get("/search.json?q=whe+known").json()["hits"]
    assert (hit["id"], hit["columns"]) == (known, ["when"])


def test_a_new_title_is_found(client, filled):
    name = filled.put("http://titled.example/a.csv", b"a\n")
    filled.run("UPDATE resource SET title = 'Acorns of O''Brien\\' WHERE resource = %b", name)
    found = [
        client.get("/search.json", params={"q": words}).json()["hits"] for words in ("o'brien\\", "acor")
    ]
    assert [[hit["id"] for hit in hits] for hits in found] == [[name], [name]]


@pytest.mark.parametrize("words", ["' & !", "a:*", "\\", "!!", "%", "<->", "日本 ü"])
def test_signs_in_a_search_are_no_operators(client, words):
    assert client.get("/search.json", params={"q": words}).status_code == 200


@pytest.mark.parametrize(
    ("asked", "kind"),
    [({"params": {"format": "json"}}, "application/json"), ({"params": {"format": "csv"}}, "text/csv"),
     ({"headers": {"Accept": "application/json"}}, "application/json"),
     ({"headers": {"Accept": "text/csv"}}, "text/csv"), ({"headers": {"Accept": "*/*"}}, "text/html")],
)  # fmt: skip
def test_a_page_comes_in_the_form_that_is_asked_for(client, asked, kind):
    assert client.get("/hosts", **asked).headers["content-type"].partition(";")[0] == kind


def test_a_form_that_is_none_is_refused(client):
    assert client.get("/hosts?format=pdf").status_code == 400


def test_a_title_that_looks_like_a_formula_is_none_in_csv(client, filled):
    filled.put("http://formula.example/a.csv", b"a\n", title="=1+1")
    assert ",'=1+1," in client.get("/search?q=formula&format=csv").text


def test_pages_are_packed_for_those_who_take_it(client):
    plain = client.get("/hosts", headers={"Accept-Encoding": "identity"})
    small = client.get("/hosts", headers={"Accept-Encoding": "gzip"})
    assert (small.headers["content-encoding"], small.text) == ("gzip", plain.text)


def test_a_version_is_previewed_as_rows(client, numbers):
    shown = client.get(f"/dataset/{numbers}/preview.json?version=3").json()["preview"]
    assert (shown["columns"], shown["rows"]) == (["a", "b"], [["1", "4"], ["5", "6"]])


def test_a_graph_is_previewed_as_statements(client, filled):
    name = filled.put("http://shown.example/a.ttl", b'<#a> <#b> "c" , "d" .', media_type="text/turtle")
    shown = client.get(f"/dataset/{name}/preview.json").json()["preview"]
    told = [each["object"] for each in shown["statements"]], [ray["object"] for ray in shown["star"]["rays"]]
    assert told == (['"c"', '"d"'], ["c", "d"])


def test_a_graph_is_drawn_as_a_star_with_its_words_escaped(client, filled):
    body = b'<#a> <#b> "1 < 2" , "d" ; <#c> <#e> .'
    name = filled.put("http://drawn.example/a.ttl", body, media_type="text/turtle")
    drawn = re.search(r'<svg class="star".*?</svg>', client.get(f"/dataset/{name}").text, re.DOTALL)[0]
    words = [each.text for each in ElementTree.fromstring(drawn).iter("text")]
    assert sorted(words) == ["1 < 2", "a", "b", "b", "c", "d", "e"]
    shapes = [each.tag for each in ElementTree.fromstring(drawn)]
    assert (shapes.count("line"), shapes.count("rect"), shapes.count("circle")) == (3, 2, 2)


@pytest.mark.parametrize(
    ("content", "kind"), [(b"<a> <b> ", "text/turtle"), (b"\xff\x00", "image/png"), (b"", "text/csv")]
)
def test_what_cannot_be_shown_has_a_note_and_no_error(client, filled, content, kind):
    name = filled.put(f"http://unshown.example/{kind}", content, media_type=kind)
    assert client.get(f"/dataset/{name}").status_code == 200


def test_the_form_tells_what_will_happen_without_the_secret_and_adds_nothing(client):
    form = {"url": "http://unsaid.example/a.csv", "only": "account"}
    answer = client.post("/add", data=form)
    found = client.get("/search.json?q=unsaid.example").json()["hits"]
    assert (answer.status_code, not unsaid(answer.text), found) == (200, True, [])


@pytest.mark.parametrize(
    ("url", "said"), [("no url", "not a valid URL"), ("mailto:a@b.example", "cannot be watched")]
)
def test_the_form_tells_why_an_address_will_not_be_taken(client, url, said):
    assert said in client.post("/add", data={"url": url, "only": "account"}).text


def test_the_pages_are_no_part_of_the_description(client):
    assert {"/", "/search", "/add"}.isdisjoint(client.get("/openapi.json").json()["paths"])


def test_what_needs_attention_is_on_the_first_page_until_it_succeeds(filled, tmp_path, starting):
    other = type(filled)(tmp_path / "data")
    bad = other.put("http://shaky.example/a.csv", b"a\n", title=f"Shaky {HOSTILE}")
    mended = other.put("http://mended.example/a.csv", b"a\n", title="Mended")
    stopped = other.put("http://stopped.example/a.csv", b"a\n", title="Stopped")
    trouble = "UPDATE resource SET trouble = %b, tried_at = 1, fails = 3 WHERE resource = ANY(%b::text[])"
    other.run(trouble, f"failed: 500 {HOSTILE}", [bad, mended, stopped])
    other.run("UPDATE resource SET trouble = NULL, fails = 0 WHERE resource = %b", mended)
    other.run("UPDATE resource SET state = 'stopped' WHERE resource = %b", stopped)
    other.close()
    address = starting(tmp_path / "data", "--no-crawl").address
    listed = httpx.get(f"{address}/overview.json").json()["attention"]
    assert [(each["resource"], each["trouble"]) for each in listed] == [(bad, f"failed: 500 {HOSTILE}")]
    text = httpx.get(f"{address}/").text
    assert (text.count("Needs attention"), HOSTILE in text) == (1, False)
    page = httpx.get(f"{address}/dataset/{bad}").text
    assert not unsaid(page, "3", "500", ESCAPED)
    assert ('class="state failing"' in page, 'class="state active"' in page) == (True, False)
    assert "brought nothing" not in httpx.get(f"{address}/dataset/{mended}").text


def test_what_is_gone_counts_as_archived_only_with_a_version(filled, tmp_path, starting):
    other = type(filled)(tmp_path / "data")
    for name, contents in (("kept", [b"a\n"]), ("never", [])):
        gone = other.put(f"http://gone.example/{name}.csv", *contents)
        other.run("UPDATE resource SET state = 'gone' WHERE resource = %b", gone)
    other.close()
    address = starting(tmp_path / "data", "--no-crawl").address
    states = httpx.get(f"{address}/overview.json").json()["figures"]["states"]
    assert (states["gone"], states["archived"]) == (2, 1)
    assert "<dt>Gone, still archived</dt><dd>1</dd>" in httpx.get(f"{address}/").text


def test_the_page_of_statistics_has_the_tables_of_the_thesis(client, filled):
    filled.put("http://counted.example/a.jsonl", b"{}\n", media_type="application/x-ndjson")
    page = client.get("/stats", headers=BROWSER)
    figures = client.get("/api/v1/stats").json()
    tables = {
        name: [[re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in
               re.findall(r"<tr>(?!<th scope=.col).*?</tr>", text, re.DOTALL)]
        for name, text in re.findall(r"<h2>([^<]+)</h2>(.*?)</table>", page.text, re.DOTALL)
    }  # fmt: skip
    assert {"Types", "Sizes", "Hosts", "Portals", "States", "Storage and traffic"} <= tables.keys()
    assert [row[:2] for row in tables["Types"]] == [
        [each["media_type"] or "unknown", f"{each['versions']:,}"] for each in figures["types"]
    ]
    assert tables["Hosts"] == [[each["host"], str(each["datasets"])] for each in figures["hosts"]]
    [(files, datasets)] = filled.rows(
        "SELECT count(DISTINCT resource), count(DISTINCT source) FROM tamias.source WHERE portal = %s", PORTAL
    )
    assert [PORTAL, f"{files:,}", f"{datasets:,}"] in tables["Portals"]
