"""Time travel, checked by a client that knows RFC 7089 and nothing of this service but one TimeGate."""

import hashlib
import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime

import pytest

CSV = "http://data.example/a.csv"
QUERIED = "http://data.example/export?format=csv&year=2026"
MORE_VERSIONS = b"""
INSERT INTO version (resource, number, captured_at, sha256, byte_size, media_type, capture)
SELECT resource, 1 + n, captured_at + n::int8 * 3600000, sha256, byte_size, media_type, gen_random_uuid()
FROM version, generate_series(1, 1200) AS n WHERE resource = %b"""
_LINK = re.compile(r'<([^>]*)>((?:\s*;\s*[a-z]+="[^"]*")*)\s*(?:,|$)')
_WORD = re.compile(r'([a-z]+)="([^"]*)"')


def links(text):
    """RFC 8288 links: address, relations, other attributes."""
    found = []
    for address, words in _LINK.findall(text.replace("\n", " ")):
        attributes = dict(_WORD.findall(words))
        found.append((address, set(attributes.pop("rel").split()), attributes))
    return found


def related(found, relation):
    return [address for address, relations, _ in found if relation in relations]


class MementoClient:
    """Walks a web archive by the rules of RFC 7089."""

    def __init__(self, http):
        self.http = http

    def negotiate(self, gate, moment=None):
        """4.1: asks a TimeGate; gives the answer that leads to a Memento, checked."""
        headers = {"Accept-Datetime": format_datetime(moment, usegmt=True)} if moment else {}
        answer = self.http.get(gate, headers=headers)
        assert answer.status_code == 302
        assert "accept-datetime" in {each.strip().lower() for each in answer.headers["vary"].split(",")}
        assert "memento-datetime" not in answer.headers
        assert related(links(answer.headers["link"]), "original")
        return answer

    def memento(self, address):
        """2.1.1, 4.3: a Memento says when it is from, whose it is, and does not vary by time."""
        answer = self.http.get(address)
        assert answer.status_code == 200
        assert "accept-datetime" not in answer.headers.get("vary", "").lower()
        assert answer.headers["memento-datetime"].endswith("GMT")
        assert related(links(answer.headers["link"]), "original")
        return answer

    def time_map(self, address):
        """5: all Mementos of a TimeMap and of the TimeMaps it is continued in."""
        seen, open_maps, mementos = set(), [address], {}
        while open_maps:
            here = open_maps.pop()
            if here in seen:
                continue
            seen.add(here)
            answer = self.http.get(here, headers={"Accept-Datetime": "Thu, 01 Jan 2015 00:00:00 GMT"})
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("application/link-format")
            assert "vary" not in answer.headers
            found = links(answer.text)
            assert related(found, "self") == [here]
            open_maps += related(found, "timemap")
            mementos |= {a: words["datetime"] for a, relations, words in found if "memento" in relations}
        return mementos


@pytest.fixture
def traveller(client):
    return MementoClient(client)


def time_map_of(answer):
    return related(links(answer.headers["link"]), "timemap")[0]


def test_a_client_walks_from_the_timegate_to_every_version(traveller, client):
    mementos = traveller.time_map(time_map_of(traveller.negotiate(f"/timegate/{CSV}")))
    versions = client.get(f"/api/v1/get/dataset/{CSV}").json()["versions"]
    assert len(mementos) == len(versions) == 3
    for (address, told), version in zip(mementos.items(), versions, strict=True):
        answer = traveller.memento(address)
        assert answer.headers["memento-datetime"] == told
        assert hashlib.sha256(answer.content).hexdigest() == version["sha256"]


def test_a_client_walks_over_the_pages_of_a_long_timemap(traveller, filled):
    url = "http://long.example/"
    name = filled.put(url, b"1")
    filled.run(MORE_VERSIONS, name)
    mementos = traveller.time_map(time_map_of(traveller.negotiate(f"/timegate/{url}")))
    assert len(mementos) == 1201


@pytest.mark.parametrize(
    ("days", "content"),
    [
        (-100, b"a,b\n1,2\n"),
        (0, b"a,b\n1,2\n"),
        (0.9, b"a,b\n1,2\n"),
        (1.5, b"a,b\n1,3\n"),
        (99, b"a,b\n1,4\n5,6\n"),
    ],
)
def test_the_timegate_leads_to_what_held_then(traveller, days, content):
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=days)
    answer = traveller.negotiate(f"/timegate/{CSV}", moment)
    assert traveller.memento(answer.headers["location"]).content == content


def test_the_timegate_without_a_time_leads_to_the_newest(traveller):
    answer = traveller.negotiate(f"/timegate/{CSV}")
    assert traveller.memento(answer.headers["location"]).content == b"a,b\n1,4\n5,6\n"


def test_a_timegate_works_for_a_url_with_a_query(traveller):
    answer = traveller.negotiate(f"/timegate/{QUERIED}")
    assert traveller.memento(answer.headers["location"]).content == b"year\n2026\n"


@pytest.mark.parametrize("told", ["yesterday", "2026-01-01", "", "Thu, 99 Foo 2026"])
def test_a_time_that_is_none_is_a_bad_request(client, told):
    assert client.get(f"/timegate/{CSV}", headers={"Accept-Datetime": told}).status_code == 400


@pytest.mark.parametrize(
    "route", ["timegate", "timemap/link", "timemap/json", "timemap/cdxj", "memento/20260101000000"]
)
def test_what_was_never_archived_is_not_found(client, route):
    assert client.get(f"/{route}/http://data.example/never").status_code == 404


def test_a_memento_names_its_neighbours_in_time(traveller, client):
    answer = traveller.memento(f"/memento/20260102000000/{CSV}")
    found = links(answer.headers["link"])
    for relation, stamp in {"first": 1, "prev": 1, "next": 3, "last": 3}.items():
        assert f"/memento/2026010{stamp}000000/" in related(found, relation)[0]
    for relation in ("timegate", "timemap"):
        assert client.get(related(found, relation)[0]).status_code in (200, 302)


def test_a_memento_of_another_second_leads_to_the_one_that_held(client, traveller):
    answer = client.get(f"/memento/20260102115959/{CSV}")
    assert answer.status_code == 302
    assert "vary" not in answer.headers
    told = traveller.memento(answer.headers["location"]).headers["memento-datetime"]
    assert parsedate_to_datetime(told) == datetime(2026, 1, 2, tzinfo=UTC)


def test_two_versions_of_one_second_have_addresses_of_their_own(traveller, filled):
    url = "http://quick.example/"
    filled.put(url, b"1", b"2", b"3", step=400)
    mementos = traveller.time_map(time_map_of(traveller.negotiate(f"/timegate/{url}")))
    assert [traveller.memento(address).content for address in mementos] == [b"1", b"2", b"3"]


def test_head_of_a_memento_has_the_headers_of_get(client):
    address = f"/memento/20260101000000/{CSV}"
    get, head = client.get(address), client.head(address)
    assert head.content == b""
    names = ("memento-datetime", "link", "etag", "content-length", "content-type")
    assert [head.headers[name] for name in names] == [get.headers[name] for name in names]


def test_the_other_forms_of_a_timemap_name_the_same_mementos(client, traveller):
    expected = set(traveller.time_map(time_map_of(traveller.negotiate(f"/timegate/{CSV}"))))
    told = client.get(f"/timemap/json/{CSV}").json()
    assert {each["uri"] for each in told["mementos"]["list"]} == expected
    lines = client.get(f"/timemap/cdxj/{CSV}").text.splitlines()
    assert {re.search(r'"uri":"([^"]*)"', line)[1] for line in lines if line[0] != "!"} == expected


def test_the_index_has_a_line_for_each_version(client):
    lines = client.get("/cdx", params={"url": CSV}).text.splitlines()
    assert [line.split()[1] for line in lines] == ["20260101000000", "20260102000000", "20260103000000"]
    assert lines[0].split()[0] == "example,data)/a.csv"


@pytest.mark.parametrize(
    ("words", "stamps"),
    [
        ({"from": "2026-01-02"}, ["20260102000000", "20260103000000"]),
        ({"to": "20260102000000"}, ["20260101000000", "20260102000000"]),
        ({"limit": "1"}, ["20260101000000"]),
        ({"from": "2026", "to": "202601"}, ["20260101000000", "20260102000000", "20260103000000"]),
        ({"from": "2026010200", "to": "2026-01-02"}, ["20260102000000"]),
        ({"to": "2025"}, []),
        ({"from": "2027"}, []),
        ({"sort": "reverse"}, ["20260103000000", "20260102000000", "20260101000000"]),
        ({"sort": "reverse", "limit": "1"}, ["20260103000000"]),
        (
            {"sort": "closest", "closest": "202601021300"},
            ["20260103000000", "20260102000000", "20260101000000"],
        ),
        ({"closest": "20260102", "limit": "1"}, ["20260102000000"]),
        ({"closest": "1999", "limit": "1"}, ["20260101000000"]),
        ({"page": "0"}, ["20260101000000", "20260102000000", "20260103000000"]),
        ({"filter": "=mimetype:text/plain"}, []),
        ({"filter": "!mimetype:xml", "limit": "1"}, ["20260101000000"]),
    ],
)
def test_the_index_is_narrowed(client, words, stamps):
    rows = client.get("/cdx", params={"url": CSV, "output": "json", **words}).json()
    assert [row[1] for row in rows[1:]] == stamps


@pytest.mark.parametrize(
    "words",
    [
        {"url": "http://data.example/a*"},
        {"url": "data.example/a", "matchType": "prefix"},
        {"url": "http://data.example/", "matchType": "host"},
        {"url": "*.example", "limit": "10000"},
    ],
    ids=["a star", "a prefix", "a host", "a domain"],
)
def test_the_index_finds_many_urls(client, words):
    rows = client.get("/cdx", params={**words, "output": "json"}).json()
    assert CSV in {row[2] for row in rows[1:]}


def test_the_index_collapses_neighbours_with_one_digest(client, filled):
    filled.put("http://back.example/", b"1", b"1", b"2", b"1")
    rows = client.get(
        "/cdx", params={"url": "http://back.example/", "collapse": "digest", "output": "json"}
    ).json()
    assert len(rows) == 1 + 3


def test_the_index_says_how_many_pages_it_has_and_gives_each(client, filled):
    url = "http://paged.example/"
    filled.put(url, b"1")
    filled.run(MORE_VERSIONS, filled.rows(b"SELECT resource FROM resource WHERE url = %b", url)[0][0])
    asked = {"url": url, "pageSize": 1}
    told = client.get("/cdx", params={**asked, "showNumPages": "true"}).json()
    assert (told["pages"], told["pageSize"]) == (2, 1)
    pages = [client.get("/cdx", params={**asked, "page": page}).text.splitlines() for page in range(2)]
    assert [len(page) for page in pages] == [1000, 201]
    assert pages[0] + pages[1] == client.get("/cdx", params={"url": url}).text.splitlines()
    assert client.get("/cdx", params={**asked, "page": 2}).status_code == 400
    none = client.get("/cdx", params={"url": "http://nothing.example/", "showNumPages": "true"})
    assert none.json()["pages"] == 0


def test_the_fields_of_the_index_can_be_named(client):
    rows = client.get("/cdx", params={"url": CSV, "fl": "timestamp,status,url", "limit": 1}).text
    assert rows == f"20260101000000 200 {CSV}\n"
    assert client.get("/cdx", params={"url": CSV, "fl": "colour"}).status_code == 400


@pytest.mark.parametrize(
    "words", [{"sort": "sideways"}, {"sort": "closest"}, {"from": "20"}, {"closest": "noon"}]
)
def test_what_the_index_cannot_be_asked_is_an_error(client, words):
    assert client.get("/cdx", params={"url": CSV, **words}).status_code == 400


def test_a_memento_is_found_by_a_time_of_any_precision(client):
    for stamp in ("2026", "202601", "20260103", "2026010312"):
        answer = client.get(f"/memento/{stamp}/{CSV}")
        assert answer.status_code == 302
        assert "/memento/20260103000000/" in answer.headers["location"]


def test_the_index_goes_on_where_it_stopped(client):
    first = client.get("/cdx", params={"url": CSV, "limit": 2})
    rest = client.get("/cdx", params={"url": CSV, "cursor": first.headers["x-cursor"]})
    assert len(first.text.splitlines()) + len(rest.text.splitlines()) == 3


def test_the_index_of_a_domain_has_all_its_hosts_in_the_order_of_urls(client, filled):
    urls = [
        f"{scheme}://{name}.deep.example{port}/{path}"
        for scheme in ("http", "https")
        for name in ("a", "b.a", "c", "d")
        for port in ("", ":8080")
        for path in ("", "x.csv", "y.csv?z=1")
    ]
    others = ["http://deep.example.org/", "http://notdeep.example/", "http://a.deep.example.com/x", "urn:a:b"]
    for url in (*urls, "http://deep.example/", *others):
        filled.put(url, b"1\n", b"2\n")
    lines = sorted([*urls, "http://deep.example/"] * 2)
    asked = {"url": "deep.example", "matchType": "domain", "fl": "original"}
    for limit in (1, 2, 7, 1000):
        for order in ("default", "reverse"):
            found = client.get("/cdx", params={**asked, "sort": order, "limit": limit})
            assert found.text.splitlines() == lines[:limit]
    seen, after = [], {}
    while after is not None:
        found = client.get("/cdx", params={**asked, "limit": 7, **after})
        seen += found.text.splitlines()
        after = {"cursor": found.headers["x-cursor"]} if "x-cursor" in found.headers else None
    assert seen == lines
    counted = client.get("/cdx", params={"url": "*.deep.example", "showNumPages": "true"})
    assert counted.json()["pages"] == 1
    none = client.get("/cdx", params={"url": "*.nowhere.example", "showNumPages": "true"})
    assert none.json()["pages"] == 0
