"""Remote JSON-LD contexts: fetched politely in their own queue, once for all documents that want them."""

import json

CONTEXT = json.dumps({"@context": {"name": "http://schema.example/name"}}).encode()


def wanting(context, **more):
    return json.dumps({"@context": context, "@id": "", "name": "Tamias", **more}).encode()


def json_ld(reply, body):
    return reply(200, body, **{"Content-Type": "application/ld+json"})


def test_a_context_on_another_host_is_fetched_once_for_many_documents(tamias, site_at, reply):
    here, there = site_at("127.0.0.2"), site_at("127.0.0.3")
    there.pages["/context"] = json_ld(reply, CONTEXT)
    here.pages |= {f"/{number}": json_ld(reply, wanting(there.url("/context"))) for number in range(5)}
    done = tamias.crawl(*(here.url(path) for path in here.pages), "--depth", 0)
    assert done.returncode == 0, done.stderr
    assert "5 URLs visited" in done.stderr
    names = [line for line in tamias.quads() if '<http://schema.example/name> "Tamias"' in line]
    assert len(names) == 5
    assert there.asked("/context") == 1
    assert all(here.asked(path) == 1 for path in here.pages)


def test_a_context_may_name_another_and_stand_on_the_same_host(tamias, site, reply):
    site.pages["/outer"] = json_ld(reply, json.dumps({"@context": [site.url("/inner")]}).encode())
    site.pages["/inner"] = json_ld(reply, CONTEXT)
    site.pages["/data"] = json_ld(reply, wanting(site.url("/outer")))
    done = tamias.crawl(site.url("/data"), "--depth", 0)
    assert done.returncode == 0, done.stderr
    assert any("<http://schema.example/name>" in line for line in tamias.quads())
    assert (site.asked("/outer"), site.asked("/inner"), site.asked("/data")) == (1, 1, 1)


def test_robots_txt_of_the_contexts_host_is_obeyed(tamias, site_at, reply):
    here, there = site_at("127.0.0.2"), site_at("127.0.0.3")
    there.pages |= {"/robots.txt": b"User-agent: *\nDisallow: /", "/context": json_ld(reply, CONTEXT)}
    here.pages["/data"] = json_ld(reply, wanting(there.url("/context")))
    done = tamias.crawl(here.url("/data"), "--depth", 0)
    assert done.returncode == 0, done.stderr
    assert there.asked("/context") == 0
    (attempt,) = tamias.attempts()[here.url("/data")]
    assert there.url("/context") in attempt["problem"]


def test_json_ld_in_a_page_gets_its_context_too(tamias, site_at, reply):
    here, there = site_at("127.0.0.2"), site_at("127.0.0.3")
    there.pages["/context"] = json_ld(reply, CONTEXT)
    script = wanting(there.url("/context")).decode()
    page = f'<html><script type="application/ld+json">{script}</script></html>'.encode()
    here.pages["/page"] = reply(200, page, **{"Content-Type": "text/html"})
    done = tamias.crawl(here.url("/page"), "--depth", 0)
    assert done.returncode == 0, done.stderr
    assert any("<http://schema.example/name>" in line for line in tamias.quads())
