"""WARC files of crawls have what other tools expect: robots.txt, addresses, protocols, revisits."""

import json
import zipfile

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.integration.serve.test_warc_replay import served
from tests.messages import unsaid

PAGE = "<title>\n A page of\tours </title><p>Grüße</p>".encode("latin-1")


@pytest.fixture
def crawled(tamias, site, reply):
    html = {"Content-Type": "text/html; charset=iso-8859-1"}
    site.pages |= {
        "/": reply(200, PAGE, **html),
        "/robots.txt": reply(200, b"User-agent: *\nAllow: /\n", Content_Type="text/plain"),
    }
    tamias.url = site.url("/").replace("127.0.0.1", "site.test")
    crawl(tamias, tamias.url)
    return tamias


def crawl(tamias, *words):
    run = tamias.crawl("--sink", "warc", "--resolve", "site.test:127.0.0.1", *words)
    assert run.returncode == 0, run.stderr


def records(tamias):
    path = tamias.data.parent / "all.warc.gz"
    assert tamias.run("export", "--format", "warc", "-o", path).returncode == 0
    with path.open("rb") as file:
        return [
            (each.rec_type, each.rec_headers, each.content_stream().read()) for each in ArchiveIterator(file)
        ]


def test_robots_txt_the_address_and_the_protocol_are_recorded(crawled):
    found = {(kind, head["WARC-Target-URI"]): (head, body) for kind, head, body in records(crawled)}
    robots = crawled.url + "robots.txt"
    assert found["response", robots][1] == b"User-agent: *\nAllow: /\n"
    assert ("request", robots) in found
    assert found["resource", "dns:site.test"][1].split(b"\n")[1] == b"site.test.\tIN\tA\t127.0.0.1"
    head, _ = found["response", crawled.url]
    assert (head["WARC-Protocol"], head["WARC-IP-Address"]) == ("http/1.1", "127.0.0.1")
    with served(crawled) as client:
        (line,) = client.get("/cdx", params={"url": robots}).text.splitlines()
        reply = client.get(f"/memento/{line.split()[1]}/{robots}")
        assert (reply.status_code, reply.content) == (200, b"User-agent: *\nAllow: /\n")
    assert crawled.run("check").returncode == 0


def test_an_equal_body_of_an_earlier_run_is_a_revisit_and_replayed(crawled):
    crawl(crawled, "--again")
    kinds = [kind for kind, head, _ in records(crawled) if head["WARC-Target-URI"] == crawled.url]
    assert sorted(kinds) == ["metadata", "metadata", "request", "request", "response", "revisit"]
    (revisit,) = [
        head
        for kind, head, _ in records(crawled)
        if kind == "revisit" and head["WARC-Target-URI"] == crawled.url
    ]
    assert revisit["WARC-Refers-To-Target-URI"] == crawled.url
    with served(crawled) as client:
        lines = client.get("/cdx", params={"url": crawled.url}).text.splitlines()
        assert [line.split()[3] for line in lines] == ["text/html", "warc/revisit"]
        mementos = client.get(f"/timemap/json/{crawled.url}").json()["mementos"]["list"]
        assert [client.get(each["uri"]).content for each in mementos] == [PAGE, PAGE]
    run = crawled.run("forget", crawled.url, "--reason", "asked for")
    assert run.returncode == 0, run.stderr
    assert not [kind for kind, head, _ in records(crawled) if head["WARC-Target-URI"] == crawled.url]


def test_pages_of_a_wacz_have_their_titles(crawled):
    path = crawled.data.parent / "all.wacz"
    assert crawled.run("export", "--format", "wacz", "-o", path).returncode == 0
    with zipfile.ZipFile(path) as package:
        _, *pages = map(json.loads, package.read("pages/pages.jsonl").splitlines())
    assert [(each["url"], each["title"]) for each in pages] == [(crawled.url, "A page of ours")]


def test_a_crawl_that_stores_pages_without_their_requisites_says_so(tamias, site, reply):
    site.pages |= {"/": reply(200, PAGE, Content_Type="text/html"), "/robots.txt": reply(404)}
    plain = tamias.crawl("--sink", "warc", site.url("/"))
    assert not unsaid(plain.stderr, "--requisites")
    whole = tamias.crawl("--sink", "warc", "--requisites", "--crawl", "whole", site.url("/"))
    assert "--requisites" not in whole.stderr
    assert "--requisites" not in tamias.crawl("--crawl", "none", site.url("/")).stderr
