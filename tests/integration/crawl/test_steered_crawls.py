"""Crawls that are made and steered over REST: beside a restart, running workers and later commands."""

import json
import threading
import time
from contextlib import contextmanager

import httpx
import pytest

from tests.ports import free_port

LAST = 12
SEEDS = ("/0", "/hidden.ttl")


@pytest.fixture
def chain(site, reply):
    """Pages that each link to the next, the number of a page is its depth; and what robots.txt forbids."""
    for number in range(LAST):
        site.pages[f"/{number}"] = f"<> <#to> </{number + 1}> .".encode()
    site.pages[f"/{LAST}"] = b"<> <#is> <#last> ."
    site.pages["/other.ttl"] = b"<> <#is> <#other> ."
    rules = b"User-agent: *\nDisallow: /hidden.ttl\n"
    site.pages["/robots.txt"] = reply(200, rules, Content_Type="text/plain")
    return site


def depths(site):
    return sorted({int(path[1:]) for path, _ in site.log if path[1:].isdigit()})


class Steered:
    """The service, called as a client with its secret."""

    def __init__(self, address, secret):
        self.http = httpx.Client(base_url=address, timeout=60, headers={"Authorization": f"Bearer {secret}"})

    def change(self, name="wood", *, status=200, trial=False, **words):
        path = f"/api/v1/crawls/{name}" + ("/dry-run" if trial else "")
        answer = self.http.post(path, json=words)
        assert answer.status_code == status, answer.text
        return answer.json()

    def steer(self, action, name="wood", **words):
        answer = self.http.post(f"/api/v1/frontier/{action}", params={"crawl": name, **words})
        assert answer.status_code == 200, answer.text

    def details(self, name="wood"):
        return self.http.get(f"/api/v1/crawls/{name}").json()


@pytest.fixture
def serving(tamias):
    """`with serving(*words) as steered`: the service on the same data, until the block ends."""

    @contextmanager
    def serve(*words):
        port = free_port()
        usual = ("--allow-private", "--delay", "0.2", "--workers", "1")
        service = tamias.start("serve", "--port", str(port), *usual, *words)
        said = next(line for line in service.stderr if "serving at" in line or "tamias:" in line)
        assert "serving at" in said, said
        threading.Thread(target=service.stderr.read, daemon=True).start()
        steered = Steered(f"http://127.0.0.1:{port}", (tamias.data / "secret").read_text().strip())
        try:
            yield steered
        finally:
            steered.http.close()
            service.terminate()
            service.wait(timeout=60)

    return serve


def options(tamias, name="wood"):
    """What the row of a crawl says that it may do."""
    (found,) = (each for each in json.loads(tamias.run("crawls", "--json").stdout) if each["name"] == name)
    return found["policy"]["options"]


def unchanged(site, steered):
    """Return whether no page was requested while another crawl was worked on."""
    path = f"/witness-{len(site.pages)}.ttl"
    site.pages[path] = b"<> <#is> <#witness> ."
    before = depths(site)
    steered.change(path[1:-4], status=201, seeds=[site.url(path)], start=True)
    deadline = time.monotonic() + 60
    while not site.asked(path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert site.asked(path)
    return depths(site) == before


def test_a_dry_run_says_what_would_be_fetched_and_changes_nothing(tamias, chain, serving):
    lines = ["uri", *map(chain.url, SEEDS), "no address", "# a comment", ""]
    with serving() as steered:
        seen = steered.change(trial=True, seeds=lines, options={"scope": "host", "depth": 1})
        assert (seen["fetch"], [*seen["refused"]]) == ([chain.url("/0")], [chain.url("/hidden.ttl")])
        assert "Disallow: /hidden.ttl" in seen["refused"][chain.url("/hidden.ttl")]
        assert any("seeds line 4" in each for each in seen["skipped"])
        assert [path for path, _ in chain.log] == ["/robots.txt"]
        assert steered.http.get("/api/v1/crawls/wood").status_code == 404


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ({"options": {"delay": 0.1}}, "'delay'"),
        ({"options": {"sinks": ["sparql:http://127.0.0.1/update"]}}, "a sink with a target"),
        ({"options": {"sinks": ["nothing"]}}, "'nothing'"),
        ({"options": {"scope": "world"}}, "world"),
        ({"options": {"include": ["("]}}, "("),
        ({"options": {"allow_private": True}}, "allow_private"),
        ({"seeds": []}, "seeds"),
        ({"seeds": ["no address"]}, "no seed can be crawled"),
    ],
)
def test_what_may_not_be_made_is_refused_and_leaves_nothing(chain, serving, words, part):
    with serving() as steered:
        answer = steered.change(status=400, **{"seeds": [chain.url("/0")], **words})
        assert part in answer["detail"]
        assert steered.http.get("/api/v1/crawls/wood").status_code == 404


@pytest.mark.parametrize("name", ["%00", "%20", "%20wood", "%C2%85", "watch", "x" * 300])
def test_a_name_that_no_address_can_hold_is_refused(chain, serving, name):
    with serving() as steered:
        steered.change(name, status=400, seeds=[chain.url("/0")])
        secret = steered.http.headers["Authorization"].removeprefix("Bearer ")
        form = {"secret": secret, "name": "a/b", "seeds": chain.url("/0"), "do": "start"}
        assert steered.http.post("/crawls", data=form).status_code == 400
        assert len(steered.http.get("/api/v1/frontier").json()["crawls"]) == 2


def test_nobody_makes_a_crawl_without_the_secret(chain, serving):
    with serving() as steered:
        address = str(steered.http.base_url)
        bare = httpx.post(f"{address}/api/v1/crawls/wood", json={"seeds": [chain.url("/0")]})
        assert bare.status_code == 401
        form = {"name": "wood", "seeds": chain.url("/0"), "do": "start"}
        assert httpx.post(f"{address}/crawls", data=form).status_code == 403
        assert steered.http.get("/api/v1/crawls/wood").status_code == 404


def test_a_token_needs_the_scope_and_no_bounds_and_a_form_its_own_page(chain, serving):
    request = {"seeds": [chain.url("/0")]}
    with serving() as steered:
        address = str(steered.http.base_url)
        for scope, bounds, status in (("add", [], 403), ("crawl", ["127.0.0.1"], 403), ("crawl", [], 201)):
            new = {"name": f"t{status}{len(bounds)}", "scopes": [scope], "bounds": bounds}
            token = steered.http.post("/api/v1/tokens", json=new).json()["token"]
            headers = {"Authorization": f"Bearer {token}"}
            path = f"{address}/api/v1/crawls/wood"
            assert httpx.post(path, json=request, headers=headers, timeout=60).status_code == status
        secret = steered.http.headers["Authorization"].removeprefix("Bearer ")
        with httpx.Client(base_url=address, timeout=60) as user:
            assert user.post("/sign-in", data={"secret": secret}).status_code == 303
            form = {"do": "stop"}  # as another site would send it: with the cookie, without the token
            assert user.post("/crawl/wood/steer", data=form).status_code == 403
            assert user.post("/api/v1/frontier/stop?crawl=wood").status_code == 401


def test_a_pause_outlives_a_restart_of_the_service(tamias, chain, serving):
    with serving() as steered:
        steered.change(status=201, seeds=[chain.url("/0")], options={"depth": 9}, start=True)
        tamias.wait_until(lambda: len(depths(chain)) >= 2)
        steered.steer("pause")
        assert steered.details()["state"] == "paused"
    visited = depths(chain)
    with serving() as steered:
        assert unchanged(chain, steered)
        assert (depths(chain), steered.details()["state"]) == (visited, "paused")
        steered.steer("resume")
        tamias.wait_until(lambda: steered.details()["open"] == 0)
    assert depths(chain) == [*range(10)]


def test_what_is_widened_while_workers_run_is_visited_by_them(tamias, chain, serving):
    with serving() as steered:
        made = steered.change(status=201, seeds=[chain.url("/0")], options={"depth": 4}, start=True)
        assert (made["new"], made["state"]) == (1, "service")
        tamias.wait_until(lambda: len(depths(chain)) >= 2)
        changed = steered.change(seeds=[chain.url("/other.ttl")], options={"depth": 7})
        assert (changed["new"], changed["changes"]) == (1, ["crawl.depth 4 → 7"])
        tamias.wait_until(lambda: steered.details()["open"] == 0 and depths(chain)[-1] == 7)
        assert depths(chain) == [*range(8)]
        assert chain.asked("/other.ttl")
        again = steered.change(options={"depth": 9})
        assert again["reopened"] == [{"option": "depth", "urls": 1}]
        tamias.wait_until(lambda: steered.details()["open"] == 0 and depths(chain)[-1] == 9)


def test_a_stopped_crawl_is_continued_by_the_command_under_its_options(tamias, chain, serving):
    wanted = {"depth": 5, "scope": "host", "sinks": ["warc"], "exclude": ["/3$"]}
    with serving() as steered:
        steered.change(status=201, seeds=[chain.url("/0")], options=wanted, start=True)
        tamias.wait_until(lambda: len(depths(chain)) >= 2)
        before = options(tamias)
        assert "stopped" in tamias.run("crawls", "stop", "wood").stdout
        assert steered.details()["state"] == "stopped"
        assert unchanged(chain, steered)
    done = tamias.run("crawl", "--crawl", "wood", "--workers", "1", "--allow-private", "--delay", "0.2")
    assert done.returncode == 0, done.stderr
    assert options(tamias) == before
    assert (before["crawl.depth"], before["filters.scope"], before["crawl.sinks"]) == (5, "host", ["warc"])
    assert depths(chain) == [0, 1, 2]
    assert any((tamias.data / "warc").iterdir())
    done = tamias.run("crawl", "--crawl", "wood", "--exclude", "", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert depths(chain) == [*range(6)]
    with serving() as steered:
        assert steered.details()["options"]["exclude"] == []


def test_a_limit_and_other_options_stay_when_one_is_changed(tamias, chain, serving):
    with serving() as steered:
        wanted = {"depth": 9, "max_urls": 3, "scope": "host"}
        steered.change(status=201, seeds=[chain.url("/0")], options=wanted, start=True)
        tamias.wait_until(lambda: steered.details()["state"] == "stopped")
        assert depths(chain) == [0, 1, 2]
        steered.change(options={"delay": 0.3})
        found = steered.details()["options"]
        assert {name: found[name] for name in wanted} == wanted
        steered.steer("resume", by="service")
        tamias.wait_until(lambda: steered.details()["state"] == "stopped")
        assert depths(chain) == [*range(6)]
        steered.change(options={"max_urls": 0}, start=True)
        tamias.wait_until(lambda: steered.details()["open"] == 0)
    assert depths(chain) == [*range(10)]


def test_an_export_has_the_graphs_of_one_crawl_as_the_command_writes_them(tamias, chain, serving):
    with serving() as steered:
        for name, path in (("wood", "/0"), ("meadow", "/other.ttl")):
            steered.change(name, status=201, seeds=[chain.url(path)], options={"depth": 2}, start=True)
            tamias.wait_until(lambda name=name: steered.details(name)["open"] == 0)
        found = steered.http.get("/api/v1/crawls/wood/export", params={"format": "nquads"})
        assert found.headers["content-type"] == "application/n-quads"
        assert steered.http.get("/api/v1/crawls/nobody/export").status_code == 404
        assert steered.http.get("/api/v1/crawls/wood/export?format=hdt").status_code == 400
    lines = set(found.text.splitlines())
    graphs = {line.split(" ")[-2] for line in lines}
    assert graphs == {f"<{chain.url(f'/{number}')}>" for number in range(3)}
    assert lines == set(tamias.run("export", "--crawl", "wood").stdout.splitlines())
    assert lines < tamias.quads()
    assert tamias.run("export", "--crawl", "wood", "--format", "warc").returncode == 2
