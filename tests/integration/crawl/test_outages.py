"""Bad days in a small internet of our own: no name service, no network, hosts that never answer."""

import os
import subprocess
import sys
import time

import pytest

from tests.messages import unsaid
from tests.networks.island import Island, why_not
from tests.networks.island_web import LOG, page

PAGES = 6
HOSTS = 5
MISSING = why_not()

pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"no network namespaces here: {MISSING}")


@pytest.fixture
def island(tmp_path):
    with Island(tmp_path / "island", PAGES) as island:
        yield island


@pytest.fixture
def away(tamias, island, tmp_path):
    """`away(*words)` begins a crawl on the island, with waits as short as the test's."""
    tamias.env |= {"TAMIAS_CRAWL__RETRY_WAIT": "1", "TAMIAS_FETCH__CONNECT_TIMEOUT": "3"}
    tamias.env["TAMIAS_FETCH__FIRST_BYTE_TIMEOUT"] = "5"

    def crawl(*words):
        program = [sys.executable, "-m", "tamias", "crawl", "--data", str(tamias.data), "--allow-private"]
        return island.popen([*program, "--workers", "1", *words], tamias.env, tmp_path / "said")

    return crawl


def seeds(kind, count):
    return [f"http://{kind}{number}.example/" for number in range(1, count + 1)]


def expected(count=HOSTS):
    """All quads of so many hosts that answer, by what stands on them."""
    from pyoxigraph import RdfFormat, parse

    found = set()
    for number in range(1, count + 1):
        name = f"h{number}.example"
        for path in ["/", *(f"/{each}" for each in range(1, PAGES))]:
            url = f"http://{name}{path}"
            for triple in parse(page(name, path, PAGES), RdfFormat.TURTLE, base_iri=url):
                found.add(f"{triple.subject} {triple.predicate} {triple.object} <{url}> .")
    return found


def requests(tmp_path):
    log = tmp_path / "island" / LOG
    return log.read_text().split() if log.exists() else []


def wait_for_requests(tamias, tmp_path, count):
    tamias.wait_until(lambda: len(requests(tmp_path)) >= count)


def test_a_crawl_goes_through_an_outage_of_the_name_service(tamias, island, away, tmp_path):
    island.names("servfail")
    crawl = away(*seeds("h", HOSTS), "--delay", "0.1", "--max-wait", "100")
    tamias.wait_until((tamias.data / "spool").exists)
    time.sleep(5)
    assert (requests(tmp_path), crawl.poll()) == ([], None)
    island.kill("dns")
    time.sleep(3)
    island.names("ok")
    island.start("dns")
    assert crawl.wait(120) == 0, (tmp_path / "said").read_text()
    assert tamias.quads() == expected()
    for tries in tamias.attempts().values():
        assert [each["outcome"] for each in tries if "deferred" not in each] == ["ok"]
        assert {each["outcome"] for each in tries if "deferred" in each} <= {"failed"}


def test_a_crawl_goes_through_an_outage_of_the_network(tamias, island, away, tmp_path):
    tamias.env["TAMIAS_FETCH__FIRST_BYTE_TIMEOUT"] = "2"
    crawl = away(*seeds("h", HOSTS), "--delay", "1", "--max-wait", "100")
    wait_for_requests(tamias, tmp_path, 3 * HOSTS)
    island.cable(plugged=False)
    said = tmp_path / "said"
    tamias.wait_until(lambda: "no network?" in said.read_text())
    before = requests(tmp_path)
    time.sleep(5)
    island.cable(plugged=True)
    assert crawl.wait(120) == 0, said.read_text()
    assert tamias.quads() == expected()
    assert len(before) < HOSTS * (PAGES + 1)
    for url, tries in tamias.attempts().items():
        # Nobody's retries were spent: each page was had at its first try that was counted.
        assert [each["outcome"] for each in tries] == ["ok"], (url, tries)


def test_what_cannot_be_reached_is_told_left_and_had_by_a_later_run(tamias, island, away, tmp_path):
    island.names("servfail")
    crawl = away(*seeds("h", 2), "--delay", "0", "--max-wait", "3")
    assert crawl.wait(120) == 5
    said = (tmp_path / "said").read_text()
    assert not unsaid(said, "2")
    assert "http://h1.example: name cannot be resolved now" in said
    assert "2 URLs are left" in said
    tried = [each for tries in tamias.attempts().values() for each in tries]
    assert {(each["outcome"], each.get("deferred")) for each in tried} == {("failed", "true")}
    island.names("ok")
    assert away("--delay", "0").wait(120) == 0
    assert tamias.quads() == expected(2)


def test_a_host_is_given_up_after_so_many_tries_over_so_long(tamias, island, away, tmp_path):
    tamias.env["TAMIAS_CRAWL__UNREACHABLE"] = "3,0.001"
    assert away("http://d1.example/", "http://h1.example/", "--max-wait", "60").wait(120) == 0
    tries = tamias.attempts()["http://d1.example/"]
    assert len(tries) >= 3
    (last,) = [each for each in tries if "deferred" not in each]
    assert last["reason"].startswith("unreachable since 20")
    assert {each["outcome"] for each in tries} == {"failed"}
    assert tamias.quads() == expected(1)


def test_refusals_and_names_that_do_not_exist_are_final_within_the_run(tamias, island, away):
    dead = ["http://h2.example:81/", "http://h2.example:81/2", "http://nobody.example/"]
    assert away("http://h1.example/", *dead, "--delay", "0").wait(120) == 0
    attempts = tamias.attempts()
    last = {url: each for url in dead for each in attempts[url] if "deferred" not in each}
    assert [each["outcome"] for each in last.values()] == ["failed"] * 3
    assert "connection refused" in last["http://h2.example:81/2"]["reason"]
    assert not unsaid(last["http://nobody.example/"]["reason"], "nobody.example")
    # One host, one series of tries, however many URLs wait for it.
    assert sum(len(attempts[url]) for url in dead[:2]) <= 6
    assert tamias.quads() == expected(1)


def test_hosts_that_never_answer_cost_the_others_nothing(tamias, island, away, tmp_path):
    """A tenth of `python -m benchmarks faults F17`: dead hosts come first, in all slots there are."""
    dead = [*seeds("d", 60), *seeds("t", 60)]
    (tmp_path / "seeds").write_text("\n".join([*dead, *seeds("h", HOSTS)]))
    crawl = away(
        "--seeds", str(tmp_path / "seeds"), "--delay", "0", "--concurrency", "16", "--max-wait", "100"
    )
    whole = HOSTS * (PAGES + 1)
    wait_for_requests(tamias, tmp_path, whole)
    # The dead ones were tried at most once before the good ones were done: they hold nobody up by retries.
    crawl.terminate()
    assert crawl.wait(60) == 130
    assert tamias.quads() == expected()


def test_a_place_that_is_down_does_not_hold_up_its_neighbours_on_the_same_queue(tamias, site):
    closed = f"http://{site.address}:81/"
    site.pages |= {"/": b"<> <urn:a> <urn:b> ."}
    done = tamias.crawl(closed, site.url("/"), "--max-wait", "30")
    assert done.returncode == 0
    attempts = tamias.attempts()
    assert attempts[site.url("/")][0]["outcome"] == "ok"
    assert len(attempts[closed]) == 4
    assert {each["outcome"] for each in attempts[closed]} == {"failed"}


def test_the_environment_of_the_crawl_is_an_island(island):
    done = subprocess.run(
        island.command(["ip", "route", "get", "10.77.0.1"]),
        check=True,
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert "via 10.76.0.1 dev net" in done.stdout
