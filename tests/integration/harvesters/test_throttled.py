"""Endpoints and portals that ask for pauses: the copy is whole, and `--max-wait` still ends a run."""

import json
import os
import re

import pytest

from tests.examples import sample

EX = "http://example.org/"
NO_DESCRIPTION = "<!DOCTYPE html><html><form>Query</form></html>"
DCAT = "@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix hydra: <http://www.w3.org/ns/hydra/core#> .\n"
OAI = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
DC = 'xmlns:o="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/"'


class Source:
    """Pages of two records each; every answer can be a pause instead."""

    def __init__(self, site, reply, kind, pages):
        self.url = f"{kind}:{site.url('/')}"
        self.answers = 0
        self.pauses = lambda _number: None
        """The status and Retry-After of an answer, by its number; None: the page."""
        self._site, self._reply, self._pages, self._page = site, reply, pages, getattr(self, f"_{kind[:3]}")
        site.serve = self._serve

    def _serve(self, handler):
        self._site.log.append((handler.path, 0.0))
        path, _, query = handler.path.partition("?")
        words = dict(pair.split("=") for pair in query.split("&") if pair)
        if path == "/robots.txt":
            return self._reply(404)(handler)
        self.answers += 1
        if pause := self.pauses(self.answers):
            status, seconds = pause
            return self._reply(status, **({} if seconds is None else {"Retry-After": seconds}))(handler)
        media_type, body = self._page(path, words)
        return self._reply(200 if body else 404, body.encode(), **{"Content-Type": media_type})(handler)

    def _cka(self, path, words):
        start, rows = int(words.get("start", 0)), min(2, int(words.get("rows", 10)))
        found = [
            {"id": f"{number:05}", "name": f"n{number}", "title": f"Title {number}", "resources": []}
            for number in range(start, min(start + rows, 2 * self._pages))
        ]
        answer = {"success": True, "result": {"count": 2 * self._pages, "results": found}}
        return "application/json", json.dumps(answer) if path.endswith("package_search") else ""

    def _oai(self, _path, words):
        verb, page = words["verb"], int(words.get("resumptionToken", 1))
        records = "".join(
            f"<record><header><identifier>oai:r:{number}</identifier><datestamp>2024-01-01</datestamp></header>"
            f"<metadata><o:dc {DC}><dc:title>Title {number}</dc:title><dc:type>Dataset</dc:type>"
            f"<dc:identifier>{EX}{number}</dc:identifier></o:dc></metadata></record>"
            for number in (2 * page - 1, 2 * page)
        )
        more = f"<resumptionToken>{page + 1}</resumptionToken>" if page < self._pages else ""
        formats = "<metadataFormat><metadataPrefix>oai_dc</metadataPrefix></metadataFormat>"
        said = {"ListRecords": records + more, "ListMetadataFormats": formats}
        body = said.get(verb, "<repositoryName>All</repositoryName><granularity>YYYY-MM-DD</granularity>")
        return "text/xml", f"{OAI}<{verb}>{body}</{verb}></OAI-PMH>"

    def _dca(self, _path, words):
        page, text = int(words.get("page", 1)), DCAT
        for number in (2 * page - 1, 2 * page):
            text += (
                f'<{EX}> dcat:dataset <{EX}{number}> . <{EX}{number}> a dcat:Dataset ; <{EX}t> "{number}" .\n'
            )
        here = self._site.url("/")
        text += f"<{here}?page={page}> a hydra:PartialCollectionView .\n"
        if page < self._pages:
            text += f"<{here}?page={page}> hydra:next <{here}?page={page + 1}> .\n"
        return "text/turtle", text


PORTALS = ["ckan", "oai-pmh", "dcat"]
MANY = 450 if os.environ.get("TAMIAS_NIGHTLY") else 80
"""Pages: more pauses than a URL has retries."""
PAUSES = [(MANY, (429, "0")), (20, (429, None)), (20, (503, "0"))]


@pytest.mark.parametrize(
    ("kind", "pages", "pause"), sample(((kind, *each) for kind in PORTALS for each in PAUSES), 2)
)
def test_a_portal_that_pauses_at_every_tenth_request_is_read_whole(kind, pages, pause, fresh, site, reply):
    source = Source(site, reply, kind, pages)
    plain, throttled = fresh("plain"), fresh("throttled")
    assert plain.crawl("--depth", "0", source.url).returncode == 0
    source.answers, source.pauses = 0, lambda number: None if number % 10 else pause
    done = throttled.crawl("--depth", "0", source.url)
    assert done.returncode == 0, done.stderr
    assert source.answers >= pages + pages // 10
    assert throttled.quads() == plain.quads()


def statements(count):
    return "".join(f'<{EX}s{number}> <{EX}p> "{number}" .\n' for number in range(count))


@pytest.mark.parametrize(
    ("pages", "every", "pause"),
    [*((pages, 10, pause) for pages, pause in PAUSES), (20, 5, (503, "0")), (20, 2, (429, "0"))],
)
def test_an_endpoint_that_pauses_again_and_again_is_copied_whole(
    pages, every, pause, fresh, proxy, sparql_server
):
    sparql_server.load(statements(10 * pages))
    proxy.cap, proxy.description = 12, NO_DESCRIPTION
    plain, throttled = fresh("plain"), fresh("throttled")
    assert plain.crawl("--depth", "0", f"sparql:{proxy.url}").returncode == 0
    proxy.asked.clear()
    proxy.faults = lambda number: None if number % every else pause
    done = throttled.crawl("--depth", "0", f"sparql:{proxy.url}")
    assert done.returncode == 0, done.stderr
    assert len(proxy.asked) > pages
    assert throttled.quads() == plain.quads()
    (attempt,) = [each for each in throttled.attempts()[proxy.url] if each["outcome"] == "ok"]
    assert attempt["reason"].startswith(f"copied whole: {10 * pages:,} statements")


@pytest.mark.parametrize("at", [1, 4, 8, 12])
def test_a_run_ends_with_5_where_a_pause_is_longer_than_max_wait_and_the_next_run_goes_on(
    at, tamias, proxy, sparql_server
):
    """The pause comes at each place of the survey, then between pages."""
    sparql_server.load(statements(40))
    proxy.cap = 10
    proxy.faults = {at: (429, "8")}
    crawl = ("--depth", "0", f"sparql:{proxy.url}")
    first = tamias.crawl(*crawl, "--max-wait", "1")
    assert first.returncode == 5, first.stderr
    second = tamias.crawl(*crawl, "--max-wait", "60")
    assert second.returncode == 0, second.stderr
    assert proxy.described == 1
    assert len(tamias.quads()) >= 40


def test_a_long_pause_of_a_portal_ends_the_run_with_5_and_the_next_run_goes_on(tamias, site, reply):
    source = Source(site, reply, "ckan", pages=20)
    source.pauses = lambda number: (503, "8") if number == 12 else None
    first = tamias.crawl("--depth", "0", "--max-wait", "1", source.url)
    assert first.returncode == 5, first.stderr
    second = tamias.crawl("--depth", "0", "--max-wait", "60", source.url)
    assert second.returncode == 0, second.stderr
    assert len(site.log) <= len({path for path, _ in site.log}) + 6
    assert len(set(re.findall(r"Title \d+", "".join(tamias.quads())))) == 40


def test_failures_count_since_the_last_progress(tamias, proxy, sparql_server):
    """Six of the answers in a row fail, six times, which is more than the retries of a URL."""
    sparql_server.load(statements(900))
    proxy.cap = 12
    proxy.faults = lambda number: "500" if number % 30 >= 20 else None
    done = tamias.crawl("--depth", "0", f"sparql:{proxy.url}")
    assert done.returncode == 0, done.stderr
    assert sum(f"<{EX}p>" in line for line in tamias.quads()) == 900


@pytest.mark.parametrize("pause", [(429, "0"), (503, None)])
def test_an_endpoint_that_never_comes_back_is_given_up_and_what_came_is_counted_right(
    pause, tamias, proxy, sparql_server
):
    sparql_server.load(statements(300))
    proxy.cap, proxy.description = 12, NO_DESCRIPTION
    proxy.faults = lambda number: pause if number > 20 else None
    done = tamias.crawl("--depth", "0", f"sparql:{proxy.url}")
    assert done.returncode == 1, done.stderr
    (last,) = [each for each in tamias.attempts()[proxy.url] if "deferred" not in each][-1:]
    said = int(re.search(r"([\d,]+) statements so far", last["reason"])[1].replace(",", ""))
    assert said == len(tamias.quads()) > 0
