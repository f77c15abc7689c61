"""The REST API for those who read."""

import hashlib
import io
import json
import random
import xml.etree.ElementTree as ElementTree
import zipfile
from urllib.parse import quote

import pytest

from tamias.archive.versions.resources import add_suspects
from tamias.model.capture import new_capture_id
from tamias.model.resource import Version

CSV = "http://data.example/a.csv"
QUERIED = "http://data.example/export?format=csv&year=2026"
NEWEST = b"a,b\n1,4\n5,6\n"
API = "/api/v1"
ATOM = "{http://www.w3.org/2005/Atom}"


def everything(client, path, limit):
    """All items of a list, page by page, by its own links."""
    items, following = [], f"{path}{'&' if '?' in path else '?'}limit={limit}"
    while following:
        answer = client.get(following)
        assert answer.status_code == 200, answer.text
        items += answer.json()["items"]
        following = answer.links.get("next", {}).get("url")
    return items


def identifier(client, url):
    return client.get(f"{API}/get/dataset/{url}").json()["id"]


def test_the_basic_figures_have_their_six_names(client):
    figures = client.get(f"{API}/stats/basic").json()
    assert set(figures) >= {"datasets", "versions", "hosts", "sources", "bytes", "stored_bytes"}
    assert figures["datasets"] >= 3


def test_a_dataset_has_all_that_the_interface_promises(client):
    dataset = client.get(f"{API}/get/dataset/{CSV}").json()
    assert set(dataset) >= {
        "id", "url", "title", "media_type", "portals", "sources", "state", "next_crawl", "change_rate",
        "versions",
    }  # fmt: skip
    assert (dataset["url"], dataset["title"], dataset["media_type"]) == (CSV, "Numbers", "text/csv")
    assert dataset["portals"] == ["http://portal.example/"]
    assert dataset["state"] == "active"


def test_versions_come_oldest_first_with_all_that_is_promised(client):
    versions = client.get(f"{API}/get/dataset/{CSV}").json()["versions"]
    assert [version["number"] for version in versions] == [1, 2, 3]
    assert versions[0]["captured_at"] == "2026-01-01T00:00:00.000Z"
    assert versions[2]["sha256"] == hashlib.sha256(NEWEST).hexdigest()
    assert versions[2]["byte_size"] == len(NEWEST)


def test_the_download_of_a_version_is_its_bytes(client):
    for version in client.get(f"{API}/get/dataset/{CSV}").json()["versions"]:
        content = client.get(version["download"]).content
        assert hashlib.sha256(content).hexdigest() == version["sha256"]


@pytest.mark.parametrize(
    "named",
    [QUERIED, quote(QUERIED, safe=""), QUERIED.replace("http://", "http:/"), f"{QUERIED}#part"],
    ids=["as it is", "percent-encoded", "with slashes merged", "with a fragment"],
)
@pytest.mark.parametrize("route", ["dataset", "file"])
def test_a_url_is_taken_encoded_and_as_it_is(client, route, named):
    assert client.get(f"{API}/get/{route}/{named}").status_code == 200


def test_a_url_with_escapes_and_double_slashes_is_found_as_it_is(client, filled):
    filled.put("http://data.example/x//y%20z?u=http://a/b", b"odd")
    assert client.get(f"{API}/get/file/http://data.example/x//y%20z?u=http://a/b").content == b"odd"


def test_a_dataset_is_found_by_its_id(client):
    assert client.get(f"{API}/get/dataset/{identifier(client, CSV)}").json()["url"] == CSV


def test_what_is_not_there_is_not_found(client):
    answer = client.get(f"{API}/get/dataset/http://data.example/absent")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert "absent" in answer.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        f"{API}/get/dataset/no%20url",
        f"{API}/get/dataset/%00",
        f"{API}/get/dataset/http://[broken/",
        f"{API}/get/dataset/type/nonsense",
        f"{API}/get/files/type/nonsense",
        f"{API}/resources?limit=0",
        f"{API}/resources?limit=9999999999999999999999",
        f"{API}/resources?limit=many",
        f"{API}/resources?cursor=%27;DROP",
        f"{API}/resources?host=%00",
        f"{API}/versions",
        f"{API}/changes?since=yesterday",
        f"{API}/get/file/{quote(CSV, safe='')}?at=never",
        "/cdx",
        "/cdx?url=http://data.example/&matchType=magic",
        f"/cdx?url={quote(CSV, safe='')}&filter=~mime:(a%2B)%2B",
        "/memento/20269999000000/" + CSV,
    ],
)
def test_what_cannot_be_understood_is_a_bad_request(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.json()["status"]) == (400, 400), answer.text


def test_a_very_long_url_is_a_client_error(client):
    assert 400 <= client.get(f"{API}/get/dataset/http://data.example/{'x' * 10_000}").status_code < 500


def test_an_unknown_route_has_a_problem_document(client):
    answer = client.get(f"{API}/nothing")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def test_a_wrong_method_is_told_the_right_one(client):
    answer = client.delete(f"{API}/stats/basic")
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]


def test_lists_are_walked_page_by_page_without_loss(client, filled):
    for number in range(7):
        filled.put(f"http://many.example/{number}", b"x")
    found = everything(client, f"{API}/get/datasets/many.example", 3)
    assert sorted(each["url"] for each in found) == [f"http://many.example/{n}" for n in range(7)]


def test_resources_are_listed_by_host_type_and_portal(client):
    def urls(words):
        return {each["url"] for each in everything(client, f"{API}/resources?{words}", 100)}

    assert CSV in urls("host=data.example")
    assert CSV in urls("type=csv")
    assert CSV in urls(f"portal={quote('http://portal.example/', safe='')}")
    assert CSV not in urls("type=ttl")


def test_datasets_of_a_type_are_named_by_media_type_and_by_short_name(client):
    short, full = (
        client.get(f"{API}/get/dataset/type/{name}").json()["items"] for name in ("ttl", "text/turtle")
    )
    assert [each["url"] for each in short] == [each["url"] for each in full]
    assert "http://other.example/data.ttl" in [each["url"] for each in full]
    assert {each["media_type"] for each in full} == {"text/turtle"}


def test_hosts_are_listed_with_their_datasets(client):
    hosts = {each["host"]: each["datasets"] for each in everything(client, f"{API}/hosts", 1)}
    assert hosts["other.example"] == 1


def test_versions_are_walked_page_by_page(client):
    found = everything(client, f"{API}/versions?url={quote(CSV, safe='')}", 2)
    assert [version["number"] for version in found] == [1, 2, 3]


def test_changes_come_newest_first_and_once_each(client):
    found = everything(client, f"{API}/changes?host=data.example", 2)
    assert [each["captured_at"] for each in found] == sorted((e["captured_at"] for e in found), reverse=True)
    assert len({each["id"] for each in found}) == len(found)
    assert [each["kind"] for each in found if each["url"] == CSV] == ["changed", "changed", "new"]


def test_changes_since_a_time_are_those_after_it(client):
    found = everything(client, f"{API}/changes?host=data.example&since=2026-01-03T00:00:00Z", 10)
    assert [each["number"] for each in found] == [3]


@pytest.mark.parametrize(("path", "accept"), [("changes.atom", "*/*"), ("changes", "application/atom+xml")])
def test_changes_are_a_feed_that_xml_readers_take(client, path, accept):
    answer = client.get(f"{API}/{path}?host=data.example", headers={"Accept": accept})
    feed = ElementTree.fromstring(answer.content)
    assert answer.headers["content-type"] == "application/atom+xml"
    entries = feed.findall(f"{ATOM}entry")
    assert entries
    assert all(entry.find(f"{ATOM}{name}").text for entry in entries for name in ("id", "title", "updated"))


def test_a_feed_bears_titles_that_are_no_xml(client, filled):
    filled.put("http://odd.example/", b"x", title="<b>&\x0b]]>\ud7ff")
    answer = client.get(f"{API}/changes.atom?host=odd.example")
    assert "<b>&" in ElementTree.fromstring(answer.content).find(f"{ATOM}entry/{ATOM}title").text


def test_json_that_the_client_has_is_not_sent_again(client):
    first = client.get(f"{API}/get/dataset/{CSV}")
    again = client.get(f"{API}/get/dataset/{CSV}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_tag_of_a_file_is_its_digest_and_spares_sending_it_again(client):
    answer = client.get(f"{API}/get/file/{CSV}")
    tag = f'"{hashlib.sha256(NEWEST).hexdigest()}"'
    assert (answer.content, answer.headers["etag"]) == (NEWEST, tag)
    assert client.get(f"{API}/get/file/{CSV}", headers={"If-None-Match": tag}).status_code == 304


def test_a_file_that_was_not_captured_since_is_not_sent_again(client):
    since = {"If-Modified-Since": "Sat, 03 Jan 2026 00:00:00 GMT"}
    assert client.get(f"{API}/get/file/{CSV}", headers=since).status_code == 304


def test_a_condition_that_does_not_hold_fails(client):
    assert client.get(f"{API}/get/file/{CSV}", headers={"If-Match": '"other"'}).status_code == 412


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        ("bytes=0-2", NEWEST[:3]),
        ("bytes=4-", NEWEST[4:]),
        ("bytes=-3", NEWEST[-3:]),
        ("bytes=2-999", NEWEST[2:]),
    ],
)
def test_a_range_is_that_part(client, wanted, given):
    answer = client.get(f"{API}/get/file/{CSV}", headers={"Range": wanted})
    assert (answer.status_code, answer.content) == (206, given)
    start = NEWEST.index(given)
    assert answer.headers["content-range"] == f"bytes {start}-{start + len(given) - 1}/{len(NEWEST)}"


def test_a_range_behind_the_end_cannot_be_satisfied(client):
    answer = client.get(f"{API}/get/file/{CSV}", headers={"Range": "bytes=99-"})
    assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{len(NEWEST)}")


def test_a_range_of_what_has_changed_since_is_the_whole(client):
    answer = client.get(f"{API}/get/file/{CSV}", headers={"Range": "bytes=0-2", "If-Range": '"old"'})
    assert (answer.status_code, answer.content) == (200, NEWEST)


def test_head_tells_of_a_file_without_it(client):
    answer = client.head(f"{API}/get/file/{CSV}")
    assert (answer.status_code, answer.content, answer.headers["content-length"]) == (
        200,
        b"",
        str(len(NEWEST)),
    )


def test_a_file_of_a_time_or_a_number_is_that_version(client):
    encoded = quote(CSV, safe="")
    assert client.get(f"{API}/get/file/{encoded}?version=1").content == b"a,b\n1,2\n"
    assert client.get(f"{API}/get/file/{encoded}?at=2026-01-02T12:00:00Z").content == b"a,b\n1,3\n"
    assert client.get(f"{API}/get/file/{encoded}?version=9").status_code == 404


def test_browsers_cannot_be_made_to_run_what_was_archived(client, filled):
    filled.put("http://evil.example/", b"<script>alert(1)</script>", media_type="text/html")
    answer = client.get(f"{API}/get/file/http://evil.example/")
    assert answer.headers["content-security-policy"].startswith("sandbox;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")


def test_a_content_type_that_would_break_the_header_is_not_told(client, filled):
    filled.put("http://odd.example/type", b"x", media_type="text/html\r\nSet-Cookie: a=b")
    answer = client.get(f"{API}/get/file/http://odd.example/type")
    assert answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize("size", [9, 3_000_000])
@pytest.mark.parametrize("stored", [b"text/csv", b"text/csv; charset=iso-8859-2", b"text/html"])
def test_the_content_type_is_sent_as_it_came(client, filled, stored, size):
    """Without the character set that the web framework would add to text of its own."""
    url = f"http://exact.example/{size}/{len(stored)}"
    name = filled.put(url, bytes(size), media_type=stored.decode().partition(";")[0])
    filled.run("UPDATE version SET told_type = %s WHERE resource = %s", stored.decode(), name)
    memento = f"/memento/20260101000000/{url}"
    answers = [client.get(f"{API}/get/file/{url}"), client.get(memento), client.head(memento)]
    answers.append(client.get(memento, headers={"Range": "bytes=0-3"}))
    sent = [[value for key, value in each.headers.raw if key.lower() == b"content-type"] for each in answers]
    assert sent == [[stored]] * 4


@pytest.fixture(scope="module")
def large(filled):
    """So large that it is kept in chunks, and somewhat smaller."""
    bodies = {"whole": random.Random(1).randbytes(3_000_000), "chunks": random.Random(2).randbytes(135 << 20)}
    for name, body in bodies.items():
        filled.put(f"http://large.example/{name}", body, media_type="application/zip")
    return bodies


@pytest.mark.parametrize("name", ["whole", "chunks"])
def test_a_large_file_comes_whole(client, large, name):
    digest = hashlib.sha256()
    with client.stream("GET", f"{API}/get/file/http://large.example/{name}") as answer:
        for piece in answer.iter_bytes():
            digest.update(piece)
    assert digest.hexdigest() == hashlib.sha256(large[name]).hexdigest()


@pytest.mark.parametrize("name", ["whole", "chunks"])
def test_a_range_of_a_large_file_is_that_part(client, large, name):
    answer = client.get(
        f"{API}/get/file/http://large.example/{name}", headers={"Range": "bytes=1000000-1200000"}
    )
    assert answer.content == large[name][1_000_000:1_200_001]


def test_a_damaged_file_is_an_error_and_not_a_wrong_answer(client, filled):
    name = filled.put("http://damaged.example/", b"precious " * 100, media_type="image/png")
    sha256 = hashlib.sha256(b"precious " * 100).digest()
    [(pack, place)] = filled.rows("SELECT pack, start + length - 1 FROM blob WHERE sha256 = %b", sha256)
    with (filled.data / "blobs" / f"{pack}.pack").open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1]))
    answer = client.get(f"{API}/get/file/id/{name}_1")
    assert answer.status_code == 500
    assert "damaged" in answer.json()["detail"]


def test_a_zip_has_every_version_of_a_type_and_a_manifest(client, filled):
    filled.put("http://zipped.example/1", b"<a/>", b"<b/>", media_type="application/kml")
    filled.put("http://zipped.example/2", b"<c/>", media_type="application/kml")
    answer = client.get(f"{API}/get/files/type/application/kml")
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.testzip() is None
    members = [json.loads(line) for line in archive.read("manifest.jsonl").splitlines()]
    assert sorted(archive.read(each["file"]) for each in members) == [b"<a/>", b"<b/>", b"<c/>"]
    assert all(hashlib.sha256(archive.read(each["file"])).hexdigest() == each["sha256"] for each in members)


def test_a_zip_of_the_latest_has_one_version_of_each(client, filled):
    filled.put("http://zipped.example/3", b"<a/>", b"<b/>", media_type="application/gml")
    answer = client.get(f"{API}/get/files/type/application/gml?versions=latest")
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert [archive.read(name) for name in archive.namelist() if name != "manifest.jsonl"] == [b"<b/>"]


def test_a_zip_tells_of_what_could_not_be_given(client, filled):
    filled.put("http://zipped.example/4", b"kept", b"lost", media_type="application/lost")
    filled.run("DELETE FROM blob WHERE sha256 = %b", hashlib.sha256(b"lost").digest())
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"{API}/get/files/type/application/lost").content))
    members = [json.loads(line) for line in archive.read("manifest.jsonl").splitlines()]
    assert [bool(each["problem"]) for each in members] == [False, True]


def test_a_zip_of_a_type_that_is_not_there_is_not_found(client):
    assert client.get(f"{API}/get/files/type/application/absent").status_code == 404


def test_a_version_says_why_it_is_noise_also_among_the_changes_and_events(client, filled):
    url = "http://noise.example/a.csv"
    name = filled.put(url, b"a,b\n1,2\n", b"a;b\n1;2\n")
    filled.run(
        "UPDATE version SET noise = 'delimiter ; instead of ,' WHERE resource = %b AND number = 2", name
    )
    versions = client.get(f"{API}/versions?url={url}").json()["items"]
    assert [each["noise"] for each in versions] == [None, "delimiter ; instead of ,"]
    assert [each["suspicious"] for each in versions] == [None, None]
    changes = client.get(f"{API}/changes?dataset={name}").json()["items"]
    assert [(each["kind"], each["noise"]) for each in changes] == [
        ("noise", "delimiter ; instead of ,"),
        ("new", None),
    ]


def test_suspicious_responses_are_listed_of_one_resource_and_of_all(client, filled):
    names = [filled.put(f"http://lie.example/{n}.csv", b"a\n1\n") for n in range(3)]

    def lie(name, at):
        return Version(
            resource=name, captured_at=at, sha256="ab" * 32, byte_size=7, media_type="text/csv",
            declared_type=None, fingerprint=None, noise=None, capture=str(new_capture_id(at)),
        )  # fmt: skip

    told = [(lie(name, 2_000_000_000_000 + at), f"lie {at}") for at, name in enumerate(names * 2)]
    filled.session.transact(lambda cursor: add_suspects(cursor, told))
    found = everything(client, f"{API}/versions?suspicious=1", 4)
    assert [each["suspicious"] for each in found][:6] == [f"lie {at}" for at in range(5, -1, -1)]
    assert (found[0]["number"], found[0]["url"], found[0]["dataset"]) == (
        None,
        "http://lie.example/2.csv",
        names[2],
    )
    one = everything(client, f"{API}/versions?suspicious=1&url=http://lie.example/1.csv", 1)
    assert [each["suspicious"] for each in one] == ["lie 4", "lie 1"]
    assert client.get(f"{API}/versions?suspicious=1&cursor=nonsense").status_code == 400
    assert client.get(f"{API}/versions").status_code == 400
