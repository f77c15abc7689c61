"""Sitemaps, and datasets that a site offers as a whole instead of page by page."""

import gzip
import io
import re
import time
import zipfile
from urllib.parse import quote

import pytest

from tests.messages import unsaid

NAMESPACES = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:sc="http://sw.deri.org/2007/07/sitemapextension/scschema.xsd"'
)
RESOURCES = 500
PROBES = 3
"""Covered resources that are visited all the same, to compare them with the dump."""


def sitemap(*entries):
    return f'<?xml version="1.0"?><urlset {NAMESPACES}>{"".join(entries)}</urlset>'.encode()


def dataset(*parts):
    return f"<sc:dataset>{''.join(parts)}</sc:dataset>"


def part(name, value, priority=None):
    told = "" if priority is None else f' priority="{priority}"'
    return f"<sc:{name}{told}>{value}</sc:{name}>"


def triples(site, number):
    return f'<{site.url(f"/resource/{number}")}> <urn:p:is> "{number}" .\n'


@pytest.fixture
def whole(site, reply):
    """A site with a dump of all that stands under /resource/, and a page that links there."""
    for number in range(RESOURCES):
        site.pages[f"/resource/{number}"] = triples(site, number).encode()
    site.pages["/"] = "".join(f"<> <#has> </resource/{number}> .\n" for number in range(RESOURCES)).encode()
    dump = "".join(triples(site, number) for number in range(RESOURCES)).encode()
    site.pages["/dump.nt"] = reply(200, dump, **{"Content-Type": "application/n-triples"})
    site.pages["/robots.txt"] = f"User-agent: *\nSitemap: {site.url('/map.xml')}\n".encode()
    return site


def say(site, *parts):
    prefix = part("linkedDataPrefix", site.url("/resource/"))
    body = sitemap(dataset(prefix, *parts))
    site.pages["/map.xml"] = body


def dereferenced(site):
    return [path for path, _ in site.log if path.startswith("/resource/")]


def skipped(tamias, site):
    """Why each resource was skipped, by its path."""
    attempts = {url: tries[-1] for url, tries in tamias.attempts().items() if "/resource/" in url}
    return {
        url.removeprefix(site.url("")): last["reason"]
        for url, last in attempts.items()
        if last["outcome"] == "skipped" and "covered by the dump of" in last["reason"]
    }


def values(tamias):
    return {line.split('"')[1] for line in tamias.quads() if "<urn:p:is>" in line}


def test_a_sitemap_of_robots_txt_is_read_and_its_pages_visited(tamias, site, reply):
    entries = "".join(f"<url><loc>{site.url(f'/{number}')}</loc></url>" for number in range(10))
    site.pages |= {f"/{number}": b"<> <#p> <#o> .\n" for number in range(10)}
    site.pages["/robots.txt"] = f"Sitemap: {site.url('/index.xml')}\n".encode()
    index = f"<sitemapindex {NAMESPACES}><sitemap><loc>{site.url('/map.xml')}</loc></sitemap></sitemapindex>"
    site.pages["/index.xml"] = reply(200, index.encode(), **{"Content-Type": "application/xml"})
    site.pages["/map.xml"] = reply(200, sitemap(entries), **{"Content-Type": "application/xml"})
    assert tamias.crawl(site.url("/0"), "--depth", 1).returncode == 0
    assert sorted(path for path, _ in site.log) == sorted([*site.pages])


def test_a_dump_is_taken_instead_of_500_resources(tamias, whole):
    say(whole, part("dataDumpLocation", whole.url("/dump.nt")))
    done = tamias.crawl(whole.url("/"))
    assert done.returncode == 0, done.stderr
    assert len(dereferenced(whole)) == PROBES
    assert len(values(tamias)) == RESOURCES
    (attempt,) = tamias.attempts()[whole.url("/dump.nt")]
    assert not unsaid(attempt["reason"])
    assert len(skipped(tamias, whole)) == RESOURCES - PROBES


def test_resources_are_dereferenced_when_every_dump_is_down(tamias, whole, reply):
    whole.pages["/dump.nt"] = reply(404)
    whole.pages["/"] = b"<> <#has> </resource/1>, </resource/2> .\n"
    say(whole, part("dataDumpLocation", whole.url("/dump.nt")))
    done = tamias.crawl(whole.url("/"))
    assert done.returncode == 0, done.stderr
    assert sorted(dereferenced(whole)) == ["/resource/1", "/resource/2"]


def offering(site, reply, dump, media_type="application/n-triples", *more):
    """A site with 30 resources, and this for a dump of them."""
    places = [f"/resource/{number}" for number in range(30)]
    site.pages |= {place: triples(site, number).encode() for number, place in enumerate(places)}
    site.pages["/"] = "".join(f"<> <#has> <{place}> .\n" for place in places).encode()
    site.pages["/dump"] = reply(200, dump, **{"Content-Type": media_type})
    site.pages["/robots.txt"] = f"User-agent: *\nSitemap: {site.url('/map.xml')}\n".encode()
    say(site, part("dataDumpLocation", site.url("/dump")), *more)
    return site


def all_of(site, numbers=range(30)):
    return "".join(triples(site, number) for number in numbers).encode()


def test_what_is_no_dump_of_a_dataset_covers_nothing(tamias, site_at, reply):
    sites = {name: site_at(f"127.0.0.{2 + number}") for number, name in enumerate(NO_DUMPS)}
    for name, site in sites.items():
        offering(site, reply, *NO_DUMPS[name](site))
    done = tamias.crawl(*(site.url("/") for site in sites.values()))
    assert done.returncode == 0, done.stderr
    attempts = tamias.attempts()
    for name, site in sites.items():
        assert len(set(dereferenced(site))) == 30, name
        assert site.asked("/dump") == 1, name
        (attempt,) = attempts[site.url("/dump")]
        assert ("no copy of it" in attempt["reason"]) == (name != "another dataset"), name
    assert f"{sites['another dataset'].url('/map.xml')} offers a dataset as a whole" in done.stderr
    assert re.search(r"the copy describes [0-2] of 20 URIs looked up in it", done.stderr)


NO_DUMPS = {
    "page": lambda _: (
        b'<!DOCTYPE html><title>Data</title><script type="application/ld+json">'
        b'{"@id": "urn:e:s", "urn:e:p": "v"}</script>',
        "text/html",
    ),
    "truncated gzip": lambda site: (gzip.compress(all_of(site))[:-40], "application/gzip"),
    "no statements": lambda _: (b"# to come\n", "text/turtle"),
    "another dataset": lambda site: (all_of(site, [0, 1]) + all_of(site, range(100, 160)),),
}


def test_what_a_dump_describes_is_told_and_it_is_read_once(tamias, site, reply):
    offering(site, reply, gzip.compress(all_of(site)), "application/gzip")
    site.pages["/"] += f"<> <#dump> <{site.url('/dump')}> .\n".encode()
    done = tamias.crawl(site.url("/"), site.url("/dump"))
    assert done.returncode == 0, done.stderr
    assert len(dereferenced(site)) == PROBES
    assert site.asked("/dump") == 1
    assert len(values(tamias)) == 30
    reasons = skipped(tamias, site)
    assert len(reasons) == 30 - PROBES
    for reason in reasons.values():
        assert reason.endswith(
            "describes 20 of 20 URIs looked up in it and has 3 of 3 statements of 3 documents"
        )


def test_what_a_dump_lacks_is_requested_and_the_share_is_reported(tamias, site, reply):
    offering(site, reply, all_of(site, range(12, 30)))
    done = tamias.crawl(site.url("/"))
    assert done.returncode == 0, done.stderr
    assert values(tamias) == {str(number) for number in range(30)}
    lacking = {f"/resource/{number}" for number in range(12)}
    assert set(dereferenced(site)) >= lacking
    assert not lacking & skipped(tamias, site).keys()
    assert len(set(dereferenced(site)) - lacking) <= PROBES
    said = f"the dump of {site.url('/map.xml')} describes 18 of 30 linked resources"
    assert not unsaid(done.stderr, said)
    reasons = [tries[-1]["reason"] for url, tries in tamias.attempts().items() if "/resource/" in url]
    assert sum("not described by the dump of" in reason for reason in reasons) >= 12 - PROBES


def address(url, number, street, label):
    """A resource with a structure of blank nodes, labelled as a server likes."""
    return (
        f"<{url}> <urn:p:at> _:{label}a{number} .\n"
        f"_:{label}a{number} <urn:p:in> _:{label}b{number} .\n"
        f'_:{label}b{number} <urn:p:name> "{street} {number}" .\n'
        f'<{url}#me> <urn:p:is> "{number}" .\n'
    )


def test_a_dump_that_says_other_things_of_its_resources_covers_nothing(tamias, site, reply):
    """Every URI is a subject in it, but documents say something else of them."""
    dump = "".join(f'<{site.url(f"/resource/{number}")}> <urn:p:is> "old" .\n' for number in range(30))
    offering(site, reply, dump.encode())
    done = tamias.crawl(site.url("/"))
    assert done.returncode == 0, done.stderr
    said = "the copy describes 20 of 20 URIs looked up in it and has 0 of 3 statements of 3 documents"
    assert said in done.stderr
    assert len(set(dereferenced(site))) == 30
    assert {str(number) for number in range(30)} < values(tamias)


def test_a_dump_is_compared_as_a_graph(tamias, site, reply):
    """Blank nodes have other labels there; one resource of the samples lives elsewhere now."""
    urls = [site.url(f"/resource/{number}") for number in range(30)]
    samples = [part("sampleURI", urls[number]) for number in (4, 5)]
    dump = "".join(address(url, number, "Rue", "d") for number, url in enumerate(urls))
    offering(site, reply, dump.encode(), "application/n-triples", *samples)
    for number, url in enumerate(urls):
        street = "Gasse" if number == 4 else "Rue"
        site.pages[f"/resource/{number}"] = address(url, number, street, "x").encode()
    done = tamias.crawl(site.url("/"))
    assert done.returncode == 0, done.stderr
    asked = dereferenced(site)
    assert {"/resource/4", "/resource/5"} <= set(asked)
    everything = 4 * len(asked)
    (reason,) = set(skipped(tamias, site).values())
    assert f"and has {everything - 2} of {everything} statements of {len(asked)} documents" in reason


def test_a_resource_under_watch_is_visited_without_the_dump_that_covers_it(tamias, site, reply):
    offering(site, reply, all_of(site))
    url = site.url("/resource/7")
    assert tamias.run("add", url).returncode == 0
    for visits in (1, 2):
        done = tamias.crawl("--recrawl", url)
        assert done.returncode == 0, done.stderr
        assert (site.asked("/resource/7"), site.asked("/dump")) == (visits, 0)
    assert tamias.quads() == {f'<{url}> <urn:p:is> "7" <{url}> .'}


def test_members_named_after_resources_are_relative_to_these(tamias, site, reply):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as members:
        for number in range(30):
            name = quote(site.url(f"/resource/{number}"), safe="")
            members.writestr(name, f'<> <urn:p:is> "{number}" . <#me> <urn:p:of> <> .')
    offering(site, reply, packed.getvalue(), "application/zip")
    done = tamias.crawl(site.url("/"))
    assert done.returncode == 0, done.stderr
    url = site.url(next(place for place in skipped(tamias, site)))
    number = url.rpartition("/")[2]
    assert {line for line in tamias.quads() if line.endswith(f"<{url}> .")} == {
        f'<{url}> <urn:p:is> "{number}" <{url}> .',
        f"<{url}#me> <urn:p:of> <{url}> <{url}> .",
    }


def test_a_mirror_of_priority_0_is_asked_only_when_the_others_are_down(tamias, fresh, whole, reply):
    whole.pages["/mirror.nt"] = whole.pages["/dump.nt"]
    say(
        whole,
        part("dataDumpLocation", whole.url("/dump.nt"), 10),
        part("dataDumpLocation", whole.url("/mirror.nt"), 0),
    )
    assert tamias.crawl(whole.url("/")).returncode == 0
    assert (whole.asked("/dump.nt"), whole.asked("/mirror.nt")) == (1, 0)
    whole.pages["/dump.nt"] = reply(410)
    again = fresh("again")
    assert again.crawl(whole.url("/")).returncode == 0
    assert whole.asked("/mirror.nt") == 1
    assert len(values(again)) == RESOURCES
    assert len(dereferenced(whole)) == 2 * PROBES


def test_fragments_are_one_whole(tamias, whole, reply):
    for number in range(5):
        lines = "".join(triples(whole, each) for each in range(number, RESOURCES, 5)).encode()
        whole.pages[f"/part{number}.nt"] = reply(200, lines, **{"Content-Type": "application/n-triples"})
    say(whole, *(part("dataFragmentDump", whole.url(f"/part{number}.nt")) for number in range(5)))
    assert tamias.crawl(whole.url("/")).returncode == 0
    assert len(values(tamias)) == RESOURCES
    assert len(dereferenced(whole)) == PROBES


def test_a_claim_about_another_host_is_used_only_if_that_host_says_the_same(
    tamias, fresh, whole, site_at, reply
):
    other = site_at("127.0.0.9")
    other.pages["/dump.nt"] = whole.pages["/dump.nt"]
    whole.pages["/"] = b"<> <#has> </resource/1> .\n"
    parts = (part("dataDumpLocation", other.url("/dump.nt")),)
    say(whole, *parts)
    assert tamias.crawl(whole.url("/")).returncode == 0
    assert (other.asked("/dump.nt"), dereferenced(whole)) == (0, ["/resource/1"])
    other.pages["/sitemap.xml"] = whole.pages["/map.xml"]
    whole.log.clear()
    again = fresh("again")
    assert again.crawl(whole.url("/")).returncode == 0
    assert other.asked("/dump.nt") == 1


def paths(site):
    return sorted(path for path, _ in site.log if path != "/robots.txt")


@pytest.fixture
def neighbours(site, site_at, reply):
    """A seed that links to a page of another host, whose robots.txt names a sitemap of three more."""
    other = site_at("127.0.0.2")
    site.pages["/"] = f"<> <#next> <{other.url('/met')}> .".encode()
    other.pages |= {f"/{name}": b"<> <#p> <#o> ." for name in ("met", "a", "b", "c")}
    other.pages["/robots.txt"] = f"Sitemap: {other.url('/map.xml')}\n".encode()
    entries = (f"<url><loc>{other.url(f'/{name}')}</loc></url>" for name in "abc")
    other.pages["/map.xml"] = reply(200, sitemap(*entries), **{"Content-Type": "application/xml"})
    return site, other


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (None, ["/a", "/b", "/c", "/map.xml", "/met"]),
        (2, ["/a", "/b", "/c", "/map.xml", "/met"]),
        (1, ["/met"]),
    ],
)
def test_the_sitemap_of_a_host_met_on_the_way_counts_as_deep_as_the_url_that_opened_it(
    tamias, neighbours, depth, expected
):
    site, other = neighbours
    done = tamias.crawl(site.url("/"), *(() if depth is None else ("--depth", depth)))
    assert done.returncode == 0, done.stderr
    assert paths(other) == expected
    depths = {url: int(told[0]["depth"]) for url, told in tamias.attempts().items()}
    assert depths[other.url("/met")] == 1
    if len(expected) > 1:
        assert (depths[other.url("/map.xml")], depths[other.url("/a")]) == (1, 2)


@pytest.mark.parametrize("words", [("--exclude", r"map\.xml"), ("--scope", "host")])
def test_filters_hold_for_sitemaps(tamias, neighbours, words):
    site, other = neighbours
    site.pages["/robots.txt"] = f"Sitemap: {other.url('/map.xml')}\n".encode()
    assert tamias.crawl(site.url("/"), *words).returncode == 0
    assert "/map.xml" not in paths(other)


def test_a_host_that_was_opened_far_away_is_opened_again_by_a_shorter_way(tamias, site, site_at, reply):
    """By the quick way its sitemap is at the limit, by the slow one it is not."""
    slow, far = site_at("127.0.0.2"), site_at("127.0.0.3")

    def later(handler):
        time.sleep(1.5)
        reply(200, f"<> <#next> <{far.url('/near')}> .".encode(), **{"Content-Type": "text/turtle"})(handler)

    site.pages |= {
        "/": f"<> <#next> <{slow.url('/slow')}>, </quick> .".encode(),
        "/quick": b"<> <#next> </quicker> .",
        "/quicker": f"<> <#next> <{far.url('/met')}> .".encode(),
    }
    slow.pages["/slow"] = later
    far.pages |= {f"/{name}": b"<> <#p> <#o> ." for name in ("met", "near", "listed")}
    far.pages["/robots.txt"] = f"Sitemap: {far.url('/map.xml')}\n".encode()
    entry = f"<url><loc>{far.url('/listed')}</loc></url>"
    far.pages["/map.xml"] = reply(200, sitemap(entry), **{"Content-Type": "application/xml"})
    assert tamias.crawl(site.url("/"), "--depth", 3, "--workers", 2).returncode == 0
    assert set(paths(far)) == {"/met", "/near", "/map.xml", "/listed"}


def test_what_sitemaps_of_a_host_may_bring_is_bounded_and_told(tamias, neighbours, reply):
    site, other = neighbours
    parts = "".join(f"<sitemap><loc>{other.url(f'/map{n}.xml')}</loc></sitemap>" for n in range(3))
    index = f"<sitemapindex {NAMESPACES}>{parts}</sitemapindex>".encode()
    other.pages["/map.xml"] = reply(200, index, **{"Content-Type": "application/xml"})
    for number in range(3):
        entries = [f"<url><loc>{other.url(f'/{number}{name}')}</loc></url>" for name in "abcd"]
        other.pages[f"/map{number}.xml"] = reply(
            200, sitemap(*entries), **{"Content-Type": "application/xml"}
        )
    tamias.env |= {"TAMIAS_SEEDS__HOST_SITEMAPS": "2", "TAMIAS_SEEDS__HOST_SITEMAP_URLS": "5"}
    assert tamias.crawl(site.url("/")).returncode == 0
    assert len([path for path in paths(other) if path.startswith("/map")]) == 3
    assert len([path for path in paths(other) if path[1].isdigit()]) == 5
    told = {
        url: each["problem"]
        for url, tried in tamias.attempts().items()
        for each in tried
        if "problem" in each
    }
    assert "seeds.host_sitemaps (2)" in told[other.url("/map.xml")]
    assert any("seeds.host_sitemap_urls (5)" in problem for problem in told.values())


def test_a_sitemap_that_is_read_again_uses_up_nothing(tamias, neighbours):
    _, other = neighbours
    tamias.env["TAMIAS_SEEDS__HOST_SITEMAP_URLS"] = "3"
    for _ in range(3):
        assert tamias.crawl(other.url("/met"), "--crawl", "one").returncode == 0
    assert paths(other) == ["/a", "/b", "/c", "/map.xml", "/met"]
