"""What `tamias serve` and `tamias crawl` log: a line for each request and visit, and no secret."""

import json
import signal
import time

import httpx
import pytest

from .conftest import SECRET, Running

WORDS = ("hunter2", "swordfish", SECRET, SECRET.replace(" ", "%20"), SECRET.replace(" ", "+"))


def ended(running):
    running.process.send_signal(signal.SIGINT)
    return running.process.communicate(timeout=60)[1]


def ask(running):
    """Requests with secrets at every place where one can be."""
    with httpx.Client(base_url=running.address, timeout=30) as client:
        bearer = {"Authorization": f"Bearer {SECRET}"}
        client.get("/api/v1/stats/basic")
        client.get("/api/v1/changes", params={"secret": SECRET, "q": "swordfish"})
        client.get("/timemap/json/http://me:hunter2@data.example/a.csv")
        client.get("/api/v1/get/dataset/http%3Ame%3Ahunter2%40data.example/a.csv")
        client.get("/nowhere\u2028%0AINFO forged")
        refused = {"url": "http://me:hunter2@nowhere.invalid/x.csv"}
        client.post("/api/v1/post/resource", json=refused, headers=bearer)
        client.post("/sign-in", data={"secret": SECRET, "next": "/"}, headers={"Origin": running.address})


def test_a_line_for_each_request_and_none_has_a_secret(filled):
    running = Running(filled.data, "--no-crawl", "-vv", TAMIAS_SECRET=SECRET)
    ask(running)
    said = ended(running)
    lines = [each for each in said.splitlines() if each.startswith("INFO tamias.serve.access: ")]
    asked = [each.split()[2:5] for each in lines if "/healthz" not in each]
    assert asked[:2] == [["GET", "/api/v1/stats/basic", "200"], ["GET", "/api/v1/changes", "200"]]
    assert len(asked) == 7
    assert "/timemap/json/http://me:…@data.example/a.csv" in said
    assert not [each for each in said.splitlines() if each.startswith("INFO forged")]
    assert not [word for word in WORDS if word in said]


def test_json_lines_are_json_each_with_its_fields(filled):
    running = Running(filled.data, "--no-crawl", "-v", "--log", "json", TAMIAS_SECRET=SECRET)
    ask(running)
    said = ended(running)
    told = [json.loads(each) for each in said.splitlines() if each.startswith("{")]
    [basic] = [each for each in told if each.get("path") == "/api/v1/stats/basic"]
    assert (basic["method"], basic["status"], basic["level"]) == ("GET", 200, "info")
    assert basic["milliseconds"] > 0
    assert not [word for word in WORDS if word in said]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_crawl_says_each_visit(tamias, site, reply, form):
    site.pages["/a.ttl"] = reply(
        200, b"<> <http://x.example/p> <b.ttl>, <c.ttl> .", content_type="text/turtle"
    )
    site.pages["/b.ttl"] = reply(500, b"broken")
    refused = site.url("/d.ttl").replace("//", "//me:hunter2@")
    done = tamias.crawl(site.url("/a.ttl"), refused, "-v", "--log", form)
    assert "hunter2" not in done.stderr + done.stdout
    if form == "json":
        told = [json.loads(each) for each in done.stderr.splitlines() if each.startswith("{")]
        visits = {each["url"].rpartition("/")[2]: each for each in told if each["logger"] == "tamias.visits"}
        assert {name: each["outcome"] for name, each in visits.items()}["a.ttl"] == "ok"
        assert (visits["a.ttl"]["status"], visits["a.ttl"]["quads"]) == (200, 2)
        assert visits["c.ttl"]["outcome"] == "gone"
    else:
        lines = [each for each in done.stderr.splitlines() if each.startswith("INFO tamias.visits: ")]
        assert [
            each for each in lines if each.startswith("INFO tamias.visits: ok 200 http") and "2 quads" in each
        ]
        assert [each for each in lines if "/c.ttl" in each and "404" in each]


def test_a_refused_seed_is_told_without_its_password(tamias, site):
    done = tamias.crawl(site.url("/a.ttl").replace("//", "//me:hunter2@"), "-v")
    assert (done.returncode, "me@127.0.0.1" in done.stderr) == (1, True)
    assert "hunter2" not in done.stderr + done.stdout


def test_without_v_nothing_is_said_of_requests(filled):
    running = Running(filled.data, "--no-crawl", TAMIAS_SECRET=SECRET)
    httpx.get(f"{running.address}/api/v1/stats/basic")
    time.sleep(0.1)
    assert "tamias.serve.access" not in ended(running)
