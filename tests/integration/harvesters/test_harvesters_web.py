"""A web with every kind of harvester, crawled from one seed: all is found, and nothing asked for twice."""

import json
import shutil
import threading
import warnings
from collections import Counter

import pytest

from tamias.model.errors import LimitReached

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of asyncore, which it uses
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import ThreadedFTPServer

VALUE = "http://p.example/value"
SITEMAP = (
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:sc="http://sw.deri.org/2007/07/sitemapextension/scschema.xsd">'
)


def fact(kind, number=0):
    """A triple that only one harvester leads to."""
    return f'<http://fact.example/{kind}/{number}> <{VALUE}> "{kind}" .\n'


def turtle(reply, text):
    return reply(200, text.encode(), **{"Content-Type": "text/turtle"})


def html(reply, text):
    return reply(200, f"<!DOCTYPE html><html>{text}</html>".encode(), **{"Content-Type": "text/html"})


def as_json(reply, value):
    return reply(200, json.dumps(value).encode(), **{"Content-Type": "application/json"})


@pytest.fixture
def ftp(tmp_path):
    """An FTP server with a tree of files."""
    folder = tmp_path / "ftp"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "top.ttl").write_text(fact("ftp", 0))
    (folder / "a" / "b" / "deep file.nt").write_text(fact("ftp", 1))
    authorizer = DummyAuthorizer()
    authorizer.add_anonymous(str(folder))
    handler = type("Handler", (FTPHandler,), {"authorizer": authorizer})
    server = ThreadedFTPServer(("127.0.0.7", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"ftp://127.0.0.7:{server.address[1]}/"
    server.close_all()


@pytest.fixture
def web(site_at, reply, proxy, sparql_server, ftp):
    """The sites of the web; the first has the seed."""
    sparql_server.load(
        fact("sparql", 0)
        + "".join(
            f'<http://fact.example/sparql/{n}> <{VALUE}> "sparql" <http://g.example/{n}> .\n' for n in (1, 2)
        )
    )
    proxy.cap = 2
    home, data = site_at("127.0.0.2"), site_at("127.0.0.3")
    portal, stream = site_at("127.0.0.4"), site_at("127.0.0.5")
    _home(home, reply, data, portal, stream, ftp)
    _data(data, reply, proxy)
    _portal(portal, reply, data)
    _stream(stream, reply)
    return {"home": home, "data": data, "portal": portal, "stream": stream}


def _home(home, reply, data, portal, stream, ftp):
    links = "".join(f'<a href="{url}">x</a>' for url in (
        data.url("/page"), data.url("/hash#me"), data.url("/see"), data.url("/void"), portal.url("/"),
        stream.url("/feed"), ftp,
    ))  # fmt: skip
    home.pages["/"] = html(reply, f"<body>{links}</body>")
    home.pages["/robots.txt"] = f"Sitemap: {home.url('/map.xml')}\n".encode()
    covered = f"<sc:linkedDataPrefix>{home.url('/r/')}</sc:linkedDataPrefix>"
    dump = f"<sc:dataDumpLocation>{home.url('/all.nt')}</sc:dataDumpLocation>"
    page = f"<url><loc>{home.url('/listed')}</loc></url>"
    whole = f"{SITEMAP}<sc:dataset>{covered}{dump}</sc:dataset>{page}</urlset>"
    home.pages["/map.xml"] = reply(200, whole.encode(), **{"Content-Type": "application/xml"})
    parts = {f"/r/{number}": f'<{home.url(f"/r/{number}")}> <urn:is> "{number}" .\n' for number in range(9)}
    home.pages["/listed"] = turtle(
        reply, fact("sitemap") + "".join(f"<> <#has> <{part}> .\n" for part in parts)
    )
    home.pages["/all.nt"] = turtle(reply, fact("semantic-sitemap") + "".join(parts.values()))
    home.pages |= {part: turtle(reply, said) for part, said in parts.items()}


def _data(data, reply, proxy):
    alternate = '<head><link rel="alternate" type="text/turtle" href="/alternate.ttl"></head>'
    script = json.dumps({"@id": "http://fact.example/json-ld/0", VALUE: "json-ld"})
    data.pages["/page"] = reply(
        200,
        f'<html>{alternate}<script type="application/ld+json">{script}</script></html>'.encode(),
        Content_Type="text/html",
        Link='</described.ttl>; rel="describedby"; type="text/turtle"',
    )
    data.pages["/alternate.ttl"] = turtle(reply, fact("alternate"))
    data.pages["/described.ttl"] = turtle(reply, fact("link-header"))
    data.pages["/hash"] = turtle(reply, fact("hash"))
    data.pages["/see"] = reply(303, Location=data.url("/seen"))
    data.pages["/seen"] = turtle(reply, fact("see-other"))
    void = (
        f"@prefix void: <http://rdfs.org/ns/void#> . <#set> a void:Dataset ; "
        f"void:sparqlEndpoint <{proxy.url}> ; void:dataDump <{data.url('/dump.nt')}> .\n"
    )
    data.pages["/void"] = turtle(reply, void)
    data.pages["/dump.nt"] = turtle(reply, fact("void-dump"))


def _portal(portal, reply, data):
    page = '<head><meta name="generator" content="ckan 2.10.4"></head><body data-site-root="/"></body>'
    portal.pages["/"] = html(reply, page)
    record = {
        "id": "one", "name": "one", "title": "One", "notes": "The one.",
        "resources": [{"id": "r", "url": data.url("/offered.nt"), "format": "N-Triples"}],
    }  # fmt: skip
    data.pages["/offered.nt"] = turtle(reply, fact("ckan"))
    ckan = {"success": True, "result": {"count": 1, "results": [record]}}
    empty = {"success": True, "result": {"count": 1, "results": []}}

    def search(handler):
        start = handler.path.partition("start=")[2].partition("&")[0]
        as_json(reply, ckan if start in ("", "0") else empty)(handler)

    portal.pages["/api/3/action/package_search?"] = search


def _stream(stream, reply):
    prefixes = "@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> .\n"
    members = "".join(
        f"<#stream> tree:member <http://fact.example/ldes/{n}> .\n{fact('ldes', n)}" for n in (0, 1)
    )
    first = (
        f"{prefixes}<#stream> a ldes:EventStream ; tree:view <> . <> tree:relation "
        f"[ a tree:Relation ; tree:node <{stream.url('/feed?page=2')}> ] .\n"
    )
    stream.pages["/feed"] = turtle(reply, first + members)
    member = f"<{stream.url('/feed')}#stream> tree:member <http://fact.example/ldes/2> .\n"
    more = prefixes + member + fact("ldes", 2)
    stream.pages["/feed?page=2"] = turtle(reply, more)


EXPECTED = {
    "sitemap": 1, "semantic-sitemap": 1, "json-ld": 1, "alternate": 1, "link-header": 1, "hash": 1,
    "see-other": 1, "void-dump": 1, "sparql": 3, "ckan": 1, "ldes": 3, "ftp": 2,
}  # fmt: skip


def facts(tamias):
    """How many facts of each kind were found."""
    found = {line.split(">")[0] for line in tamias.quads() if f"<{VALUE}>" in line}
    return Counter(subject.split("/")[3] for subject in found)


def test_every_harvester_is_found_from_one_seed_and_ordinary_pages_are_asked_for_once(tamias, web):
    done = tamias.crawl(web["home"].url("/"))
    assert done.returncode in (0, LimitReached.exit_code), done.stderr  # names in the data may not resolve
    assert facts(tamias) == EXPECTED, tamias.attempts()
    ordinary = set(web["data"].pages)
    assert {path: web["data"].asked(path) for path in ordinary} == dict.fromkeys(ordinary, 1)
    assert sum(web["home"].asked(f"/r/{number}") for number in range(9)) == 3  # compared with the dump
    assert web["home"].asked("/listed") == web["home"].asked("/") == 1


def pages(proxy):
    """The queries for statements, not those that count or list."""
    forms = ("SELECT ?s ?o", "SELECT ?s ?p ?o", "CONSTRUCT")
    return [query for query in proxy.asked if query.startswith(forms) and not query.endswith("LIMIT 1")]


def test_a_copy_killed_in_the_middle_goes_on_after_the_last_page_that_was_kept(
    tamias, proxy, sparql_server, kill
):
    sparql_server.load("".join(fact("copy", number) for number in range(2000)))
    proxy.cap = 10
    usual = ("--allow-private", "--delay", "0", "--workers", "1")
    crawl = tamias.start("crawl", *usual, f"sparql:{proxy.url}", "--depth", "0")
    tamias.wait_until(lambda: len(pages(proxy)) > 80)
    for pid in (crawl.pid, *tamias.workers()):
        kill(pid)
    crawl.wait()
    asked = len(pages(proxy))
    done = tamias.crawl()
    assert done.returncode == 0, done.stderr
    assert facts(tamias) == {"copy": 2000}
    assert len(pages(proxy)) > asked
    repeated = [query for query, times in Counter(pages(proxy)).items() if times > 1]
    assert len(repeated) <= 3  # the windows before and at the break, and the one that showed the order
    (attempt,) = tamias.attempts()[proxy.url]
    assert "copied whole" in attempt["reason"]


def parts(object_store):
    """Those of harvests that the store has."""
    return {name for name in list(object_store.objects) if "harvests/" in name}


def test_a_copy_goes_on_at_another_machine_that_has_only_the_store(
    machine, object_store, proxy, sparql_server, kill
):
    sparql_server.load("".join(fact("copy", number) for number in range(1000)))
    proxy.cap = 10
    words = ("--allow-private", "--delay", "0", "--workers", "1", "--store", "s3://bucket/archive")
    one, two = machine("one"), machine("two")
    for each in (one, two):
        each.env["TAMIAS_FRONTIER__LEASE"] = "8"  # a busy machine must not lose it
    crawl = one.start("crawl", *words, f"sparql:{proxy.url}", "--depth", "0")
    one.wait_until(lambda: len(pages(proxy)) > 40 and parts(object_store))
    for pid in (crawl.pid, *one.workers()):
        kill(pid)
    crawl.wait()
    one.end()
    shutil.rmtree(one.data)
    left = parts(object_store)
    done = two.run("crawl", *words)
    assert done.returncode == 0, done.stderr
    assert facts(two) == {"copy": 1000}
    repeated = [query for query, times in Counter(pages(proxy)).items() if times > 1]
    assert len(repeated) <= 3
    # The last part of the dead may be one whose row was not committed: `check` takes it away after some time.
    assert len(parts(object_store)) <= 1
    assert parts(object_store) <= left


def test_an_endpoints_own_address_is_requested_once(tamias, proxy, sparql_server, site_at, reply):
    sparql_server.load(fact("once"))
    home = site_at("127.5.5.5")
    named = f"<#d> <http://rdfs.org/ns/void#sparqlEndpoint> <{proxy.url}> .\n"
    home.pages["/void"] = turtle(reply, named)
    options = (
        "--allow-private",
        "--delay",
        "0",
        "--workers",
        "1",
        "--exclude",
        "w3[.]org|example|rdfs[.]org",
    )
    done = tamias.run("crawl", *options, home.url("/void"), "--depth", "3")
    assert facts(tamias) == {"once": 1}, done.stderr
    assert proxy.described == 1, tamias.attempts()
