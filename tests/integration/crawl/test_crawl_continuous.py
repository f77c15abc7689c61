"""A crawl that goes on: what changes is read again, what does not is asked for, what is gone is let go."""

import time
from collections import Counter
from datetime import UTC, datetime

import pytest

from tests.ports import free_port

TURTLE = {"Content-Type": "text/turtle"}


def send(handler, status, body=b"", **headers):
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def statement(word, *links):
    named = "".join(f"<#it> <http://e/see> <{link}> .\n" for link in links)
    return f'{named}<#it> <http://e/is> "{word}" .\n'.encode()


class Pages:
    """A few documents: one changes with every visit, one never does, one vanishes, one has moved."""

    def __init__(self, site):
        self.site = site
        self.visits = 0
        self.conditional = []
        site.pages["/robots.txt"] = b""
        site.pages["/start.ttl"] = self.start
        site.pages["/still.ttl"] = self.still
        site.pages["/plain.ttl"] = lambda handler: send(handler, 200, statement("plain"), **TURTLE)
        site.pages["/gone.ttl"] = self.gone
        site.pages["/old.ttl"] = lambda handler: send(handler, 301, Location="/new.ttl")
        site.pages["/new.ttl"] = lambda handler: send(handler, 200, statement("new"), **TURTLE)

    def start(self, handler):
        self.visits += 1
        body = statement(f"visit {self.visits}", "still.ttl", "plain.ttl", "gone.ttl", "old.ttl")
        send(handler, 200, body, **TURTLE)

    def still(self, handler):
        self.conditional.append(handler.headers.get("If-None-Match"))
        if self.conditional[-1] == '"still"':
            send(handler, 304, ETag='"still"')
        else:
            send(handler, 200, statement("still"), ETag='"still"', **TURTLE)

    def gone(self, handler):
        if self.asked("/gone.ttl") > 1:
            send(handler, 404)
        else:
            send(handler, 200, statement("soon gone"), **TURTLE)

    def asked(self, path):
        return sum(each == path for each, _ in self.site.log)


@pytest.fixture
def pages(site):
    return Pages(site)


@pytest.fixture
def quick(tamias):
    """A schedule of seconds instead of days."""
    tamias.env |= {
        "TAMIAS_SCHEDULE__RULE": "fixed:1",
        "TAMIAS_SCHEDULE__MIN_INTERVAL": "1",
        "TAMIAS_SCHEDULE__GONE_WAIT": "0.2",
        "TAMIAS_SCHEDULE__GONE_VISITS": "3",
        "TAMIAS_SEEDS__PROBE": "false",
    }
    return tamias


def crawl_until(tamias, condition, *words):
    """A continuous crawl that is stopped when there is enough of it."""
    usual = ("--allow-private", "--delay", "0", "--workers", "1")
    process = tamias.start("crawl", *usual, *words)
    try:
        tamias.wait_until(condition)
    except AssertionError:
        process.terminate()
        pytest.fail(process.communicate(timeout=30)[1])
    finally:
        process.terminate()
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130, told
    return told


def outcomes(tamias, url):
    return Counter(each["outcome"] for each in tamias.attempts()[url])


def test_every_url_is_visited_again_and_what_changed_is_what_is_exported(quick, pages):
    start, gone = pages.site.url("/start.ttl"), pages.site.url("/gone.ttl")
    told = crawl_until(
        quick,
        lambda: pages.visits > 6 and pages.asked("/gone.ttl") > 3 and pages.asked("/new.ttl") > 3,
        *("--continuous", "--scope", "host", start),
    )
    assert "visited before" in told
    assert set(pages.conditional[1:]) == {'"still"'}
    attempts = {name: outcomes(quick, pages.site.url(f"/{name}.ttl")) for name in ("still", "plain", "gone")}
    assert attempts["gone"] == {"ok": 1, "gone": 3}, "after three visits in vain it is let go"
    for name in ("still", "plain"):
        assert attempts[name].keys() == {"ok", "unchanged"}
        assert attempts[name]["ok"] == 1
    assert pages.asked("/old.ttl") == 1, "what moved for good is visited at its new address"
    exported = "".join(quick.quads())
    assert f'"visit {outcomes(quick, start)["ok"]}"' in exported
    assert exported.count("visit ") == 1
    assert "soon gone" not in exported
    assert '"new"' in exported
    assert gone not in exported.replace(f"<http://e/see> <{gone}>", "")


def test_a_crawl_that_had_ended_goes_on_and_its_export_since_a_time_has_what_changed(quick, pages):
    start = pages.site.url("/start.ttl")
    assert quick.crawl("--scope", "host", start).returncode == 0
    assert pages.visits == 1
    crawl_until(quick, lambda: pages.visits > 2 and pages.asked("/new.ttl") > 2, "--continuous")
    now = datetime.now(UTC).isoformat()
    before = pages.visits
    crawl_until(quick, lambda: pages.visits > before + 1)  # to go on is the crawl's own from now on
    done = quick.run("export", "--since", now)
    assert done.returncode == 0, done.stderr
    assert {line.rsplit(" ", 2)[1].strip("<>") for line in done.stdout.splitlines()} == {start}
    assert '"unchanged"' in quick.run("export", "--since", now, "--graph", "metadata").stdout
    assert quick.run("export", "--since", "soon").returncode == 2
    assert quick.crawl("--no-continuous", "--max-wait", "0").returncode in {0, 5}


def test_a_budget_holds_and_new_urls_have_their_share(quick, site):
    """Two hundred visits a minute, half of them for new URLs, of which there are enough."""
    quick.env["TAMIAS_SCHEDULE__RULE"] = "value"
    site.pages["/robots.txt"] = b""
    names = [f"{number}.ttl" for number in range(400)]
    site.pages["/start.ttl"] = lambda handler: send(handler, 200, statement("start", *names), **TURTLE)
    for name in names:
        site.pages[f"/{name}"] = lambda handler: send(handler, 200, statement(handler.path), **TURTLE)
    begun = time.monotonic()
    budget = 200 * 1440
    done = quick.crawl(
        "--continuous", "--budget", budget, "--new-share", "0.5", "--max-time", "12", site.url("/start.ttl")
    )
    assert done.returncode == 5, done.stderr
    seconds = time.monotonic() - begun
    asked = [path for path, _ in site.log if path != "/robots.txt"]
    new = len(set(asked))
    # An hour's worth may be made at once, so the sum is not held to the second; new ones are.
    assert 0 < new <= 200 / 60 * seconds + 10
    assert len(asked) > new


def test_crawls_with_names_that_go_on_do_so_while_the_service_runs(quick, pages):
    words = ("--continuous", "--crawl", "news", "--scope", "host", "--in-service")
    assert quick.crawl(*words, pages.site.url("/start.ttl")).returncode == 0
    port = free_port()
    serve = ("--port", str(port), "--allow-private", "--delay", "0", "--workers", "1")
    service = quick.start("serve", *serve)
    try:
        quick.wait_until(lambda: pages.visits > 1)
    finally:
        service.terminate()
        _, told = service.communicate(timeout=60)
    assert service.returncode == 0, told
