"""A user makes a crawl in a browser and steers it to its end; what comes of it is what the command makes."""

import http.server
import json
import threading
import time

import pytest
from pyoxigraph import RdfFormat, parse

from tests import commands

from .conftest import SECRET, Service, environment

HOST, OTHER = "oak.wood.example", "elm.wood.example"
LONGEST = 60


class Site(http.server.BaseHTTPRequestHandler):
    """Documents at depth 0 to 3 on two hosts, and one that robots.txt forbids."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        port = self.server.server_port
        numbers = [each for each in self.path[1:].removesuffix(".ttl").split("-") if each]
        body, kind, status = b"", "text/turtle", 200
        if self.path == "/robots.txt":
            body, kind = b"User-agent: *\nDisallow: /hidden.ttl\n", "text/plain"
        elif self.path == "/start.ttl":
            links = [f"/{n}.ttl" for n in range(6)] + [f"http://{OTHER}:{port}/elsewhere.ttl"]
            body = "".join(f"<> <#to> <{each}> .\n" for each in links).encode()
        elif self.path in ("/added.ttl", "/elsewhere.ttl", "/hidden.ttl"):
            body = f'<> <#says> "{self.path}" .'.encode()
        elif numbers and all(each.isdigit() for each in numbers) and len(numbers) <= 3:
            body = "".join(f"<> <#to> </{'-'.join([*numbers, str(n)])}.ttl> .\n" for n in range(2)).encode()
        else:
            status = 404
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield lambda path, host=HOST: f"http://{host}:{server.server_port}{path}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def steered(tmp_path):
    """A service without any data, which can reach the site; its data directory and settings file."""
    config = tmp_path / "tamias.toml"
    config.write_text(f"fetch.resolve = {json.dumps([f'{host}:127.0.0.1' for host in (HOST, OTHER)])}\n")
    words = ("--config", str(config), "--allow-private", "--delay", "0.15", "--workers", "1")
    service = Service(tmp_path / "data", *words)
    yield service, tmp_path / "data", config
    service.stop()


@pytest.fixture
def page(chromium, steered, tab_on):
    opened = tab_on(chromium, steered[0].address)
    opened.page.set_default_timeout(15_000)
    yield opened.page
    opened.context.close()
    assert [each for each in opened.faults if "status of 4" not in each] == []


def button(page, name):
    page.locator("main").get_by_role("button", name=name, exact=True).click()


def figure(page, name):
    return page.locator(f"#live .figures div:has(dt:text-is('{name}')) dd").inner_text().replace(",", "")


def wait_for(page, name, wanted):
    """The figure of the crawl, which the page asks for again by itself."""
    deadline = time.monotonic() + LONGEST
    while not wanted(figure(page, name)):
        assert time.monotonic() < deadline, page.locator("main").inner_text()
        page.wait_for_timeout(200)


def sign_in(page):
    page.get_by_role("link", name="Sign in").first.click()
    page.get_by_label("Secret").fill(SECRET)
    page.get_by_role("button", name="Sign in").click()


def verb(data, config, *words):
    done = commands.run(
        [words[0], "--data", str(data), "--config", str(config), *words[1:]],
        capture_output=True, timeout=120, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def graphs(lines):
    return {str(quad) for quad in parse(lines, format=RdfFormat.N_QUADS)}


@pytest.mark.usefixtures("libraries")
def test_a_user_makes_a_crawl_and_steers_it_until_it_is_exported(page, steered, site, tmp_path):
    page.goto("/")
    page.locator("nav").get_by_role("link", name="Crawls", exact=True).click()
    sign_in(page)
    page.get_by_label("Name").fill("wood")
    page.get_by_label("Seeds", exact=True).fill(
        "\n".join([site("/start.ttl"), site("/hidden.ttl"), "not an address"])
    )
    page.get_by_role("spinbutton", name="Depth").fill("1")
    button(page, "Dry run")
    trial = page.get_by_role("status", name="Dry run").inner_text()
    assert f"Fetches {site('/start.ttl')}" in trial
    assert f"Skips {site('/hidden.ttl')}: robots.txt: line 2: Disallow: /hidden.ttl" in trial
    assert "seeds line 3" in trial
    assert page.request.get("/api/v1/crawls/wood").status == 404  # nothing was made
    button(page, "Start")
    assert page.locator("h1").inner_text() == "Crawl “wood”"
    wait_for(page, "URLs known", lambda known: int(known) >= 8)
    button(page, "Pause")
    assert figure(page, "State") == "paused"
    page.locator("summary", has_text="Change options").click()
    assert page.get_by_role("spinbutton", name="Depth").input_value() == "1"
    page.get_by_role("spinbutton", name="Depth").fill("3")
    button(page, "Save")
    assert "crawl.depth 1 → 3" in page.get_by_role("status").inner_text()
    page.locator("summary", has_text="Change options").click()
    seeds = tmp_path / "seeds.csv"
    seeds.write_text(f"uri\n{site('/added.ttl')}\n")
    page.get_by_label("Or a file of seeds").set_input_files(seeds)
    page.wait_for_function("document.getElementById('seeds').value.includes('added')")
    button(page, "Save")
    assert "1 new seed." in page.get_by_role("status").inner_text()
    assert figure(page, "State") == "paused"
    button(page, "Resume")
    wait_for(page, "URLs known", lambda known: int(known) >= 20)
    button(page, "Stop")
    assert figure(page, "State") == "stopped"
    button(page, "Resume")
    wait_for(page, "Still to visit", lambda left: left == "0")
    page.reload()
    with page.expect_download() as begun:
        page.get_by_role("link", name="nquads").click()
    exported = begun.value.path().read_bytes()
    _, data, config = steered
    options = ("--crawl", "wood", "--depth", "3", "--scope", "host", "--max-urls", "10000")
    usual = ("--allow-private", "--delay", "0", "--workers", "1")
    twin = tmp_path / "twin"
    verb(twin, config, "crawl", site("/start.ttl"), site("/added.ttl"), *options, *usual)
    assert len(graphs(exported)) > 50
    assert graphs(exported) == graphs(verb(twin, config, "export"))
    assert graphs(exported) == graphs(verb(data, config, "export", "--crawl", "wood"))


def test_a_name_that_is_taken_and_a_crawl_without_seeds_are_refused(page, steered):
    page.goto("/crawls")
    sign_in(page)
    page.get_by_label("Name").fill("default")
    page.get_by_label("Seeds", exact=True).fill("http://oak.wood.example/")
    button(page, "Start")
    assert "A crawl of this name exists" in page.get_by_role("alert").inner_text()
    page.get_by_label("Name").fill("empty")
    page.get_by_label("Seeds", exact=True).fill("")
    button(page, "Start")
    assert "A new crawl needs seeds" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("Name").input_value() == "empty"
    assert page.request.get("/api/v1/crawls/empty").status == 404
