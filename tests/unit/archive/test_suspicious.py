"""What is suspicious in place of a version, and when it is accepted."""

import pytest

from tamias.archive.versions.judgement import AttemptMeaning, Came, KnownState, judge
from tamias.archive.versions.soft_errors import MOST_ERROR, error_in
from tamias.model.capture import Outcome

CSV, JSON, XML = "text/csv", "application/json", "application/xml"
DAY = 86_400_000


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"Error: database connection failed", CSV),
        (b"ERROR 500 - Internal Server Error\n", "text/plain"),
        (b"Fatal error: Uncaught PDOException in /srv/x.php on line 3", CSV),
        (b'\xef\xbb\xbf"Service temporarily unavailable. Try again later."', CSV),
        (b"Traceback (most recent call last):\n  File x\nKeyError: 'a'\n", CSV),
        (b"ORA-12541: TNS:no listener", "text/tab-separated-values"),
        (b"Too many requests", CSV),
        (b'{"error": "no connection"}', JSON),
        (b'{"errors": [{"message": "down"}], "data": null}', JSON),
        (b'{"status": 503, "title": "Service Unavailable", "detail": "x"}', "application/problem+json"),
        (b'{"success": false, "message": "not found"}', JSON),
        (b'{"code": "404", "message": "gone"}', JSON),
        (b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>', XML),
        (b'<!-- x --><ows:ExceptionReport xmlns:ows="x"/>', XML),
    ],
)
def test_an_error_message_of_the_type_of_the_data_is_found(content, media_type):
    assert error_in(content, media_type) is not None


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"error,count\n404,12\n500,3\n", CSV),
        (b"Error rate;Year\n1;2020\n", CSV),
        (b"errors\t3\n", "text/tab-separated-values"),
        (b"id,name\n1,Error: no name\n", CSV),
        (b"Errorfield islands\n", "text/plain"),
        (b"Error: 1\n" * 50, CSV),
        (b"Error: " + b"x" * MOST_ERROR, CSV),
        (b"", CSV),
        (b'{"error": null, "data": [1, 2, 3]}', JSON),
        (b'{"error": "one row was left out", "rows": [{"a": 1}, {"a": 2}]}', JSON),
        (b'{"code": 404, "name": "a code list"}', JSON),
        (b'{"status": "ok", "message": "hello"}', JSON),
        (b"[1, 2]", JSON),
        (b'{"a"', JSON),
        (b"<errors><row/></errors>", XML),
        (b"<html><h1>Error</h1></html>", "text/html"),
        (b"\x89PNG error", "image/png"),
    ],
)
def test_data_about_errors_is_no_error_message(content, media_type):
    assert error_in(content, media_type) is None


def came(**words):
    told = {"outcome": Outcome.OK, "sha256": "b", "size": 100, "media_type": CSV, "at": 100 * DAY}
    return Came(**{**told, **words})


KNOWN = KnownState(sha256="a", media_type=CSV, items=1000)


@pytest.mark.parametrize(("items", "known", "is_suspect"), [
    (50, 1000, True), (51, 1000, False), (0, 1000, True), (1, 20, True), (0, 19, False), (3, None, False),
    (None, 1000, False),
])  # fmt: skip
def test_a_table_that_lost_nearly_all_rows_is_suspicious(items, known, is_suspect):
    found = judge(came(items=items, counted="rows"), KnownState(sha256="a", media_type=CSV, items=known))
    assert (found.meaning is AttemptMeaning.SUSPECT) is is_suspect
    if is_suspect:
        assert found.reason == f"{items} rows, where the version before has {known:,}"


def test_an_error_message_is_suspicious_also_at_first():
    found = judge(came(error="Error: down"), KnownState())
    assert found == judge(came(error="Error: down"), KNOWN)
    assert (found.meaning, found.reason) == (AttemptMeaning.SUSPECT, "an error message: Error: down")


@pytest.mark.parametrize(("days", "meaning"), [(6, AttemptMeaning.SUSPECT), (7, AttemptMeaning.CHANGED)])
@pytest.mark.parametrize(
    "words",
    [{"error": "Error: down"}, {"items": 0}, {"media_type": "text/html"}, {"size": 0}, {"shared_by": 9}],
)
def test_what_stays_suspicious_for_days_is_accepted_and_marked(days, meaning, words):
    known = KnownState(sha256="a", media_type=CSV, items=1000, suspicious_since=(100 - days) * DAY)
    found = judge(came(**words), known, 7 * DAY)
    assert found.meaning is meaning
    assert (found.accepted is not None) is (meaning is AttemptMeaning.CHANGED)
    assert (found.reason is None) is (meaning is AttemptMeaning.CHANGED)


def test_what_was_accepted_may_go_on_like_that():
    known = KnownState(sha256="a", media_type=CSV, items=1000, suspicious="an error message: Error: down")
    assert judge(came(error="Error: still down", items=1), known, 7 * DAY).meaning is AttemptMeaning.CHANGED
    page = judge(came(media_type="text/html"), known, 7 * DAY)
    assert page.meaning is AttemptMeaning.SUSPECT
