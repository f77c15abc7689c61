"""Alerts of what changes between two harvests: lost datasets, failures, columns, licences, walls, blocks."""

import json
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tamias.archive.moments import milliseconds
from tamias.database.connect import Database
from tamias.features.alerts.messages import look
from tamias.features.alerts.settings import AlertsSettings
from tests.messages import unsaid

from .conftest import Running

SCHEMA = "https://project-open-data.cio.gov/v1.1/schema"
BY = "https://creativecommons.org/licenses/by/4.0/"
ZERO = "https://creativecommons.org/publicdomain/zero/1.0/"
ANUBIS = (
    b"<title>Making sure you're not a bot!</title><script id='anubis_challenge' type='application/json'>{}"
)


class Portal:
    """A portal with a `data.json`, watched by an archive that is asked for its alerts after each harvest."""

    def __init__(self, tamias, site, reply):
        self.tamias, self.site, self.reply = tamias, site, reply
        self.url = site.url("/data.json")
        tamias.env |= {"TAMIAS_SCHEDULE__HARVESTS": "0.1", "TAMIAS_SCHEDULE__MIN_INTERVAL": "0.1"}
        tamias.env |= {"TAMIAS_CRAWL__RETRIES": "0", "TAMIAS_SCHEDULE__RETRY_WAIT": "0.1"}

    def offer(self, datasets, licence=BY, table=b"name,count\nred,1\nblue,2\n"):
        entries = []
        for number in range(datasets):
            file = self.site.url(f"/{number}.csv")
            if number:  # the first file is dead from the start
                body = table + b"row %d,%d\n" % (number, number)
                self.site.pages[f"/{number}.csv"] = self.reply(200, body, content_type="text/csv")
            entries.append(
                {
                    "@type": "dcat:Dataset", "identifier": f"d{number}", "title": f"Dataset {number}",
                    "license": licence,
                    "distribution": [
                        {"@type": "dcat:Distribution", "downloadURL": file, "mediaType": "text/csv"}
                    ],
                }
            )  # fmt: skip
        body = json.dumps({"conformsTo": SCHEMA, "dataset": entries}).encode()
        self.site.pages["/data.json"] = self.reply(200, body, content_type="application/json")

    def harvest(self):
        """Visit all that is watched; return what is reported then, by kind."""
        self.tamias.crawl("--recrawl")
        settings = AlertsSettings(webhook="http://hook.example/", disk=0.0, digest=0.0)
        with closing(Database(self.tamias.data, create=False)) as base, closing(base.session()) as session:
            look(session, Path(self.tamias.data), settings, pause_ms=0)
            rows = session.fetch_all(b"SELECT alert_message.body FROM alert_message")
            session.execute(b"DELETE FROM alert_message")
        alerts = [alert for (body,) in rows for alert in json.loads(body)["alerts"]]
        return {alert["kind"]: alert["text"].replace(self.site.url(""), "") for alert in alerts}


@pytest.fixture
def portal(tamias, site, reply):
    portal = Portal(tamias, site, reply)
    portal.offer(20)
    assert tamias.run("add", "--portal", f"data-json:{portal.url}").returncode == 0
    assert portal.harvest() == {}, "a first harvest misses nothing, dead links included"
    return portal


def test_a_portal_that_lost_half_of_its_datasets_is_reported_once_and_listed(portal):
    portal.offer(10)
    found = portal.harvest()
    assert list(found) == ["lost"]
    assert found["lost"].startswith("/data.json lost 10 of 20 datasets between ")
    assert portal.harvest() == {}
    running = Running(portal.tamias.data, "--no-crawl")
    try:
        [item] = httpx.get(f"{running.address}/api/v1/alerts?kind=lost&about={portal.url}").json()["items"]
        others = httpx.get(f"{running.address}/api/v1/alerts?kind=gone").json()["items"]
        atom = httpx.get(f"{running.address}/api/v1/alerts.atom").text
        metrics = httpx.get(f"{running.address}/metrics").text
        refused = httpx.get(f"{running.address}/api/v1/alerts?kind=other").status_code
    finally:
        running.stop()
    assert item["text"].replace(portal.site.url(""), "") == found["lost"]
    assert others == []
    assert f"<summary>{item['text']}</summary>" in atom
    assert 'tamias_attention{kind="lost"} 1.0' in metrics
    assert refused == 400


def test_a_first_harvest_is_quiet_whatever_its_files_answer(tamias, site, reply):
    portal = Portal(tamias, site, reply)
    portal.offer(300)
    page = reply(200, b"<!doctype html><p>Not found", content_type="text/html")
    wall = reply(200, ANUBIS, content_type="text/html")
    answers = [reply(status) for status in (401, 403, 404, 410, 429, 500, 503)] + [page, wall]
    for number in range(1, 100):
        site.pages[f"/{number}.csv"] = answers[number % len(answers)]
    assert tamias.run("add", "--portal", portal.url).returncode == 0
    assert portal.harvest() == {}
    assert portal.harvest() == {}


def test_what_was_there_is_gone_since_it_went(portal):
    del portal.site.pages["/1.csv"]
    before = time.time() * 1000
    assert list(portal.harvest()) == ["gone"]
    after = time.time() * 1000
    portal.harvest()
    running = Running(portal.tamias.data, "--no-crawl")
    try:
        [item] = httpx.get(f"{running.address}/api/v1/alerts?kind=gone").json()["items"]
    finally:
        running.stop()
    assert before <= milliseconds(item["since"]) <= after


def test_one_of_twenty_datasets_is_no_alarm(portal):
    portal.offer(19)
    assert portal.harvest() == {}


def test_a_harvest_that_fails_or_finds_no_portal_is_reported_until_one_succeeds(portal):
    portal.site.pages["/data.json"] = portal.reply(503)
    assert "503" in portal.harvest()["harvest"]
    assert portal.harvest() == {}
    portal.offer(20)
    assert portal.harvest() == {}
    portal.site.pages["/data.json"] = portal.reply(200, b"<p>moved", content_type="text/html")
    assert list(portal.harvest()) == ["harvest"]


def test_columns_that_were_added_removed_or_changed_their_type_are_named(portal):
    portal.site.pages["/1.csv"] = portal.reply(
        200, b"count,colour\nmany,red\nfew,blue\n", content_type="text/csv"
    )
    assert portal.harvest() == {
        "columns": "Columns of /1.csv changed with version 2: added: colour; removed: name;"
        " changed their type: count (integer, now string)."
    }


def test_a_licence_that_changed_is_reported_for_the_portal(portal):
    portal.offer(20, licence=ZERO)
    found = portal.harvest()
    assert list(found) == ["licence"]
    assert found["licence"].startswith("20 datasets of /data.json changed their licence, such as ")
    assert found["licence"].endswith(f": {BY}, now {ZERO}.")


def test_a_wall_that_went_up_is_reported_for_its_host_and_over_when_it_is_down(portal):
    for number in range(1, 20):
        portal.site.pages[f"/{number}.csv"] = portal.reply(200, ANUBIS, content_type="text/html")
    found = portal.harvest()
    assert list(found) == ["wall"]
    assert not unsaid(found["wall"], "19", "200")
    running = Running(portal.tamias.data, "--no-crawl")
    try:
        page = httpx.get(f"{running.address}/crawl/watch", headers={"Accept": "text/html"}).text
    finally:
        running.stop()
    assert "<li>127.0.0.1: " in page
    assert not unsaid(page, part=2)
    portal.offer(20)
    assert portal.harvest() == {}
    with closing(Database(portal.tamias.data, create=False)) as base, closing(base.session()) as session:
        assert session.fetch_all(b"SELECT alert.text FROM alert") == []


def test_a_host_that_refuses_us_is_reported(portal):
    for number in range(1, 20):
        portal.site.pages[f"/{number}.csv"] = portal.reply(403)
    found = portal.harvest()
    assert list(found) == ["blocked"]
    assert "19 watched resources; " in found["blocked"]
    assert "403 Forbidden" in found["blocked"]
