"""What is under watch, and what is not: named resources, what named sitemaps list, and nothing else."""

from contextlib import closing

import pytest

from tamias.database.connect import Database
from tests.all_resources import all_resources
from tests.messages import unsaid

SITEMAPS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
TABLE = b"id,value\n1,one\n"


@pytest.fixture
def visit(tamias):
    tamias.env["TAMIAS_SEEDS__PROBE"] = "true"

    def run(*words):
        done = tamias.crawl("--recrawl", *words)
        assert done.returncode == 0, done.stderr
        return done.stderr

    return run


def watched(tamias):
    """The resources under watch, with the number of their versions."""
    database = Database(tamias.data, create=False)
    with closing(database), closing(database.session()) as session:
        return {each.url: each.versions for each in all_resources(session)}


def listing(site, *paths):
    urls = "".join(f"<url><loc>{site.url(path)}</loc></url>" for path in paths)
    return f'<?xml version="1.0"?><urlset {SITEMAPS}>{urls}</urlset>'.encode()


def index(site, *paths):
    parts = "".join(f"<sitemap><loc>{site.url(path)}</loc></sitemap>" for path in paths)
    return f'<?xml version="1.0"?><sitemapindex {SITEMAPS}>{parts}</sitemapindex>'.encode()


def add(tamias, *addresses):
    done = tamias.run("add", *addresses)
    assert done.returncode == 0, done.stderr


def test_sitemaps_of_a_host_are_no_watched_resources(tamias, site, visit):
    site.pages |= {"/a.csv": TABLE, "/b.csv": TABLE, "/map.xml": listing(site, "/a.csv", "/b.csv")}
    site.pages["/robots.txt"] = f"User-agent: *\nSitemap: {site.url('/map.xml')}\n".encode()
    add(tamias, site.url("/a.csv"))
    visit()
    assert watched(tamias) == {site.url("/a.csv"): 1}
    assert sorted({path for path, _ in site.log}) == ["/a.csv", "/map.xml", "/robots.txt"]


def test_what_a_named_sitemap_lists_is_under_watch(tamias, site, visit):
    site.pages |= {"/a.csv": TABLE, "/b.csv": TABLE, "/robots.txt": b""}
    site.pages |= {"/maps.xml": index(site, "/map.xml"), "/map.xml": listing(site, "/a.csv", "/b.csv")}
    add(tamias, f"sitemap:{site.url('/maps.xml')}")
    visit()
    assert watched(tamias) == {site.url("/a.csv"): 1, site.url("/b.csv"): 1}


def test_what_a_large_resource_links_to_is_not_under_watch(tamias, site, visit):
    lines = "".join(
        f"<{site.url(f'/x{n}')}> <{site.url('/p')}> <{site.url(f'/y{n}')}> .\n" for n in range(30_000)
    )
    site.pages |= {"/large.nt": lines.encode(), "/robots.txt": b""}
    add(tamias, site.url("/large.nt"))
    visit()
    assert watched(tamias) == {site.url("/large.nt"): 1}
    assert site.asked("/x1") == 0


def test_a_named_resource_is_visited_before_it_is_due(tamias, site, visit):
    site.pages |= {"/a.csv": TABLE, "/robots.txt": b""}
    add(tamias, site.url("/a.csv"))
    assert "1 URL visited" in visit()
    site.pages["/a.csv"] = TABLE + b"2,two\n"
    assert "0 URLs visited" in visit()
    assert "1 URL visited" in visit(site.url("/a.csv"))
    assert watched(tamias) == {site.url("/a.csv"): 2}


def test_a_resource_that_is_gone_counts_as_visited(tamias, site, visit):
    site.pages |= {"/a.csv": TABLE, "/robots.txt": b""}
    add(tamias, site.url("/a.csv"))
    visit()
    del site.pages["/a.csv"]
    said = visit(site.url("/a.csv"))
    assert "1 URL visited" in said
    assert ": 1 gone; 0 quads" in said
    assert "will be repeated" not in said


def test_the_scope_of_a_crawl_is_not_that_of_what_is_watched(tamias, site, site_at, reply, visit):
    other = site_at("127.0.0.2")
    site.pages |= {"/a.csv": reply(302, location=other.url("/b.csv")), "/robots.txt": b""}
    other.pages |= {"/b.csv": TABLE, "/robots.txt": b""}
    assert tamias.crawl(site.url("/robots.txt"), "--scope", "host").returncode == 0
    add(tamias, site.url("/a.csv"))
    assert "2 URLs visited" in visit()
    assert watched(tamias) == {site.url("/a.csv"): 0, other.url("/b.csv"): 1}


def test_a_visit_to_what_nobody_watches_is_refused_with_advice(tamias, site):
    site.pages |= {"/a.csv": TABLE}
    add(tamias, site.url("/a.csv"))
    done = tamias.crawl("--recrawl", site.url("/b.csv"))
    assert done.returncode == 2
    assert not unsaid(done.stderr, site.url("/b.csv"))


def test_an_unknown_source_type_is_refused_and_the_nearest_named(tamias):
    done = tamias.run("add", "sparqll:http://127.0.0.1/")
    assert (done.returncode, done.stdout) == (2, "")
    assert not unsaid(done.stderr, "sparqll", "sparql")
    done = tamias.run("add", "gopher-hole:http://127.0.0.1/")
    assert (done.returncode, done.stdout) == (2, "")
    assert not unsaid(done.stderr, "gopher-hole", part=2)
