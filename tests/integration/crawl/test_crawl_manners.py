"""How a crawl behaves towards servers, read from the servers' own logs."""

import time
from collections import Counter
from itertools import pairwise

import pytest

from tamias.features.demo.plan import make_plan
from tamias.features.demo.server import max_in_flight, requests_of_disallowed, serving

LINKS = b"".join(b'<a href="/%s">%s</a>' % (name, name) for name in (b"open", b"shut/1", b"shut/2", b"last"))
PAGE = b'<> <#says> "page" .'


def test_two_crawls_on_one_data_directory_share_the_work_and_no_host_is_asked_twice_at_once(fresh):
    with serving(make_plan(seed=5, nodes=12, resources=16, crawl_delay=False), latency=0.02) as web:
        alone, shared = fresh("alone"), fresh("shared")
        assert alone.crawl(*web.seeds).returncode == 0
        begun = len(web.log)
        words = ("crawl", "--json", "--workers", "1", "--allow-private", "--delay", "0", *web.seeds)
        both = [shared.start(*words), shared.start(*words)]
        ends = [process.communicate(timeout=60)[0].splitlines()[-1] for process in both]
        assert [process.returncode for process in both] == [0, 0]
        log = web.log[begun:]
        assert max(max_in_flight(log).values()) == 1
        assert set(Counter(visit.url for visit in log).values()) <= {
            1,
            2,
        }  # 2: the page that is busy at first
        assert requests_of_disallowed(log, web.expected.disallowed) == []
        assert all('"ended":"done"' in end for end in ends)
        assert shared.quads() == alone.quads()


def test_what_robots_forbids_is_never_asked_for_and_its_delay_is_kept(tamias, site, reply):
    site.pages |= {
        "/robots.txt": b"User-agent: *\nDisallow: /shut/\nCrawl-delay: 1\n",
        "/": reply(200, LINKS, **{"Content-Type": "text/html"}),
        "/open": PAGE,
        "/shut/1": PAGE,
        "/shut/2": PAGE,
        "/last": reply(303, Location="/open/after"),
        "/open/after": PAGE,
    }
    done = tamias.crawl(site.url("/"))
    assert done.returncode == 0, done.stderr
    asked = [path for path, _ in site.log]
    assert sorted(asked) == ["/", "/last", "/open", "/open/after", "/robots.txt"]
    assert min(later - earlier for (_, earlier), (_, later) in pairwise(site.log)) >= 1.0


def test_the_delay_that_a_host_asks_for_outlives_the_worker_that_learnt_it(tamias, site, reply, kill):
    page = reply(200, PAGE, **{"Content-Type": "text/turtle"})

    def deadly_once(handler):
        if site.asked("/") == 1:
            for worker in tamias.workers():
                kill(worker)
            return
        page(handler)

    site.pages |= {"/robots.txt": b"User-agent: *\nCrawl-delay: 5\n", "/": deadly_once}
    done = tamias.crawl(site.url("/"), "--depth", "0")
    assert done.returncode == 0, done.stderr
    assert site.asked("/") == 2
    assert min(later - earlier for (_, earlier), (_, later) in pairwise(site.log)) >= 5.0


def endless(handler):
    """Headers at once, then a byte from time to time."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/turtle")
    handler.end_headers()
    for _ in range(600):
        handler.wfile.write(b"#")
        time.sleep(0.1)


def lying(handler):
    """Says that more will come than comes."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(PAGE)
    handler.close_connection = True


@pytest.fixture
def impatient(tamias):
    tamias.env |= {
        "TAMIAS_FETCH__TIMEOUT": "1",
        "TAMIAS_FETCH__FIRST_BYTE_TIMEOUT": "1",
        "TAMIAS_CRAWL__RETRIES": "1",
    }
    return tamias


def test_a_host_that_is_down_slow_lying_or_endless_costs_its_own_queue_only(impatient, site_at):
    good = site_at("127.0.0.1")
    bad = {
        "endless": (site_at("127.0.0.2"), endless),
        "lying": (site_at("127.0.0.3"), lying),
        "slow": (site_at("127.0.0.4"), lambda handler: time.sleep(3)),
    }
    for name, (site, page) in bad.items():
        site.pages[f"/{name}"] = page
    seeds = [good.url(f"/{number}") for number in range(20)]
    good.pages |= {f"/{number}": PAGE for number in range(20)}
    down = good.url("/down").replace("127.0.0.1", "127.0.0.5")
    troubled = [site.url(f"/{name}") for name, (site, _) in bad.items()]
    done = impatient.crawl(*seeds, *troubled, down, "--scope", "host")
    assert done.returncode == 0, done.stderr
    attempts = impatient.attempts()
    assert {attempts[seed][0]["outcome"] for seed in seeds} == {"ok"}
    assert all(attempts[url][-1]["outcome"] == "failed" for url in troubled)
    assert attempts[down][-1]["outcome"] in {"refused", "failed"}
    last_good = max(when for _, when in good.log)
    last_bad = max(when for site, _ in bad.values() for _, when in site.log)
    assert last_good < last_bad
