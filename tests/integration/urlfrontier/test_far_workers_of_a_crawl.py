"""A far worker beside a crawl: the options in the row of the crawl hold for it as for any other worker."""

import json
import signal
import time

import pytest
from frontier_client import Instance

from tamias.model.errors import LimitReached

LAST = 9


@pytest.fixture
def far(tamias, tmp_path):
    """The frontier of the data, and a worker without a database there."""
    instance = Instance(tamias.data, env=tamias.env)
    tamias.start(
        "worker", "--frontier", instance.address, "--workers", "1", "--scratch", str(tmp_path / "scratch"),
        "--allow-private", "--json",
    )  # fmt: skip
    yield instance
    if instance.process.poll() is None:
        instance.stop()


@pytest.fixture
def chains(site_at):
    """Sites whose pages each link to the next, and to a page of the next site."""
    sites = [site_at(f"127.0.0.{number}") for number in range(3, 7)]
    for site, other in zip(sites, sites[1:] + sites[:1], strict=True):
        for page in range(LAST):
            site.pages[f"/{page}"] = f"<> <#to> </{page + 1}>, <{other.url('/elsewhere')}> .".encode()
        site.pages[f"/{LAST}"] = b"<> <#is> <#last> ."
        site.pages["/elsewhere"] = b"<> <#is> <#elsewhere> ."
    return sites


def pages(site):
    return sorted(path for path, _ in site.log if path != "/robots.txt" and not path.startswith("/."))


def state(tamias):
    crawls = json.loads(tamias.run("crawls", "--json").stdout)
    return next(each for each in crawls if each["name"] == "default")


def seeds(chains):
    return [site.url("/0") for site in chains]


def hand_over(tamias, *words):
    """Writes the row; nobody but the far worker visits anything."""
    done = tamias.run("crawl", "--in-service", "--allow-private", "--delay", "0", *words)
    assert done.returncode == 0, done.stderr


def test_scope_depth_and_patterns_of_the_row_hold_for_a_far_worker(tamias, chains, far):
    words = ("--scope", "host", "--depth", "5", "--exclude", "/4$", chains[0].url("/0"))
    hand_over(tamias, *words)
    tamias.wait_until(lambda: state(tamias)["known"] and state(tamias)["open"] == 0)
    assert pages(chains[0]) == ["/0", "/1", "/2", "/3"]
    assert [pages(site) for site in chains[1:]] == [[], [], []]


def test_an_option_that_changes_holds_for_a_far_worker_at_once(tamias, chains, far):
    hand_over(tamias, "--scope", "host", "--depth", "1", chains[0].url("/0"))
    tamias.wait_until(lambda: state(tamias)["known"] and state(tamias)["open"] == 0)
    hand_over(tamias, "--depth", "3")
    tamias.wait_until(lambda: "/3" in pages(chains[0]) and state(tamias)["open"] == 0)
    assert set(pages(chains[0])) == {"/0", "/1", "/2", "/3"}


def test_tags_that_the_service_forbids_are_not_lent_to_far_workers(tamias, chains, tmp_path):
    tamias.env["TAMIAS_TAGS__RULES"] = "/2$ bad,/[0-9]$ good"
    instance = Instance(tamias.data, "--forbid", "bad", env=tamias.env)
    hand_over(tamias, "--scope", "host", "--require", "good", chains[0].url("/0"))
    words = ("--frontier", instance.address, "--workers", "1", "--scratch", str(tmp_path / "scratch"))
    tamias.start("worker", *words, "--allow-private")
    tamias.wait_until(lambda: "/1" in pages(chains[0]))
    hand_over(tamias, chains[1].url("/5"))
    tamias.wait_until(lambda: "/9" in pages(chains[1]))
    read = [pages(chains[0]), pages(chains[1])]
    instance.stop()
    assert read == [["/0", "/1"], ["/5", "/6", "/7", "/8", "/9"]]


def test_the_delay_of_the_row_holds_for_a_far_worker(tamias, chains, far):
    hand_over(tamias, "--delay", "0.4", "--scope", "host", "--depth", "4", chains[0].url("/0"))
    tamias.wait_until(lambda: state(tamias)["known"] and state(tamias)["open"] == 0)
    assert min(chains[0].gaps()) >= 0.4


def test_far_workers_skip_what_is_over_the_limit_of_a_host_without_its_delay(tamias, site, far):
    tamias.env["TAMIAS_PERMIT__HOST_VISITS"] = "1"
    site.pages["/"] = "".join(f"<> <#to> </{number}> .\n" for number in range(600)).encode()
    hand_over(tamias, "--no-robots", "--delay", "6", site.url("/"))
    tamias.wait_until(lambda: state(tamias)["known"] > 1 and state(tamias)["open"] == 0)
    assert len(site.log) < 5


def test_a_paused_crawl_is_paused_for_a_far_worker(tamias, chains, far):
    hand_over(tamias, "--delay", "0.3", "--scope", "host", "--depth", "8", chains[0].url("/0"))
    tamias.wait_until(lambda: len(pages(chains[0])) >= 2)
    assert tamias.run("crawls", "pause", "default").returncode == 0
    time.sleep(2)  # what it has leased it finishes: one page is known at a time
    read = pages(chains[0])
    time.sleep(2)
    assert pages(chains[0]) == read != [f"/{page}" for page in range(9)]
    assert tamias.run("crawls", "resume", "default").returncode == 0
    tamias.wait_until(lambda: state(tamias)["open"] == 0)
    assert pages(chains[0]) == [f"/{page}" for page in range(9)]


def test_a_far_worker_leaves_a_crawl_that_its_user_interrupted(tamias, chains, far):
    hand_over(tamias, "--depth", "0", chains[0].url("/0"))
    tamias.wait_until(lambda: state(tamias)["known"] and state(tamias)["open"] == 0)
    words = ("--delay", "1", "--depth", "8", "--scope", "host", "--workers", "1")
    running = tamias.start("crawl", *words, *seeds(chains))
    tamias.wait_until(lambda: all(len(pages(site)) > 1 for site in chains))
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 130, running.stderr.read()
    time.sleep(2)  # requests under way
    read = [pages(site) for site in chains]
    time.sleep(3)
    assert [pages(site) for site in chains] == read


def test_a_crawl_and_a_far_worker_share_one_limit(tamias, chains, far):
    hand_over(tamias, "--depth", "0", chains[0].url("/0"))
    tamias.wait_until(lambda: state(tamias)["known"] and state(tamias)["open"] == 0)
    words = ("--allow-private", "--delay", "0.2", "--depth", "8", "--scope", "host", "--workers", "1")
    done = tamias.run("crawl", *words, "--max-urls", "9", *seeds(chains))
    assert done.returncode == LimitReached.exit_code, done.stderr
    time.sleep(2)
    requests = sum(len(pages(site)) for site in chains)
    # The first page was read before; it is read again for the new depth, which does not count.
    assert requests - 2 == 9
    time.sleep(2)
    assert sum(len(pages(site)) for site in chains) == requests


def test_far_workers_alone_keep_to_the_time_of_the_row(tamias, chains, far):
    hand_over(tamias, "--delay", "1", "--scope", "host", "--max-time", "2", chains[0].url("/0"))
    tamias.wait_until(lambda: pages(chains[0]))
    time.sleep(5)
    read = pages(chains[0])
    time.sleep(3)
    assert pages(chains[0]) == read != [f"/{page}" for page in range(LAST + 1)]


def test_far_workers_alone_keep_to_the_limit_of_the_row(tamias, chains, far):
    hand_over(tamias, "--scope", "host", "--max-urls", "5", *seeds(chains))
    tamias.wait_until(lambda: sum(len(pages(site)) for site in chains) >= 5)
    time.sleep(2)
    assert sum(len(pages(site)) for site in chains) == 5
    assert tamias.run("crawls", "resume", "default").returncode == 0
    tamias.wait_until(lambda: sum(len(pages(site)) for site in chains) >= 10)
    time.sleep(2)
    assert sum(len(pages(site)) for site in chains) == 10
