"""JSON with a JSON-LD context in its Link header (JSON-LD 1.1, section 6.1), crawled and by `tamias read`."""

import json

import pytest

KNOWN = {"@id": "http://schema.example/knows", "@type": "@id"}
CONTEXT = json.dumps({"@context": {"name": "http://schema.example/name", "knows": KNOWN}}).encode()
REL = 'rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'
ALICE = b'{"name": "Alice", "knows": "bob"}'


@pytest.fixture
def json_site(site, reply):
    site.pages["/context.jsonld"] = reply(200, CONTEXT, Content_Type="application/ld+json")
    linked = {"Link": f"</context.jsonld>; {REL}"}
    site.pages["/alice"] = reply(200, ALICE, Content_Type="application/json", **linked)
    site.pages["/list"] = reply(
        200, b"[%b, %b]" % (ALICE, ALICE), Content_Type="application/vnd.x+json", **linked
    )
    own = b'{"@context": {"age": "http://schema.example/age"}, "name": "Carol", "age": 5}'
    site.pages["/own"] = reply(200, own, Content_Type="application/json", **linked)
    site.pages["/plain"] = reply(200, ALICE, Content_Type="application/json")
    site.pages["/told"] = reply(200, ALICE, Content_Type="application/ld+json", **linked)
    return site


NAME, KNOWS, AGE = (f"<http://schema.example/{name}>" for name in ("name", "knows", "age"))


def statements(lines):
    """Predicate and object, for the subjects are blank nodes."""
    return sorted(tuple(line.split(" ", 1)[1].removesuffix(" .").split(" ")[:2]) for line in lines)


def expected(site):
    alice = [(KNOWS, f"<{site.url('/bob')}>"), (NAME, '"Alice"')]
    carol = [(AGE, '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'), (NAME, '"Carol"')]
    return {"/alice": alice, "/list": sorted(alice * 2), "/own": carol, "/plain": [], "/told": []}


def test_a_crawl_reads_it_in_its_context(tamias, json_site):
    wanted = expected(json_site)
    done = tamias.crawl(*(json_site.url(path) for path in wanted), "--depth", 0)
    assert done.returncode == 0, done.stderr
    lines = tamias.quads()
    for path, statements_wanted in wanted.items():
        of_path = [line for line in lines if line.endswith(f" <{json_site.url(path)}> .")]
        assert statements(of_path) == statements_wanted, path
    assert json_site.asked("/context.jsonld") == 1


@pytest.mark.parametrize("path", ["/alice", "/list", "/own", "/plain", "/told"])
def test_tamias_read_does_too(tamias, json_site, path):
    done = tamias.run("read", json_site.url(path), "--allow-private")
    assert statements(done.stdout.splitlines()) == expected(json_site)[path], done.stderr
