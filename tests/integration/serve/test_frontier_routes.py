"""The frontier and its tags over REST: looked at by everybody, steered by who knows the secret."""

import pytest

from tamias.crawl.plan.admit import Admission, same_url
from tamias.frontier.postgres import PostgresFrontier
from tamias.settings import Settings

URLS = [f"http://{name}.steered.example/{path}" for name in ("one", "two") for path in "abc"]


@pytest.fixture(scope="module")
def known(filled):
    """A frontier that knows a few URLs; the names of their queues."""
    session = filled.database.session()
    admission = Admission(Settings(), ())
    frontier = PostgresFrontier(session, same_url=same_url(frozenset()), delay_ms=1000)
    frontier.put([admission.item(url, 0, 1) for url in URLS])
    yield sorted({admission.queue(url) for url in URLS})
    session.close()


def listed(client, path):
    """All items of a list, page by page."""
    found, cursor = [], None
    while True:
        told = client.get(path, params={"limit": 1, **({"cursor": cursor} if cursor else {})}).json()
        found += told["items"]
        cursor = told["cursor"]
        if cursor is None:
            return found


def test_the_figures_name_every_crawl(client, known):
    told = client.get("/api/v1/frontier").json()
    assert {"default", "watch"} <= {each["name"] for each in told["crawls"]}
    assert told["hosts"] >= len(known)


def test_the_queues_are_listed_page_by_page(client, known):
    queues = [each for each in listed(client, "/api/v1/frontier/queues") if each["host"] in known]
    assert sum(each["open"] for each in queues) == len(URLS)


def test_the_queues_of_a_crawl_are_those_of_that_crawl(client, known):
    told = client.get("/api/v1/frontier/queues?crawl=watch").json()
    assert {each["crawl"] for each in told["items"]} <= {"watch"}


def test_a_host_tells_its_queues(client, known):
    told = client.get(f"/api/v1/frontier/hosts/{known[0]}").json()
    assert (told["host"], told["blocked_until"]) == (known[0], None)
    assert {each["crawl"] for each in told["queues"]} == {"default"}


def test_a_host_that_is_not_known_is_not_found(client):
    assert client.get("/api/v1/frontier/hosts/nowhere.example").status_code == 404


def test_a_host_is_blocked_and_let_go_again(client, writer, known):
    blocked = writer.post("/api/v1/frontier/block", params={"host": known[0], "until": "2999-01-01"})
    names = [each["host"] for each in listed(client, "/api/v1/frontier/blocks")]
    freed = writer.post("/api/v1/frontier/unblock", params={"host": known[0]})
    after = [each["host"] for each in listed(client, "/api/v1/frontier/blocks")]
    assert (blocked.status_code, freed.status_code) == (200, 200)
    assert known[0] in names
    assert known[0] not in after


def test_a_crawl_is_paused_and_goes_on(client, writer, known):
    def state():
        told = client.get("/api/v1/frontier").json()["crawls"]
        return next(each["state"] for each in told if each["name"] == "default")

    writer.post("/api/v1/frontier/pause", params={"crawl": "default"})
    paused = state()
    writer.post("/api/v1/frontier/resume", params={"crawl": "default"})
    assert (paused, state()) == ("paused", "active")


@pytest.mark.parametrize(
    "path", ["pause?crawl=default", "resume?crawl=default", "block?host=x", "unblock?host=x"]
)
def test_steering_needs_the_secret(client, path):
    assert client.post(f"/api/v1/frontier/{path}").status_code == 401


@pytest.mark.parametrize(
    ("path", "status"),
    [("pause", 400), ("pause?crawl=none", 404), ("block", 400), ("block?host=nowhere.example", 404)],
)
def test_steering_what_is_not_there_is_refused(writer, known, path, status):
    assert writer.post(f"/api/v1/frontier/{path}").status_code == status


def test_tags_are_given_counted_and_taken_away(client, writer, known):
    given = writer.post("/api/v1/tags", json={"url": URLS[0], "add": ["good", "first"]}).json()
    counted = {each["tag"]: each["urls"] for each in client.get("/api/v1/tags").json()["items"]}
    writer.post("/api/v1/tags", json={"url": URLS[0], "remove": ["good"]})
    left = client.get("/api/v1/tags/of", params={"url": URLS[0]}).json()
    assert (given["tags"], counted["good"], left["tags"]) == (["good", "first"], 1, ["first"])


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"url": "http://nowhere.example/", "add": ["x"]}, 404),
        ({"url": URLS[0]}, 400),
        ({"url": URLS[0], "add": ["a b"]}, 400),
        ({"url": "nonsense", "add": ["x"]}, 400),
        ({"url": URLS[0], "add": ["x"], "crawl": "none"}, 404),
    ],
)
def test_tags_that_cannot_be_given_are_refused(writer, known, asked, status):
    assert writer.post("/api/v1/tags", json=asked).status_code == status
