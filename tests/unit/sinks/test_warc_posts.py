"""Requests with a body, and the second request after a 406, as WARC files tell of them."""

import hashlib

import pytest
from warcio.archiveiterator import ArchiveIterator

from tamias.features.warc.warc_writer import WarcWriter
from tamias.model.capture import Body, Capture, Hop, Outcome, Request

URL = "http://example.org/sparql"
QUERY = b"ASK {\r\n\r\n}"


@pytest.fixture
def requests_of(tmp_path):
    """The requests (method, headers, body) in the file of one capture that came by these statuses."""

    def written(statuses, request):
        answer = Body(size=1, sha256=hashlib.sha256(b"1").hexdigest(), data=b"1")
        hops = tuple(Hop(url=URL, status=status, headers=(), address="192.0.2.7") for status in statuses)
        capture = Capture(
            url=URL, started_at=0, ended_at=1, outcome=Outcome.OK, reason="", hops=hops, body=answer
        )
        with WarcWriter(tmp_path, "p", agent="a", accept="text/turtle") as writer:
            writer.write(capture, request)
        with next(tmp_path.glob("*.warc.gz")).open("rb") as file:
            return [
                (
                    record.http_headers.protocol,
                    dict(record.http_headers.headers),
                    record.content_stream().read(),
                )
                for record in ArchiveIterator(file, check_digests="raise")
                if record.rec_type == "request"
            ]

    return written


def test_a_post_is_written_with_its_body(requests_of):
    method, headers, body = requests_of([200], Request(url=URL, body=QUERY, content_type="text/x-query"))[0]
    assert (method, body) == ("POST", QUERY)
    assert (headers["Content-Type"], headers["Content-Length"]) == ("text/x-query", str(len(QUERY)))


def test_a_post_is_a_get_after_a_redirect_that_does_not_keep_the_method(requests_of):
    found = requests_of([307, 303, 200], Request(url=URL, body=QUERY))
    assert [(method, body) for method, _, body in found] == [("POST", QUERY), ("POST", QUERY), ("GET", b"")]


def test_a_request_after_a_406_asks_for_anything(requests_of):
    found = requests_of([406, 200], Request(url=URL))
    assert [headers["Accept"] for _, headers, _ in found] == ["text/turtle", "*/*"]
