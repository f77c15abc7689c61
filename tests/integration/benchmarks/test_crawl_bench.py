"""The crawl benchmark on a small site, with a small crawler in the place of Tamias."""

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from benchmarks.crawl import peers, web
from benchmarks.crawl.run import run
from benchmarks.crawl.site import MEAN_BYTES, SiteSize, build_site
from benchmarks.crawl.web import find_nginx, read_visits, serving
from benchmarks.measuring.children import free_ports
from benchmarks.measuring.measure import measure
from tamias.model.errors import TamiasError, UsageError

SMALL = SiteSize(pages=60, hosts=5, links=40)
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")

WALKER = """
import http.client, json, os, re, sys, time
from urllib.parse import urljoin, urlsplit

seeds = open(sys.argv[sys.argv.index("--seeds") + 1]).read().split()
seen, waiting = set(seeds), list(seeds)
while waiting:
    url = waiting.pop()
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("GET", urlsplit(url).path)
    page = connection.getresponse().read().decode()
    connection.close()
    found = {urljoin(url, link) for link in re.findall('href="([^"]+)"', page)} - seen
    seen |= found
    waiting.extend(found)
with open(os.environ["TAMIAS_PROFILE"], "a") as profile:
    print(json.dumps({"steps": {"fetch": time.process_time()}, "pages": len(seen)}), file=profile)
"""

BURNER = """
import os, subprocess, sys, time

def burn():
    while time.process_time() < 0.3:
        pass
    with open(f"{sys.argv[1]}/{os.getpid()}", "w") as note:
        note.write(str(time.process_time()))

kind = sys.argv[2]
if kind == "daemon" and os.fork():
    os._exit(0)
if kind == "top":
    for other, session in (("child", False), ("daemon", True)):
        started = subprocess.Popen([sys.executable, __file__, sys.argv[1], other], start_new_session=session)
        started.wait()
if kind == "daemon":
    time.sleep(0.5)
burn()
os._exit(0)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build_site(SMALL, tmp_path_factory.mktemp("bench") / "site", *free_ports(1))


@pytest.fixture(scope="module")
def walker(tmp_path_factory):
    script = tmp_path_factory.mktemp("walker") / "walker.py"
    script.write_text(WALKER)
    return [sys.executable, str(script)]


@pytest.fixture(scope="module")
def crawled(walker, tmp_path_factory):
    """A run with no peers: what it printed and what it gave."""
    said = []
    found = run(
        60, 5, 40, peers=(), data=tmp_path_factory.mktemp("data"), out=said.append, tamias_command=walker
    )
    return found, said


def page_files(site):
    return sorted(Path(site.folder).glob("127.*/*/*.html"))


def links_of(file):
    return re.findall(r'<a href="([^"]+)"', file.read_text())


def url_of(site, file):
    return f"http://{file.parent.parent.name}:{site.port}/{file.parent.name}/{file.name}"


def test_the_site_has_as_many_pages_as_asked_for(site):
    assert len(page_files(site)) == SMALL.pages


def test_every_page_has_as_many_links_as_asked_for(site):
    assert {len(links_of(file)) for file in page_files(site)} == {SMALL.links}


def test_three_in_four_links_stay_on_the_host(site):
    own = [
        sum(urlsplit(urljoin(url_of(site, file), link)).netloc == urlsplit(url_of(site, file)).netloc
            for link in links_of(file))
        for file in page_files(site)
    ]  # fmt: skip
    assert set(own) == {30}


def test_every_page_is_reached_from_the_seed(site):
    graph = {
        url_of(site, file): [urljoin(url_of(site, file), link) for link in links_of(file)]
        for file in page_files(site)
    }
    reached, waiting = {site.seed}, [site.seed]
    while waiting:
        found = set(graph[waiting.pop()]) - reached
        reached |= found
        waiting.extend(found)
    assert reached == set(graph)


def test_pages_are_about_as_long_as_those_of_the_web(site):
    assert site.bytes / SMALL.pages == pytest.approx(MEAN_BYTES, rel=0.25)


def test_the_same_size_gives_the_same_site(site, tmp_path):
    again = build_site(SMALL, tmp_path / "again", site.port)
    assert [file.read_bytes() for file in page_files(again)] == [
        file.read_bytes() for file in page_files(site)
    ]


def test_a_site_that_is_there_is_taken_with_its_port(site):
    assert build_site(SMALL, Path(site.folder), site.port + 1) == site


def test_more_hosts_than_pages_are_refused():
    with pytest.raises(UsageError, match="hosts"):
        SiteSize(pages=3, hosts=4)


@needs_nginx
def test_the_server_counts_pages_repeats_robots_and_the_rest(site, tmp_path):
    with serving(site, tmp_path / "nginx") as log:
        for path in (urlsplit(site.seed).path, urlsplit(site.seed).path, "/robots.txt", "/nowhere"):
            ask(urlsplit(site.seed).netloc, path)
    assert read_visits(log) == web.Visits(pages=1, repeats=1, robots=1, other=1)


@needs_nginx
def test_each_address_serves_its_own_pages(site, tmp_path):
    with serving(site, tmp_path / "nginx"):
        answers = {url: ask(urlsplit(url).netloc, urlsplit(url).path) for url in map_urls(site)}
    assert answers == {url_of(site, file): (200, file.read_bytes()) for file in page_files(site)}


@needs_nginx
def test_the_server_ends_when_the_block_fails(site, tmp_path):
    with pytest.raises(KeyError), serving(site, tmp_path / "nginx"):
        raise KeyError
    with pytest.raises(ConnectionRefusedError):
        ask(urlsplit(site.seed).netloc, "/")


@needs_nginx
def test_a_taken_port_is_told_with_what_nginx_says(site, tmp_path):
    with (
        serving(site, tmp_path / "first"),
        pytest.raises(TamiasError, match="Address already in use"),
        serving(site, tmp_path / "second"),
    ):
        pass


def test_without_nginx_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    with pytest.raises(TamiasError, match="apt-get install nginx-light"):
        find_nginx()


def test_the_time_of_children_and_daemons_is_counted_once(tmp_path):
    script, notes = tmp_path / "burner.py", tmp_path / "notes"
    script.write_text(BURNER)
    notes.mkdir()
    measured = measure([sys.executable, str(script), str(notes), "top"], tmp_path, seconds=60)
    told = [float(note.read_text()) for note in notes.iterdir()]
    assert len(told) == 3
    # Beyond what the three tell there is only the parent that the daemon left, and the ends of processes.
    assert sum(told) <= measured.cpu_seconds < sum(told) + 0.25


def test_the_memory_of_a_tree_is_its_peak(tmp_path):
    hold = "import time; held = bytearray(b'x') * 60_000_000; time.sleep(1.2)"
    measured = measure([sys.executable, "-c", hold], tmp_path, seconds=60)
    assert 60_000_000 < measured.peak_bytes < 120_000_000


def test_a_command_is_stopped_when_its_time_is_over(tmp_path):
    measured = measure(["sleep", "600"], tmp_path, seconds=0.2)
    assert (measured.stopped, measured.exit_code) == (True, -signal.SIGTERM)


def test_a_command_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(TamiasError, match="no-such-program"):
        measure(["no-such-program"], tmp_path, seconds=5)


def test_the_tree_ends_when_the_measuring_process_is_ended(tmp_path):
    note = tmp_path / "pid"
    command = ["sh", "-c", f"sleep 600 & echo $! > {note}.new; mv {note}.new {note}; wait"]
    reaper = [sys.executable, "-m", "benchmarks.measuring.reaper", str(tmp_path / "result"), "600", *command]
    with subprocess.Popen(reaper) as running:
        while not note.exists():
            time.sleep(0.02)
        running.terminate()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


@needs_nginx
def test_the_run_counts_every_page_once(crawled):
    assert crawled[0]["rows"][0]["visits"] == {"pages": 60, "repeats": 0, "robots": 0, "other": 0}


@needs_nginx
def test_the_budget_adds_up_to_what_a_page_cost(crawled):
    row = crawled[0]["rows"][0]
    assert sum(crawled[0]["budget"].values()) == pytest.approx(1000 * row["measured"]["cpu_seconds"] / 60)


@needs_nginx
def test_the_report_prints_the_budget_by_step(crawled):
    assert any(re.match(r"  fetch +\d", line) for line in crawled[1])


@needs_nginx
def test_without_scrapy_the_target_is_not_called_met(crawled):
    assert any(line.startswith("target:") and line.endswith("NOT MEASURED") for line in crawled[1])


@needs_nginx
def test_a_crawler_that_fails_is_told_with_its_last_words(tmp_path):
    failing = [sys.executable, "-c", "raise SystemExit('no more acorns')"]
    said = []
    run(60, 5, 40, peers=(), data=tmp_path, out=said.append, tamias_command=failing)
    assert "tamias: ended with code 1: no more acorns" in said


@needs_nginx
@pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not installed")
@pytest.mark.nightly
def test_wget_fetches_the_whole_site(walker, tmp_path):
    found = run(60, 5, 40, peers=["wget"], data=tmp_path, out=lambda _: None, tamias_command=walker)
    assert found["rows"][1]["visits"]["pages"] == 60


@needs_nginx
@pytest.mark.skipif(peers.find_scrapy(peers.cache_folder()) is None, reason="Scrapy is not installed")
@pytest.mark.nightly
def test_scrapy_fetches_the_whole_site(walker, tmp_path):
    found = run(60, 5, 40, peers=["scrapy"], data=tmp_path, out=lambda _: None, tamias_command=walker)
    assert found["rows"][1]["visits"]["pages"] == 60


def test_a_peer_that_is_absent_is_skipped_with_a_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    assert peers.wget("http://127.1.0.1/", tmp_path) == peers.Skipped(
        "wget -r", "it is not installed (Debian: apt-get install wget)"
    )


def test_an_unknown_peer_is_wrong_usage():
    with pytest.raises(UsageError, match="heritrix"):
        run(peers=["netcrawler"])


def ask(authority, path):
    connection = http.client.HTTPConnection(authority, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def map_urls(site):
    return [url_of(site, file) for file in page_files(site)]
