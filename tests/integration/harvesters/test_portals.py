"""Portals are things: listed as soon as they are added, harvested, stopped, resumed and removed."""

import json
import os
import signal
import threading
from contextlib import closing

import httpx
import pytest

from tamias.archive.moments import milliseconds
from tamias.database.connect import Database
from tests.all_resources import all_resources
from tests.integration.serve.conftest import Running
from tests.messages import unsaid

SCHEMA = "https://project-open-data.cio.gov/v1.1/schema"


class DataJson:
    """A portal with a `data.json`, and a table for each of its datasets."""

    def __init__(self, site, reply):
        self.site, self.reply = site, reply
        self.url = site.url("/data.json")
        site.pages["/robots.txt"] = reply(404)

    def offer(self, *names, **more):
        entries = []
        for name in names:
            file = self.site.url(f"/{name}.csv")
            self.site.pages[f"/{name}.csv"] = self.reply(200, b"a,b\n1,2\n", content_type="text/csv")
            distribution = {"@type": "dcat:Distribution", "downloadURL": file, "mediaType": "text/csv"}
            entries.append(
                {"@type": "dcat:Dataset", "identifier": name, "title": name, "distribution": [distribution]}
                | more.get(name, {})
            )
        body = json.dumps({"conformsTo": SCHEMA, "dataset": entries}).encode()
        self.site.pages["/data.json"] = self.reply(200, body, content_type="application/json")


@pytest.fixture
def portal(tamias, site, reply):
    tamias.env |= {"TAMIAS_CRAWL__RETRIES": "0"}
    return DataJson(site, reply)


@pytest.fixture
def steer(tamias):
    """`steer(action, …)` is what the verb prints as JSON."""

    def run(*words):
        done = tamias.run("portals", *words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def harvested(tamias):
    done = tamias.crawl("--recrawl")
    assert done.returncode == 0, done.stderr


def states(tamias):
    with closing(Database(tamias.data, create=False)) as base, closing(base.session()) as session:
        return {each.url: each.state for each in all_resources(session)}


def test_a_portal_is_listed_as_soon_as_it_is_added_and_then_with_what_it_has(tamias, portal, steer):
    portal.offer("one", "two")
    assert tamias.run("add", f"data-json:{portal.url}").returncode == 0
    [waiting] = steer()
    assert (waiting["url"], waiting["kind"], waiting["state"]) == (portal.url, "data-json", "waiting")
    harvested(tamias)
    [active] = steer()
    assert (active["state"], active["datasets"], active["files"]) == ("active", 2, 2)
    assert active["trouble"] is None
    assert active["last_harvest"] < active["next_harvest"]
    [job] = steer("history", portal.url)
    assert job["state"] == "ok"
    assert {name: job[name] for name in ("requests", "added", "changed", "vanished", "failed")} == {
        "requests": 1, "added": 2, "changed": 0, "vanished": 0, "failed": 0,
    }  # fmt: skip


def test_a_portal_is_not_taken_for_a_file(tamias, portal):
    portal.offer("one")
    assert tamias.run("add", f"data-json:{portal.url}").returncode == 0
    listed = tamias.run("list").stderr
    assert not unsaid(listed, "1 portal", "tamias portals")
    removed = tamias.run("remove", portal.url)
    assert removed.returncode == 2
    assert not unsaid(removed.stderr, portal.url, "tamias portals stop", part=2)


def test_a_catalogue_that_was_only_crawled_is_not_among_those_that_are_harvested(tamias, portal, steer):
    portal.offer("one")
    assert tamias.crawl(f"data-json:{portal.url}").returncode == 0
    assert steer() == []
    [known] = steer("--all")
    assert (known["state"], known["datasets"], known["next_harvest"]) == ("known", 1, None)
    assert tamias.run("portals", "stop", portal.url).returncode == 2


def test_each_harvest_says_what_it_added_changed_and_missed(tamias, portal, steer):
    portal.offer("one", "two", "three")
    assert tamias.run("add", f"data-json:{portal.url}").returncode == 0
    harvested(tamias)
    portal.offer("two", "three", "four", two={"title": "Second"})
    assert steer("harvest", portal.url)["done"] == "due now"
    harvested(tamias)
    second, first = steer("history", portal.url)
    assert [first["added"], first["changed"], first["vanished"]] == [3, 0, 0]
    assert [second["added"], second["changed"], second["vanished"]] == [1, 1, 1]
    assert steer()[0]["gone"] == 1


def test_why_a_harvest_failed_is_shown_at_the_portal(tamias, portal, steer):
    portal.site.pages["/data.json"] = portal.reply(503)
    assert tamias.run("add", f"data-json:{portal.url}").returncode == 0
    tamias.crawl("--recrawl")
    [failing] = steer()
    assert failing["state"] == "failing"
    assert "503 Service Unavailable" in failing["trouble"]
    assert failing["trouble"] == steer("history", portal.url)[0]["reason"]
    listed = tamias.run("portals").stdout
    assert failing["trouble"] in listed


def test_a_stopped_portal_is_not_harvested_until_it_is_resumed(tamias, portal, steer):
    portal.offer("one")
    assert tamias.run("add", f"data-json:{portal.url}").returncode == 0
    harvested(tamias)
    steer("every", portal.url, "1m")
    harvested(tamias)
    asked = portal.site.asked("/data.json")
    [often] = steer()
    minute = milliseconds(often["next_harvest"]) - milliseconds(often["last_harvest"])
    assert 60_000 <= minute < 120_000
    tamias.env["TAMIAS_SCHEDULE__HARVESTS"] = "0.1"
    steer("stop", portal.url)
    [stopped] = steer()
    assert (stopped["state"], stopped["next_harvest"], stopped["every"]) == ("stopped", None, "1m")
    tamias.crawl("--recrawl")
    assert portal.site.asked("/data.json") == asked
    assert states(tamias) == {portal.site.url("/one.csv"): "active"}
    refused = tamias.run("portals", "harvest", portal.url)
    assert refused.returncode == 2
    assert not unsaid(refused.stderr, portal.url, "resume")
    steer("resume", portal.url)
    harvested(tamias)
    assert portal.site.asked("/data.json") == asked + 1


def test_what_only_a_removed_portal_names_is_no_longer_watched(tamias, portal, steer):
    portal.offer("one", "two", "three")
    assert tamias.run("add", f"data-json:{portal.url}").returncode == 0
    other = DataJson(portal.site, portal.reply)
    harvested(tamias)
    assert tamias.run("add", portal.site.url("/two.csv")).returncode == 0
    done = steer("remove", portal.url)["done"]
    assert not unsaid(done, "2")
    assert steer() == []
    assert states(tamias) == {
        other.site.url("/one.csv"): "stopped",
        other.site.url("/two.csv"): "active",
        other.site.url("/three.csv"): "stopped",
    }
    versions = tamias.run("versions", portal.site.url("/one.csv"), "--json")
    assert len(json.loads(versions.stdout)) == 1
    assert tamias.run("add", f"data-json:{portal.url}").returncode == 0
    assert [each["state"] for each in steer()] == ["active"]


def test_a_portal_that_is_removed_during_its_harvest_is_not_harvested_on(tamias, portal, steer):
    portal.offer(*(f"d{number:03}" for number in range(500)))  # three steps
    reached, goes_on = threading.Event(), threading.Event()
    page = portal.site.pages["/data.json"]

    def wait(handler):
        reached.set()
        goes_on.wait(60)
        page(handler)

    portal.site.pages["/data.json"] = wait
    assert tamias.run("add", f"data-json:{portal.url}").returncode == 0
    crawl = tamias.start("crawl", "--recrawl", "--allow-private", "--delay", "0", "--workers", "1")
    assert reached.wait(120)
    tamias.wait_until(lambda: [each["state"] for each in steer()] == ["harvesting"])
    steer("remove", portal.url)
    goes_on.set()
    crawl.communicate(timeout=300)
    assert set(states(tamias).values()) <= {"stopped"}
    [job] = steer("history", portal.url)
    # A crawl ends when nothing is left to visit; then its worker may be gone before its next step.
    assert job["state"] in ("skipped", "cut off")
    assert job["reason"].startswith(("stopped by its user", "cut off"))
    tamias.crawl("--recrawl")
    assert portal.site.asked("/data.json") == 1


@pytest.mark.processes
def test_a_harvest_that_was_killed_is_cut_off_and_the_next_one_finishes(tamias, portal, steer):
    portal.offer("one", "two")
    page, reached = portal.site.pages["/data.json"], threading.Event()
    portal.site.pages["/data.json"] = lambda _handler: (reached.set(), threading.Event().wait(20))
    assert tamias.run("add", f"data-json:{portal.url}").returncode == 0
    crawl = tamias.start("crawl", "--recrawl", "--allow-private", "--delay", "0", "--workers", "1")
    assert reached.wait(120)
    for worker in [*tamias.workers(), crawl.pid]:
        os.kill(worker, signal.SIGKILL)
    crawl.communicate()
    portal.site.pages["/data.json"] = page
    harvested(tamias)
    assert [each["state"] for each in steer("history", portal.url)] == ["ok", "cut off"]
    assert steer()[0]["datasets"] == 2


def test_a_portal_of_unknown_software_is_one_portal_when_it_is_found(tamias, portal, steer):
    front = b'<meta name="generator" content="ckan 2.10">'
    portal.site.pages["/"] = portal.reply(200, front, content_type="text/html")
    body = json.dumps({"success": True, "result": {"count": 0, "results": []}}).encode()
    portal.site.pages["/api/3/action/package_search?"] = portal.reply(200, body)
    address = portal.site.url("/dataset")
    assert tamias.run("add", "--portal", address).returncode == 0
    assert [(each["url"], each["kind"]) for each in steer()] == [(address, "portal")]
    tamias.crawl("--recrawl")
    assert [(each["url"], each["kind"]) for each in steer()] == [(portal.site.url("/"), "ckan")]
    steer("stop", address)
    assert [(each["url"], each["state"]) for each in steer()] == [(portal.site.url("/"), "stopped")]
    assert tamias.run("add", "--portal", address).returncode == 0
    tamias.crawl("--recrawl")
    assert [(each["url"], each["kind"]) for each in steer()] == [(portal.site.url("/"), "ckan")]
    assert steer()[0]["state"] != "stopped"


SECRET = "acorn and oak"


class Service:
    """`tamias serve` over the archive of a test, as a client with the secret sees it."""

    def __init__(self, tamias, starting):
        self.start = lambda: starting(
            *(tamias.data, "--allow-private", "--delay", "0", "--workers", "1"),
            TAMIAS_SECRET=SECRET,
            **{name: value for name, value in tamias.env.items() if name.startswith("TAMIAS_")},
        )
        self.running = self.start()
        self.tamias = tamias

    def get(self, path, **query):
        answer = httpx.get(f"{self.running.address}/api/v1/portals{path}", params=query, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    def post(self, path, body=None, **query):
        headers = {"Authorization": f"Bearer {SECRET}"}
        address = f"{self.running.address}/api/v1/{path}"
        return httpx.post(address, params=query, json=body, headers=headers, timeout=60)

    def restart(self):
        self.running.stop()
        self.running = self.start()


@pytest.fixture
def starting():
    """`starting(data, *words)` is a service that runs until the test is over."""
    made = []

    def start(*words, **variables):
        made.append(Running(*words, **variables))
        return made[-1]

    yield start
    for each in made:
        each.stop()


def test_a_portal_is_steered_over_rest_and_by_its_page(tamias, portal, starting):
    portal.offer("one", "two")
    tamias.run("add", portal.site.url("/other.csv"))
    service = Service(tamias, starting)
    assert service.post("post/resource", {"url": portal.url, "kind": "data-json"}).status_code == 201
    tamias.wait_until(lambda: service.get("")[0]["state"] == "active")
    [found] = service.get("")
    assert (found["datasets"], found["files"]) == (2, 2)
    assert service.post("portals/harvest", url=portal.url).json()["done"] == "due now"
    tamias.wait_until(
        lambda: [each["state"] for each in service.get("/harvests", url=portal.url)] == ["unchanged", "ok"]
    )
    [newest] = service.get("/harvests", url=portal.url, limit=1)
    assert newest["state"] == "unchanged"
    assert service.post("portals/every", url=portal.url, every="2w").status_code == 200
    assert service.post("portals/every", url=portal.url).status_code == 400
    assert service.post("portals/stop", url="http://nobody.example/").status_code == 404
    unsigned = httpx.post(f"{service.running.address}/api/v1/portals/stop", params={"url": portal.url})
    assert unsigned.status_code == 401
    with httpx.Client(base_url=service.running.address, headers={"Accept": "text/html"}) as browser:
        browser.post("/sign-in", data={"secret": SECRET})
        page = browser.get("/portal", params={"url": portal.url}).text
        token = page.partition('name="token" value="')[2].partition('"')[0]
        fields = {"token": token, "url": portal.url, "do": "stop"}
        assert browser.post("/portal/steer", data=fields).status_code == 303
        assert browser.post("/portal/steer", data=fields | {"token": "x"}).status_code == 403
        assert browser.post("/portal/steer", data=fields | {"do": "eat"}).status_code == 400
        stopped = browser.get("/portal", params={"url": portal.url}).text
        assert "Harvest again" in stopped
        assert "Harvest again" not in page
    [found] = service.get("")
    assert (found["state"], found["every"], found["next_harvest"]) == ("stopped", "2w", None)


def test_a_harvest_that_the_end_of_the_service_interrupts_is_cut_off_until_the_next_one(
    tamias, portal, steer, starting
):
    portal.offer("one")
    page, reached = portal.site.pages["/data.json"], threading.Event()
    portal.site.pages["/data.json"] = lambda _handler: (reached.set(), threading.Event().wait(30))
    tamias.run("add", f"data-json:{portal.url}")
    service = Service(tamias, starting)
    assert reached.wait(120)
    service.running.stop()
    [found] = steer()
    assert (found["state"], found["trouble"].partition(":")[0]) == ("failing", "cut off")
    portal.site.pages["/data.json"] = page
    service.restart()
    tamias.wait_until(lambda: service.get("")[0]["state"] == "active")
    assert [each["state"] for each in steer("history", portal.url)] == ["ok", "cut off"]


def test_the_page_of_a_portal_counts_a_file_that_is_gone_as_gone_and_not_as_failing(
    tamias, portal, reply, starting
):
    portal.offer("one", "two", "three")
    del portal.site.pages["/two.csv"]
    portal.site.pages["/three.csv"] = reply(403)
    assert tamias.run("add", f"data-json:{portal.url}").returncode == 0
    tamias.crawl("--recrawl")
    running = starting(tamias.data, "--no-crawl")
    page = httpx.get(f"{running.address}/portal.json", params={"url": portal.url}).json()
    assert page["hosts"] == [{"host": "127.0.0.1", "datasets": 3, "gone": 1, "never": 2, "failing": 1}]
    assert [each["state"] for each in page["harvests"]] == ["ok"]


def test_removed_during_a_harvest_with_a_file_forgotten_it_stays_so_when_the_service_is_restarted(
    tamias, portal, starting
):
    portal.offer("one", "two")
    tamias.run("add", portal.site.url("/other.csv"))
    service = Service(tamias, starting)
    assert service.post("post/resource", {"url": portal.url, "kind": "data-json"}).status_code == 201
    tamias.wait_until(lambda: portal.site.asked("/one.csv") and portal.site.asked("/two.csv"))
    portal.offer("one", "two", "three")
    page, reached, goes_on = portal.site.pages["/data.json"], threading.Event(), threading.Event()

    def wait(handler):
        reached.set()
        goes_on.wait(120)
        page(handler)

    portal.site.pages["/data.json"] = wait
    tamias.wait_until(lambda: service.get("")[0]["state"] == "active")
    assert service.post("portals/harvest", url=portal.url).status_code == 200
    assert reached.wait(120)
    assert service.post("portals/remove", url=portal.url).status_code == 200
    forgotten = tamias.run("forget", portal.site.url("/one.csv"), "--reason", "asked for")
    assert forgotten.returncode == 0, forgotten.stderr
    goes_on.set()
    tamias.wait_until(lambda: service.get("/harvests", url=portal.url)[0]["state"] != "running")
    service.restart()
    assert service.get("") == []
    asked = portal.site.asked("/data.json")
    assert service.post("portals/resume", url=portal.url).status_code == 200
    tamias.wait_until(lambda: portal.site.asked("/data.json") > asked)
    tamias.wait_until(lambda: service.get("/harvests", url=portal.url)[0]["state"] == "ok")
    tamias.wait_until(lambda: portal.site.asked("/three.csv"))
    assert portal.site.asked("/one.csv") == 1
    assert service.get("/harvests", url=portal.url)[1]["state"] == "skipped"
