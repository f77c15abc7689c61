"""The REST API for those who write: the secret, resources put under watch, visits wanted now."""

import pytest

from tamias.model.item import NEVER
from tests.messages import unsaid

API = "/api/v1"


def due(filled, url):
    return filled.rows("SELECT due FROM url WHERE url = %b AND crawl = 2", url)


@pytest.mark.parametrize(
    "path", ["post/resource", "post/resources", "post/remove", "crawl?domain=data.example"]
)
def test_without_the_secret_nothing_is_written(client, path):
    answer = client.post(f"{API}/{path}", json={"url": "http://new.example/0"})
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("told", ["wrong", "open sesam", "ÖÄ", "\udcff"])
def test_a_wrong_secret_is_refused(client, told):
    answer = client.post(f"{API}/crawl", params={"secret": told.encode("utf-8", "surrogateescape")})
    assert answer.status_code == 401


def test_the_secret_may_stand_in_the_query(client):
    answer = client.post(
        f"{API}/post/resource?secret=open%20sesame", json={"url": "http://new.example/query"}
    )
    assert answer.status_code == 201


def test_a_resource_is_new_once_and_known_then(writer):
    body = {"url": "http://new.example/1", "title": "One", "format": "csv", "portal": "http://p.example/"}
    first, second = (writer.post(f"{API}/post/resource", json=body) for _ in range(2))
    assert (first.status_code, first.json()["new"]) == (201, 1)
    assert (second.status_code, second.json()["known"]) == (200, 1)
    assert writer.get(f"{API}/get/dataset/http://new.example/1").json()["title"] == "One"


def test_a_resource_that_was_put_is_due_in_the_frontier(writer, filled):
    writer.post(f"{API}/post/resource", json={"url": "http://new.example/due"})
    assert len(due(filled, "http://new.example/due")) == 1


def test_many_are_taken_and_the_others_named_with_the_reason(writer):
    body = [{"url": "http://new.example/a"}, {"url": "no url"}, {"url": "mailto:me@example.org"}]
    told = writer.post(f"{API}/post/resources", json=body).json()
    assert told["new"] == 1
    assert [each["url"] for each in told["refused"]] == ["no url", "mailto:me@example.org"]


def test_one_that_a_rule_keeps_out_cannot_be_processed(writer):
    answer = writer.post(f"{API}/post/resource", json={"url": "mailto:me@example.org"})
    assert (answer.status_code, "mailto" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b'{"url": 1}', b'{"href": "x"}', b"\xff", b'{"url": ""}', b"[" * 100_000,
        b'{"url": "http://new.example/", "source": "' + b"x" * 5000 + b'"}',
    ],
    ids=["nothing", "torn", "a list", "a number", "no url", "no text", "empty", "deep", "long"],
)  # fmt: skip
def test_a_body_that_cannot_be_read_is_a_bad_request(writer, content):
    answer = writer.post(f"{API}/post/resource", content=content)
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_that_is_too_large_is_not_read(writer):
    answer = writer.post(f"{API}/post/resource", content=b" " * 100_000)
    assert answer.status_code == 413


def test_texts_that_no_database_takes_are_no_error_of_ours(writer):
    body = {"url": "http://new.example/nul", "title": "a\x00b", "source": "c\x00"}
    assert writer.post(f"{API}/post/resource", json=body).status_code == 201


def test_a_resource_is_made_due_by_its_id(writer, filled):
    url = "http://hasten.example/1"
    writer.post(f"{API}/post/resource", json={"url": url})
    filled.run("UPDATE url SET due = due + 1000000000 WHERE url = %b", url)
    ((before,),) = due(filled, url)
    name = writer.get(f"{API}/get/dataset/{url}").json()["id"]
    answer = writer.post(f"{API}/crawl?id={name}")
    assert (answer.status_code, answer.json()) == (202, {"resources": 1, "hastened": 1})
    ((after,),) = due(filled, url)
    assert after < before
    assert writer.get(f"{API}/get/dataset/{url}").json()["next_crawl"] is not None


def test_all_of_a_domain_are_made_due(writer, filled):
    body = [{"url": f"http://all.hasten.example/{number}"} for number in range(5)]
    writer.post(f"{API}/post/resources", json=body)
    filled.run("UPDATE url SET due = %b WHERE url LIKE 'http://all.hasten.example/%%'", NEVER)
    told = writer.post(f"{API}/crawl?domain=all.hasten.example").json()
    assert told == {"resources": 5, "hastened": 5}


def test_one_that_was_stopped_stays_so(writer, filled):
    name = filled.put("http://stopped.example/", b"x")
    filled.run("UPDATE resource SET state = 'stopped' WHERE resource = %b", name)
    assert writer.post(f"{API}/crawl?id={name}").status_code == 404


@pytest.mark.parametrize(
    ("words", "status"),
    [("", 400), ("?id=x&domain=y", 400), ("?id=x", 404), ("?domain=absent.example", 404), ("?id=%00", 400)],
)
def test_a_visit_to_nothing_is_refused(writer, words, status):
    assert writer.post(f"{API}/crawl{words}").status_code == status


def listed(client, url, **words):
    """What the list says of a resource, if it is there."""
    found = client.get(f"{API}/resources", params={"host": "often.example", **words}).json()["items"]
    return next((each for each in found if each["url"] == url), None)


def test_how_often_a_resource_is_visited_is_told_and_listed(writer):
    url = "http://often.example/a"
    body = {"url": url, "every": "12h", "priority": 3}
    assert writer.post(f"{API}/post/resource", json=body).status_code == 201
    told = listed(writer, url)
    assert (told["every"], told["priority"], told["last_crawl"], told["trouble"]) == ("12h", 3.0, None, None)
    assert writer.post(f"{API}/post/resource", json={**body, "every": "often"}).status_code == 422
    assert writer.post(f"{API}/post/resource", json={**body, "priority": 0}).status_code == 400


def test_a_removed_resource_is_stopped_and_not_due_and_starts_again_when_it_is_added(writer, filled):
    url = "http://often.example/b"
    writer.post(f"{API}/post/resource", json={"url": url})
    answer = writer.post(f"{API}/post/remove", json={"urls": [url, "http://often.example/no", "nonsense"]})
    assert answer.json() == {"stopped": 1, "unknown": ["http://often.example/no", "nonsense"]}
    assert due(filled, url) == [(NEVER,)]
    assert listed(writer, url, state="stopped")["next_crawl"] is None
    assert listed(writer, url, state="active") is None
    writer.post(f"{API}/post/resource", json={"url": url})
    assert (listed(writer, url)["state"], due(filled, url) == [(NEVER,)]) == ("active", False)
    assert writer.post(f"{API}/post/remove", json={"urls": ["http://often.example/no"]}).status_code == 404
    assert writer.get(f"{API}/resources", params={"state": "odd"}).status_code == 400


@pytest.mark.parametrize("kind", ["ckan", "sparql", "oai-pmh", "sitemap"])
def test_a_source_is_added_with_its_kind_and_harvested_not_stored_as_a_file(writer, filled, kind):
    url = f"http://{kind}.source.example/api"
    first = writer.post("/api/v1/post/resource", json={"url": url, "kind": kind})
    again = writer.post("/api/v1/post/resource", json={"url": url, "kind": kind})
    assert (first.status_code, first.json()["new"], again.json()["known"]) == (201, 1, 1)
    tagged = filled.rows("SELECT url.tags, url.crawl FROM url WHERE url.url = %b", url)
    assert [sorted(tags) for tags, _ in tagged] == [[f"kind={kind}", "trusted"]]
    assert filled.rows("SELECT 1 FROM resource WHERE resource.url = %b", url) == []


def test_a_kind_that_there_is_not_is_refused_by_name(writer, filled):
    new = {"url": "http://unknown.source.example/", "kind": "ckam"}
    answer = writer.post("/api/v1/post/resource", json=new)
    assert answer.status_code in (400, 422)
    assert not unsaid(answer.text, "ckam")
    assert filled.rows("SELECT 1 FROM url WHERE url.url = %b", new["url"]) == []


def test_a_new_resource_is_said_to_be_visited_soon_and_a_stopped_one_to_begin_again(writer):
    url = "http://new.example/soon.csv"
    writer.post(f"{API}/post/resource", json={"url": url})
    page = writer.get("/add", params={"url": url}, headers={"Accept": "text/html"}).text
    assert not unsaid(page, "0")
    assert writer.post(f"{API}/post/remove", json={"urls": [url]}).is_success
    page = writer.get("/add", params={"url": url}, headers={"Accept": "text/html"}).text
    assert not unsaid(page, "0", part=2)
    assert "fetches nothing" not in page
