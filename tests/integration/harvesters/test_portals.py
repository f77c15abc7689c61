"""Portals are things: listed as soon as they are added, harvested, stopped, resumed and removed."""

import json
import os
import signal
import threading
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tests.all_resources import all_resources
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
    asked = portal.site.asked("/data.json")
    tamias.env["TAMIAS_SCHEDULE__HARVESTS"] = "0.1"
    steer("every", portal.url, "1m")
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
    assert (job["state"], job["reason"]) == ("skipped", "stopped by its user")
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
