"""What was last read stays current: recrawls of watched resources, and what `export` says after each.

A visit takes a second, so each test has many resources, each a document of its own.
"""

import io
import time
import zipfile
from contextlib import closing

import pytest

from tamias.database.connect import Database

TURTLE, PAGE, ARCHIVE = "text/turtle", "text/html", "application/zip"
ETAG, DATE = '"one"', "Sun, 01 Nov 2026 00:00:00 GMT"
VALIDATORS = {"none": {}, "etag": {"ETag": ETAG}, "date": {"Last-Modified": DATE}}


def triples(word, lines=1):
    """Turtle with IRIs of its own and blank nodes."""
    rows = [f'<#{n}> <http://e/p> "{word} {n}", [ <http://e/q> <#{n}> ] .\n' for n in range(lines)]
    return "".join(rows).encode()


def page(word):
    linked = f'<script type="application/ld+json">{{"@id": "http://e/{word}", "http://e/p": "v"}}</script>'
    marked = f'<p vocab="http://schema.org/" typeof="Person"><b property="name">{word}</b></p>'
    return f"<!DOCTYPE html><title>{word}</title>{marked}{linked}".encode()


def packed(word, lines=1):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as members:
        for name in ("a.ttl", "b.ttl"):
            members.writestr(zipfile.ZipInfo(name), triples(f"{word} {name}", lines))
    return archive.getvalue()


BODIES = {TURTLE: triples, PAGE: page, ARCHIVE: packed}


def reply(handler, status, body=b"", **headers):
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def replying(status, body=b"", **headers):
    return lambda handler: reply(handler, status, body, **headers)


def holding(body, media_type=TURTLE, **validators):
    """A page that answers 304 to those who have it."""

    def answer(handler):
        known = handler.headers.get("If-None-Match") or handler.headers.get("If-Modified-Since")
        if known is not None and known in validators.values():
            reply(handler, 304, **validators)
        else:
            reply(handler, 200, body, **{"Content-Type": media_type}, **validators)

    return answer


class Watch:
    """Resources under watch, and what a user has of them."""

    def __init__(self, tamias):
        self._tamias = tamias

    def add(self, *urls):
        done = self._tamias.run("add", *urls)
        assert done.returncode == 0, done.stderr

    def visit(self, *urls):
        done = self._tamias.crawl("--recrawl", *urls, "--max-wait", "0")
        assert done.returncode in (0, 5), done.stderr

    def exported(self, *words):
        """Sorted N-Quads by document."""
        done = self._tamias.run("export", *words)
        assert done.returncode == 0, done.stderr
        graphs = {}
        for line in sorted(done.stdout.splitlines()):
            graph = line.rsplit(" ", 2)[1].strip("<>")
            graphs.setdefault(graph, []).append(line)
        return graphs

    def outcomes(self):
        """How often each resource was visited, and how that ended."""
        return {
            url: sorted(each["outcome"] for each in attempts)
            for url, attempts in self._tamias.attempts().items()
        }


@pytest.fixture
def watch(tamias):
    tamias.env["TAMIAS_CRAWL__RETRIES"] = "0"
    return Watch(tamias)


def test_an_unchanged_body_leaves_the_export_as_it_is(watch, site):
    site.pages["/robots.txt"] = b""
    urls, documents = [], []
    for media_type, body in BODIES.items():
        for name, validators in VALIDATORS.items():
            for way in ("direct", "moved"):
                place = f"/{media_type}/{name}/{way}"
                site.pages[place] = holding(body(place), media_type, **validators)
                documents.append(site.url(place))
                if way == "moved":
                    site.pages[place + "/from"] = replying(302, Location=place)
                    place += "/from"
                urls.append(site.url(place))
    watch.add(*urls)
    watch.visit(*urls)
    first = watch.exported()
    assert sorted(first) == sorted(documents)
    assert min(map(len, first.values())) >= 2
    for visits in (2, 3, 4):
        watch.visit(*urls)
        assert watch.exported() == first
        assert {len(outcomes) for outcomes in watch.outcomes().values()} == {visits}
    assert watch.exported("--history") == first


def hanging(handler):
    time.sleep(4)
    handler.close_connection = True


def ending_early(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", TURTLE)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(triples("early"))
    handler.close_connection = True


LEAVING = {
    "/unavailable": (replying(503), "failed"),
    "/broken": (replying(500), "failed"),
    "/unauthorised": (replying(401), "failed"),
    "/timeout": (hanging, "failed"),
    "/early-end": (ending_early, "failed"),
    "/too-large": (holding(triples("large", 9000)), "failed"),
    "/unpacks-too-far": (holding(packed("large", 9000), ARCHIVE), "failed"),
    "/suspect": (holding(b"<!DOCTYPE html><title>Sign in</title>", PAGE), "skipped"),
    "/empty": (holding(b""), "skipped"),
    "/elsewhere": (replying(302, Location="http://elsewhere.invalid/doc"), "ok"),
    "/loop": (replying(302, Location="/loop"), "failed"),
    "/unchanged": (replying(304), None),
}


def test_what_is_no_new_reading_leaves_the_export_as_it_is(watch, tamias, site, site_at):
    strict = site_at("127.0.0.2")
    site.pages["/robots.txt"] = strict.pages["/robots.txt"] = b""
    site.pages |= {place: holding(triples(place), ETag=ETAG) for place in LEAVING}
    strict.pages["/forbidden"] = holding(triples("forbidden"))
    urls = [*map(site.url, LEAVING), strict.url("/forbidden")]
    watch.add(*urls)
    watch.visit(*urls)
    first = watch.exported()
    assert sorted(first) == sorted(urls)
    site.pages |= {place: trouble for place, (trouble, _) in LEAVING.items()}
    strict.pages["/robots.txt"] = b"User-agent: *\nDisallow: /\n"
    with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
        session.transact(lambda cursor: cursor.execute("DELETE FROM robots"))  # as if a day had passed
    tamias.env |= {"TAMIAS_FETCH__FIRST_BYTE_TIMEOUT": "1", "TAMIAS_FETCH__MAX_BYTES": "300000"}
    tamias.env["TAMIAS_OPEN__MAX_UNPACKED"] = "500000"
    watch.visit(*urls)
    told = {place: watch.outcomes()[site.url(place)] for place in LEAVING}
    assert told == {place: sorted(["ok", outcome or "unchanged"]) for place, (_, outcome) in LEAVING.items()}
    assert watch.outcomes()[strict.url("/forbidden")] == ["ok", "refused"]
    assert watch.exported() == first


def test_what_is_gone_or_read_anew_is_replaced(watch, site):
    site.pages["/robots.txt"] = b""
    news = {
        "/gone": replying(410),
        "/not-found": replying(404),
        "/without": holding(b"# nothing to say any more"),
        "/other": holding(triples("other")),
    }
    site.pages |= {place: holding(triples(place)) for place in news}
    urls = [site.url(place) for place in news]
    watch.add(*urls)
    watch.visit(*urls)
    first = watch.exported()
    assert sorted(first) == sorted(urls)
    site.pages |= news
    for _ in range(2):
        watch.visit(*urls)
        second = watch.exported()
        assert list(second) == [site.url("/other")]
        assert any('"other 0"' in line for line in second[site.url("/other")])
    site.pages |= {place: holding(triples(place)) for place in news}
    watch.visit(*urls)
    assert watch.exported() == first


def test_a_reading_that_goes_over_a_limit_leaves_what_was_read_before(watch, tamias, site):
    def words():
        return {line.split('"')[1].split()[0] for line in watch.exported().get(url, ()) if '"' in line}

    site.pages["/robots.txt"] = b""
    tamias.env["TAMIAS_OPEN__MAX_UNPACKED"] = "1000000"
    url = site.url("/doc.zip")
    watch.add(url)
    for word, lines, expected in (
        ("large", 20_000, set()),
        ("whole", 3, {"whole"}),
        ("again", 20_000, {"whole"}),
        ("other", 3, {"other"}),
    ):
        site.pages["/doc.zip"] = holding(packed(word, lines), ARCHIVE)
        watch.visit(url)
        assert words() == expected
