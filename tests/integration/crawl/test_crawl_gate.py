"""Every request of a crawl passes one gate: read from the logs of the servers, whatever led there."""

import json
import time
from itertools import pairwise

import pytest

from tamias.permit.robots import MOST_BYTES

PAGE = b'<> <#says> "page" .'
EXCLUDED = "127.0.0.9"
OPEN = b"User-agent: *\nDisallow:\n"


@pytest.fixture
def excluded(site_at):
    """A host that nobody may ask for anything, which would gladly answer."""
    site = site_at(EXCLUDED)
    site.pages |= {"/robots.txt": OPEN, "/rules?": OPEN, "/sitemap.xml": b"<urlset/>", "/data": PAGE}
    return site


def linked(reply, *urls):
    page = "".join(f'<a href="{url}">there</a>' for url in urls).encode()
    return reply(200, page, **{"Content-Type": "text/html"})


def moved(reply, url):
    return reply(302, Location=url)


def test_robots_redirects_of_many_hosts_reach_a_victim_one_by_one_in_its_own_turn(tamias, site_at, reply):
    victim = site_at("127.0.0.2")
    victim.pages["/rules?"] = b"User-agent: *\nDisallow: /shut\n"
    hosts = [site_at(f"127.0.1.{number}") for number in range(1, 9)]
    for number, host in enumerate(hosts):
        host.pages |= {
            "/robots.txt": moved(reply, victim.url(f"/rules?{number}")),
            "/": linked(reply, "/open", "/shut"),
            "/open": PAGE,
            "/shut": PAGE,
        }
    words = ("--allow-private", "--delay", "0.4", "--workers", "2", "--scope", "host")
    done = tamias.run("crawl", *words, *(host.url("/") for host in hosts))
    assert done.returncode == 0, done.stderr
    assert sorted(path for path, _ in victim.log) == [f"/rules?{number}" for number in range(8)]
    assert min(victim.gaps()) >= 0.4
    for host in hosts:
        assert sorted(path for path, _ in host.log) == ["/", "/open", "/robots.txt"]
        assert min(host.gaps()) >= 0.4


def test_the_rules_behind_a_robots_redirect_hold_for_the_first_host_only(tamias, site_at, reply):
    first, second = site_at("127.0.0.2"), site_at("127.0.0.3")
    first.pages |= {"/robots.txt": moved(reply, second.url("/robots.txt")), "/a": PAGE, "/b": PAGE}
    second.pages |= {"/robots.txt": moved(reply, "/after"), "/after": b"User-agent: *\nDisallow: /a\n"}
    done = tamias.crawl(first.url("/a"), first.url("/b"), "--depth", 0)
    assert done.returncode == 0, done.stderr
    assert [first.asked(path) for path in ("/robots.txt", "/a", "/b")] == [1, 0, 1]
    assert [second.asked(path) for path in ("/robots.txt", "/after")] == [1, 1]
    (attempt,) = tamias.attempts()[first.url("/a")]
    assert attempt["outcome"] == "refused"
    assert "Disallow: /a" in attempt["reason"]


def test_five_robots_redirects_from_host_to_host_are_followed_and_no_endless_ones(tamias, site_at, reply):
    hosts = [site_at(f"127.0.1.{number}") for number in range(1, 8)]
    for host, after in pairwise(hosts):
        host.pages["/robots.txt"] = moved(reply, after.url("/robots.txt"))
    hosts[-1].pages["/robots.txt"] = b"User-agent: *\nDisallow: /\n"
    for host in hosts:
        host.pages["/page"] = PAGE
    done = tamias.crawl(hosts[0].url("/page"), hosts[1].url("/page"), "--depth", 0)
    assert done.returncode == 0, done.stderr
    assert hosts[1].asked("/page") == 0, "five redirects lead to the rules"
    assert hosts[0].asked("/page") == 1, "the sixth is not followed, as if there were no robots.txt"


def test_an_excluded_host_gets_no_request_whatever_leads_there(tamias, site_at, reply, excluded):
    redirecting, listing, page = (site_at(f"127.0.0.{number}") for number in (2, 3, 4))
    own, chained = site_at("127.0.0.5"), site_at("127.0.0.6")
    redirecting.pages |= {"/robots.txt": moved(reply, excluded.url("/rules?1")), "/data": PAGE}
    chained.pages |= {"/robots.txt": moved(reply, own.url("/onward")), "/data": PAGE}
    own.pages["/onward"] = moved(reply, excluded.url("/rules?2"))
    listing.pages |= {
        "/robots.txt": f"Sitemap: {excluded.url('/sitemap.xml')}\nSitemap: {own.url('/map.xml')}\n".encode(),
        "/data": PAGE,
    }
    own.pages["/map.xml"] = reply(
        200,
        f"<sitemapindex><sitemap><loc>{excluded.url('/part.xml')}</loc></sitemap></sitemapindex>".encode(),
        **{"Content-Type": "application/xml"},
    )
    document = {"@context": excluded.url("/context"), "@id": "", "name": "Tamias"}
    page.pages |= {
        "/data": reply(200, json.dumps(document).encode(), **{"Content-Type": "application/ld+json"}),
        "/moved": moved(reply, excluded.url("/data")),
        "/links": linked(reply, excluded.url("/data")),
    }
    seeds = [host.url("/data") for host in (redirecting, chained, listing, page)]
    tamias.env["TAMIAS_SEEDS__PROBE"] = "true"
    done = tamias.crawl(*seeds, page.url("/moved"), page.url("/links"), "--exclude", EXCLUDED)
    assert done.returncode == 0, done.stderr
    assert excluded.log == []
    attempts = tamias.attempts()
    for host in (redirecting, chained):
        assert host.asked("/data") == 0, "its rules cannot be had"
        assert "exclude" in attempts[host.url("/data")][0]["reason"]
    assert page.asked("/data") == listing.asked("/data") == 1


def test_a_resumed_crawl_asks_nothing_of_a_host_that_is_excluded_now(tamias, site, excluded, reply):
    site.pages["/"] = linked(reply, excluded.url("/data"))
    assert tamias.crawl(site.url("/"), "--max-urls", 1).returncode == 5
    before = len(excluded.log)
    done = tamias.crawl(site.url("/"), "--exclude", EXCLUDED)
    assert done.returncode == 0, done.stderr
    assert len(excluded.log) == before == 0


def test_an_exclude_that_only_matches_robots_txt_closes_no_host(tamias, site_at, reply):
    first, second = site_at("127.0.0.2"), site_at("127.0.0.3")
    first.pages |= {"/robots.txt": moved(reply, second.url("/robots.txt")), "/a": PAGE, "/b": PAGE}
    second.pages |= {"/robots.txt": b"User-agent: *\nDisallow: /a\n", "/b": PAGE}
    words = ("--depth", 0, "--exclude", r"/robots\.txt")
    done = tamias.crawl(first.url("/a"), first.url("/b"), second.url("/b"), *words)
    assert done.returncode == 0, done.stderr
    assert [first.asked(path) for path in ("/robots.txt", "/a", "/b")] == [1, 0, 1]
    assert second.asked("/b") == 1


def test_a_context_out_of_scope_is_had_and_one_that_is_excluded_is_not(tamias, site_at, reply, excluded):
    page, there = site_at("127.0.0.2"), site_at("127.0.0.3")
    context = json.dumps({"@context": {"name": "http://schema.example/name"}}).encode()
    there.pages["/context"] = reply(200, context, **{"Content-Type": "application/ld+json"})
    for path, host in (("/good", there), ("/bad", excluded)):
        document = json.dumps({"@context": host.url("/context"), "@id": "", "name": path}).encode()
        page.pages[path] = reply(200, document, **{"Content-Type": "application/ld+json"})
    words = ("--scope", "host", "--exclude", EXCLUDED)
    done = tamias.crawl(page.url("/good"), page.url("/bad"), *words)
    assert done.returncode == 0, done.stderr
    assert excluded.log == []
    assert [line for line in tamias.quads() if '"/good"' in line]
    (attempt,) = tamias.attempts()[page.url("/bad")]
    assert excluded.url("/context") in attempt["problem"]


def test_a_dry_run_passes_the_same_gate(tamias, site_at, reply, excluded):
    first, second, third = (site_at(f"127.0.0.{number}") for number in (2, 3, 4))
    first.pages["/robots.txt"] = moved(reply, excluded.url("/robots.txt"))
    for number, host in enumerate((second, third)):
        host.pages["/robots.txt"] = moved(reply, third.url(f"/rules?{number}"))
    third.pages["/rules?"] = b"User-agent: *\nDisallow: /a\n"
    seeds = [host.url("/a") for host in (first, second, third)]
    words = ("--dry-run", "--json", "--allow-private", "--delay", "0.3", "--exclude", EXCLUDED)
    done = tamias.run("crawl", *words, *seeds)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert excluded.log == []
    assert min(third.gaps()) >= 0.3
    assert "exclude" in json.dumps(told[0])
    assert all("Disallow: /a" in json.dumps(each) for each in told[1:3])


def test_a_line_of_robots_txt_that_is_cut_at_500_kib_is_dropped_not_obeyed_by_half(tamias, site):
    start = b"User-agent: *\nDisallow: /whole\n"
    rest = b"Disallow: /open/private\n"
    filler = b"#" * (MOST_BYTES - len(start) - len(b"Disallow: /open") - 1) + b"\n"
    site.pages |= {"/robots.txt": start + filler + rest, "/open/a": PAGE, "/whole": PAGE}
    done = tamias.crawl(site.url("/open/a"), site.url("/whole"), "--depth", 0)
    assert done.returncode == 0, done.stderr
    assert (site.asked("/open/a"), site.asked("/whole")) == (1, 0)


def test_the_delay_holds_between_eight_workers_some_of_which_are_killed(tamias, site_at, reply, kill):
    sites = [site_at(f"127.0.1.{number}") for number in range(1, 5)]
    pages = [f"/{number}" for number in range(8)]

    def page(handler):
        if sum(len(site.log) for site in sites) % 9 == 0:
            for worker in tamias.workers()[:2]:
                kill(worker)
        time.sleep(0.2)  # a request lasts, also when nobody waits for its answer
        reply(200, PAGE, **{"Content-Type": "text/turtle"})(handler)

    for site in sites:
        site.pages |= dict.fromkeys(pages, page)
    seeds = [site.url(path) for site in sites for path in pages]
    words = ("--allow-private", "--delay", "0.5", "--workers", "8", "--depth", "0")
    tamias.env["TAMIAS_FRONTIER__PER_ROUND"] = "2"
    done = tamias.run("crawl", *words, *seeds, timeout=300)
    assert done.returncode == 0, done.stderr
    assert {attempts[-1]["outcome"] for attempts in tamias.attempts().values()} == {"ok"}
    assert min(gap for site in sites for gap in site.gaps()) >= 0.5
