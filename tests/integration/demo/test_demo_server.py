"""How the servers answer: negotiation, validators, odd paths, and HTTP itself."""

import http.client
import socket
from urllib.parse import urlsplit

import pytest
from pyoxigraph import RdfFormat, parse

from tamias.features.demo.plan import make_plan
from tamias.features.demo.server import bind, negotiate, serving
from tamias.features.demo.web import in_document, missing

OFFERED = ("text/turtle", "application/n-triples", "application/ld+json", "application/rdf+xml")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("*/*", "text/turtle"),
        ("application/rdf+xml", "application/rdf+xml"),
        ("text/turtle;q=0.2, application/ld+json;q=0.9", "application/ld+json"),
        ("application/*", "application/n-triples"),
        ("application/*;q=0.9, application/rdf+xml", "application/rdf+xml"),
        ("*/*, text/turtle;q=0", "application/n-triples"),
        ("TEXT/Turtle ; Q=1.0, */*;q=0.1", "text/turtle"),
        ("application/ld+json;profile=x;q=0.7, text/*;q=0.3", "application/ld+json"),
        ("text/turtle;q=much, application/rdf+xml;q=0.1", "application/rdf+xml"),
        ("image/png", None),
        ("text/turtle;q=0", None),
        ("", None),
    ],
)
def test_the_client_gets_what_it_likes_best(accept, chosen):
    assert negotiate(accept, OFFERED) == chosen


@pytest.mark.parametrize("media_type", OFFERED)
def test_a_resource_says_the_same_in_every_syntax(web, get, media_type):
    url = next(url for url in web.expected.documents if url.endswith("/resource/0"))
    response = get(url, Accept=media_type)
    found = in_document(parse(response.body, format=RdfFormat.from_media_type(media_type)), url)
    assert response.headers["content-type"] == media_type
    assert missing(web.expected.documents[url], found) == set()


def test_what_cannot_be_had_is_not_acceptable(get, find_url):
    assert get(find_url("/resource/0"), Accept="image/png").status == 406


def test_who_has_the_bytes_already_is_told_so(get, find_url):
    etag = get(find_url("/resource/0")).headers["etag"]
    again = get(find_url("/resource/0"), If_None_Match=f'"other", W/{etag}')
    assert (again.status, again.body) == (304, b"")


def test_another_syntax_has_another_etag(get, find_url):
    url = find_url("/resource/0")
    etags = {get(url, Accept=media_type).headers["etag"] for media_type in OFFERED}
    assert len(etags) == len(OFFERED)


def test_a_thing_sends_its_visitors_to_its_document(get, find_url):
    response = get(find_url("/id/1"))
    assert (response.status, response.headers["location"]) == (303, "/doc/1")


def test_a_page_has_moved_to_another_host(get, find_url):
    url = find_url("/moved/away")
    target = get(url).headers["location"]
    assert urlsplit(target).netloc != urlsplit(url).netloc
    assert get(target).status == 200


@pytest.mark.parametrize(("path", "status"), [("/missing", 404), ("/gone", 410)])
def test_some_links_lead_nowhere(get, find_url, path, status):
    assert get(find_url(path)).status == status


def test_a_path_that_nobody_planned_is_not_found(get, find_url):
    assert get(find_url("/vocab") + "/no-such-thing").status == 404


def test_a_busy_page_asks_once_to_come_again(get, find_url):
    first, second = get(find_url("/busy")), get(find_url("/busy"))
    assert (first.status, first.headers["retry-after"], second.status) == (503, "1", 200)


def test_a_slow_page_takes_its_time(web, get, find_url):
    url = find_url("/slow")
    get(url)
    visit = next(visit for visit in web.log if visit.url == url)
    assert visit.end - visit.start >= 0.5


def test_turtle_can_be_called_plain_text(get, find_url):
    response = get(find_url("/mislabelled"))
    assert response.headers["content-type"] == "text/plain"
    assert list(parse(response.body, format=RdfFormat.TURTLE))


def test_robots_txt_forbids_a_folder_but_for_one_page(get, find_url):
    site = find_url("/private/0").removesuffix("/private/0")
    rules = get(f"{site}/robots.txt").body.decode().splitlines()
    assert rules == ["User-agent: *", "Disallow: /private/", "Allow: /private/open"]


def test_the_forbidden_pages_exist(web, get):
    assert {get(url).status for url in web.expected.disallowed} == {200}


def test_one_site_asks_for_a_crawl_delay(web):
    robots = [
        site.pages["/robots.txt"].body for site in web.web.sites.values() if "/robots.txt" in site.pages
    ]
    assert sum(b"Crawl-delay: 1\n" in body for body in robots) == 1


def test_head_has_the_headers_of_get_and_no_body(get, find_url):
    head, whole = get(find_url("/vocab"), method="HEAD"), get(find_url("/vocab"))
    assert (head.headers["content-length"], head.body) == (str(len(whole.body)), b"")


def test_nothing_can_be_written(get, find_url):
    response = get(find_url("/vocab"), method="POST")
    assert (response.status, response.headers["allow"]) == (405, "GET, HEAD")


def test_one_connection_serves_many_requests(find_url):
    parts = urlsplit(find_url("/vocab"))
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    connection.request("GET", "/vocab")
    connection.getresponse().read()
    first = connection.sock
    connection.request("GET", "/vocab")
    assert connection.getresponse().read()
    assert connection.sock is first
    connection.close()


def exchange(url, sent):
    """All that comes back on a bare connection until the server closes it."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as client:
        client.sendall(sent)
        return b"".join(iter(lambda: client.recv(65536), b""))


def test_requests_sent_together_are_answered_in_their_order(find_url):
    sent = b"GET /missing HTTP/1.1\r\n\r\nGET /gone HTTP/1.1\r\nConnection: close\r\n\r\n"
    answers = exchange(find_url("/gone"), sent)
    assert [line for line in answers.split(b"\r\n") if line.startswith(b"HTTP")] == [
        b"HTTP/1.1 404 Not Found",
        b"HTTP/1.1 410 Gone",
    ]


@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"nonsense\r\n\r\n", b"400"), (b"GET /".ljust(65_537, b"a"), b"414")],
    ids=["nonsense", "endless"],
)
def test_what_is_not_http_is_refused(find_url, sent, status):
    assert exchange(find_url("/vocab"), sent).startswith(b"HTTP/1.1 %b " % status)


def test_nothing_listens_after_the_web_has_ended(get):
    with serving(make_plan(1, nodes=2)) as web:
        pass
    with pytest.raises(ConnectionRefusedError):
        get(web.seeds[0])


def test_a_port_that_is_taken_is_named():
    with serving(make_plan(1, nodes=1)) as web, pytest.raises(OSError, match=str(web.port)):
        bind(["127.0.0.1"], web.port)
