"""Sitemaps, and datasets that a site offers as a whole instead of page by page."""

import pytest

NAMESPACES = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:sc="http://sw.deri.org/2007/07/sitemapextension/scschema.xsd"'
)
RESOURCES = 500


def sitemap(*entries):
    return f'<?xml version="1.0"?><urlset {NAMESPACES}>{"".join(entries)}</urlset>'.encode()


def dataset(*parts):
    return f"<sc:dataset>{''.join(parts)}</sc:dataset>"


def part(name, value, priority=None):
    told = "" if priority is None else f' priority="{priority}"'
    return f"<sc:{name}{told}>{value}</sc:{name}>"


def triples(site, number):
    return f'<{site.url(f"/resource/{number}")}> <http://p.example/is> "{number}" .\n'


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


def values(tamias):
    return {line.split('"')[1] for line in tamias.quads() if "<http://p.example/is>" in line}


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
    assert dereferenced(whole) == []
    assert len(values(tamias)) == RESOURCES
    (attempt,) = tamias.attempts()[whole.url("/dump.nt")]
    assert "chosen for the dataset" in attempt["reason"]
    (skipped,) = tamias.attempts()[whole.url("/resource/7")]
    assert (skipped["outcome"], "offers as a whole" in skipped["reason"]) == ("skipped", True)


def test_resources_are_dereferenced_when_every_dump_is_down(tamias, whole, reply):
    whole.pages["/dump.nt"] = reply(404)
    whole.pages["/"] = b"<> <#has> </resource/1>, </resource/2> .\n"
    say(whole, part("dataDumpLocation", whole.url("/dump.nt")))
    done = tamias.crawl(whole.url("/"))
    assert done.returncode == 0, done.stderr
    assert sorted(dereferenced(whole)) == ["/resource/1", "/resource/2"]


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
    assert dereferenced(whole) == []


def test_fragments_are_one_whole(tamias, whole, reply):
    for number in range(5):
        lines = "".join(triples(whole, each) for each in range(number, RESOURCES, 5)).encode()
        whole.pages[f"/part{number}.nt"] = reply(200, lines, **{"Content-Type": "application/n-triples"})
    say(whole, *(part("dataFragmentDump", whole.url(f"/part{number}.nt")) for number in range(5)))
    assert tamias.crawl(whole.url("/")).returncode == 0
    assert len(values(tamias)) == RESOURCES
    assert dereferenced(whole) == []


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
