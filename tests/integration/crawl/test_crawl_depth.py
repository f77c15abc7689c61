"""Depth is the shortest way from a seed, whichever server answers first."""

import json
import time
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.model.cut import REASONS
from tests.messages import unsaid


def link(*targets):
    return "".join(f"<> <#next> <{target}> .\n" for target in targets).encode()


def slowly(page, seconds):
    def serve(handler):
        time.sleep(seconds)
        handler.send_response(200)
        handler.send_header("Content-Type", "text/turtle")
        handler.send_header("Content-Length", str(len(page)))
        handler.end_headers()
        handler.wfile.write(page)

    return serve


@pytest.fixture
def web(site_at):
    """Two ways from `/seed` to `/joint`: over `/short`, and one longer over `/a` and `/b`, on other hosts."""
    seed, short, long, far = (site_at(f"127.0.0.{number}") for number in (1, 2, 3, 4))
    seed.pages["/seed"] = link(short.url("/short"), long.url("/a"))
    short.pages["/short"] = link(far.url("/joint"))
    long.pages |= {"/a": link("/b"), "/b": link(far.url("/joint"))}
    far.pages |= {
        "/joint": link("/middle"),
        "/middle": link("/leaf"),
        "/leaf": link("/too-deep"),
        "/too-deep": b"",
    }
    return {"seed": seed, "short": short, "long": long, "far": far}


def slow_down(site, path, seconds=1.5):
    site.pages[path] = slowly(site.pages[path], seconds)


@pytest.mark.parametrize("slow", [None, ("short", "/short"), ("long", "/a")])
def test_what_a_depth_reaches_does_not_depend_on_who_answers_first(tamias, web, slow):
    """`/leaf` is four steps away; by the longer way five, and `/middle`, whose links are not cut, four."""
    if slow is not None:
        slow_down(web[slow[0]], slow[1])
    done = tamias.crawl(web["seed"].url("/seed"), "--depth", 4, "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert [web["far"].asked(path) > 0 for path in ("/joint", "/middle", "/leaf", "/too-deep")] == [
        True,
        True,
        True,
        False,
    ]
    depths = {url: min(int(each["depth"]) for each in tries) for url, tries in tamias.attempts().items()}
    assert depths == {
        web["seed"].url("/seed"): 0,
        web["short"].url("/short"): 1,
        web["long"].url("/a"): 1,
        web["long"].url("/b"): 2,
        web["far"].url("/joint"): 2,
        web["far"].url("/middle"): 3,
        web["far"].url("/leaf"): 4,
    }


def test_second_fetches_are_counted_and_shown(tamias, web):
    slow_down(web["short"], "/short")
    done = tamias.crawl(web["seed"].url("/seed"), "--depth", 4, "--workers", 2)
    assert not unsaid(done.stderr, "2")
    assert "7 URLs visited" in done.stderr
    assert (web["far"].asked("/joint"), web["far"].asked("/middle"), web["far"].asked("/leaf")) == (2, 2, 1)
    told = json.loads(tamias.run("status", "--once", "--json").stdout)
    assert [crawl["again"] for crawl in told["crawls"] if crawl["name"] == "default"] == [2]
    assert "fetched again 2" in " ".join(tamias.run("stats").stdout.split())


@pytest.mark.parametrize("sink", [(), ("--sink", "archive")])
def test_what_is_due_again_is_fetched_whole_although_it_has_not_changed(tamias, web, sink):
    """An answer of 304 would have no links to follow."""
    page, conditions = web["far"].pages["/middle"], []

    def serve(handler):
        conditions.append(handler.headers.get("If-None-Match"))
        handler.send_response(304 if conditions[-1] else 200)
        handler.send_header("ETag", '"1"')
        handler.send_header("Content-Type", "text/turtle")
        handler.send_header("Content-Length", "0" if conditions[-1] else str(len(page)))
        handler.end_headers()
        handler.wfile.write(b"" if conditions[-1] else page)

    web["far"].pages["/middle"] = serve
    slow_down(web["short"], "/short")
    done = tamias.crawl(web["seed"].url("/seed"), "--depth", 4, "--workers", 2, *sink)
    assert done.returncode == 0, done.stderr
    assert (conditions, web["far"].asked("/leaf")) == ([None, None], 1)


def test_without_a_limit_nothing_is_fetched_twice(tamias, web):
    slow_down(web["short"], "/short")
    assert tamias.crawl(web["seed"].url("/seed"), "--workers", 2).returncode == 0
    assert {path: web["far"].asked(path) for path in web["far"].pages} == dict.fromkeys(web["far"].pages, 1)


def reasons(tamias):
    """Why links of each known URL were cut, or the URL itself, by its path; what was not cut is left out."""
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        rows = session.transact(lambda cursor: cursor.execute("SELECT url, cut FROM url").fetchall())
    told = {url: [name for name, bit in REASONS.items() if cut & bit] for url, cut in rows}
    return {"/" + url.split("/", 3)[3]: reasons for url, reasons in told.items() if reasons}


def test_each_row_tells_what_cut_its_links_or_itself(tamias, site, site_at, reply):
    other = site_at("127.0.0.2")
    site.pages |= {
        "/robots.txt": b"User-agent: *\nDisallow: /shut\n",
        "/": link("/in", "/out", "/no", "/shut", "/moved", "mailto:a@example.org"),
        "/in": link("/deep"),
        "/deep": link("/deeper", "mailto:a@example.org"),
        "/out": link(other.url("/")),
        "/no": link("/not-wanted"),
        "/moved": reply(302, Location=other.url("/")),
        "/shut": link("/never"),
    }
    done = tamias.crawl(site.url("/"), "--depth", 2, "--scope", "host", "--exclude", "wanted")
    assert done.returncode == 0, done.stderr
    assert reasons(tamias) == {
        "/deep": ["depth"],
        "/out": ["scope"],
        "/no": ["filter"],
        "/moved": ["scope"],
        "/shut": ["robots"],
    }


@pytest.mark.parametrize("robots", [(), ("--no-robots",)])
def test_a_private_address_is_a_row_with_its_reason(tamias, site, robots):
    tamias.run("crawl", *robots, "--workers", "1", "--delay", "0", site.url("/page"))
    assert site.log == []
    assert reasons(tamias) == {"/page": ["private"]}
