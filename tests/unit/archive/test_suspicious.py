"""What is suspicious in place of a version, and when it is accepted."""

import gzip

import msgspec
import pytest

from tamias.archive.versions.judgement import AttemptMeaning, KnownState
from tamias.features.archive.canonical.content_digest import Stored, content_digest
from tamias.features.archive.judge import MOST_ERROR, Observation, error_in, judge
from tamias.model.capture import Outcome
from tests.messages import unsaid
from tests.workbook_files import zipped

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
        (b'{"error": true, "message": "gone"}', JSON),
        (b'{"error": {"code": 500}}', JSON),
        (b"Internal Server Error", CSV),
        (b"Error\n\nThe service is being moved to another machine\n", CSV),
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
        (b"errors\n12", CSV),
        (b"Errors\n2020 12\n2021 14\n", "text/plain"),
        (b"Fatal accidents 2023\nregion;count\nA;1", CSV),
        (b"Errors: all of 2023\nregion;count\nA;1", CSV),
        (b"Failure of crops in 2023\n", "text/plain"),
        (b'{"value":9.81,"error":0.02,"unit":"m/s2"}', JSON),
        (b'{"value":"9.81","error":"0.02","unit":"m/s2"}', JSON),
        (b'{"status":"ok","errors":2}', JSON),
        (b'{"code":404,"description":"Mol"}', JSON),
        (b'{"code":404,"title":"Mol"}', JSON),
        (b'{"errors": [], "value": 1}', JSON),
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
    return Observation(**{**told, **words})


KNOWN = KnownState(sha256="a", media_type=CSV, items=1000)


@pytest.mark.parametrize(("items", "known", "is_suspect"), [
    (50, 1000, True), (51, 1000, False), (0, 1000, True), (1, 20, True), (0, 19, False), (3, None, False),
    (None, 1000, False),
])  # fmt: skip
def test_a_table_that_lost_nearly_all_rows_is_suspicious(items, known, is_suspect):
    found = judge(came(items=items, counted="rows"), KnownState(sha256="a", media_type=CSV, items=known))
    assert (found.meaning is AttemptMeaning.SUSPECT) is is_suspect
    if is_suspect:
        assert not unsaid(found.reason, items, f"{known:,}")


def test_an_error_message_is_suspicious_where_a_version_is_known():
    found = judge(came(error="Error: down"), KNOWN)
    assert (found.meaning, "Error: down" in found.reason) == (AttemptMeaning.SUSPECT, True)


def test_the_first_version_is_never_held_back_for_what_it_says_but_marked():
    found = judge(came(error="Error: down"), KnownState())
    assert (found.meaning, "Error: down" in found.accepted) == (AttemptMeaning.CHANGED, True)


def test_fewer_items_of_another_type_are_no_loss():
    assert judge(came(items=14, media_type="application/zip"), KNOWN).meaning is AttemptMeaning.CHANGED


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


def test_what_was_accepted_stays_accepted_for_as_long_as_it_goes_on():
    """Day after day another error message: the first is taken after a week, and so are all that follow."""
    known, meanings = KnownState(sha256="data", media_type=CSV, items=1000), []
    for day in range(16):
        found = judge(came(sha256=str(day), error=f"Error {day}", at=day * DAY), known, 7 * DAY)
        meanings.append(found.meaning)
        if found.meaning is AttemptMeaning.SUSPECT:
            since = known.suspicious_since if known.suspicious_since is not None else day * DAY
            known = msgspec.structs.replace(known, suspicious_since=since)
        else:
            known = KnownState(sha256=str(day), media_type=CSV, suspicious=found.accepted)
    assert meanings == [AttemptMeaning.SUSPECT] * 7 + [AttemptMeaning.CHANGED] * 9
    data = judge(came(sha256="data", items=1000), known, 7 * DAY)
    assert (data.meaning, data.accepted) == (AttemptMeaning.CHANGED, None)


@pytest.mark.parametrize(
    ("content", "media_type", "items"),
    [
        (b"[1, 2, 3]", JSON, 3),
        (b"[1, 2,\nNaN]", JSON, None),
        (b"a,b\n1,2\n", CSV, 1),
        (zipped({"a": "1", "b": "2"}), "application/zip", 2),
        (zipped({"a": "1", "b": "2"}), "application/vnd.ms-excel", None),
        (gzip.compress(b"[1, 2,\nNaN]", mtime=0), "application/gzip", None),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "application/gzip", 1),
    ],
    ids=["JSON", "no JSON", "table", "files", "no workbook", "no JSON in gzip", "table in gzip"],
)
def test_items_are_counted_only_in_the_form_of_the_type(content, media_type, items):
    """What is read as text or as files instead has lines or files, which no rows or items compare with."""
    assert content_digest(Stored(source=content, media_type=media_type)).items == items
