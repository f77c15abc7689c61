"""`tamias backfill`: earlier versions come from another archive once, and not against a tombstone."""

import io
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.parse import quote

import pytest
from warcio.statusandheaders import StatusAndHeaders

from tests.integration.import_captures.test_records import Crawler, imported
from tests.integration.serve.test_warc_replay import served

URL = "http://old.example/data.csv"
BODIES = {
    "20210301100000": b"a,b\n1,2\n",
    "20220301100000": b"a,b\n1,3\n",
    "20230301100000": b"a,b\n1,4\n5,6\n",
}
DATES = ("Mon, 01 Mar 2021 10:00:00 GMT", "Tue, 01 Mar 2022 10:00:00 GMT", "Wed, 01 Mar 2023 10:00:00 GMT")


class OtherArchive:
    """A web archive with three states of one URL, as a TimeMap and as a CDX server list them."""

    def __init__(self, tamias, site, reply):
        self.tamias, self.site, self.reply = tamias, site, reply
        links = [f'<{URL}>; rel="original"', f'<{site.url("/timemap/link/" + URL)}>; rel="self timemap"']
        rows = [["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]]
        for stamp, date in zip(BODIES, DATES, strict=True):
            links.append(f'<{site.url(f"/web/{stamp}/{URL}")}>; rel="memento"; datetime="{date}"')
            rows.append(["example,old)/data.csv", stamp, URL, "text/csv", "200", f"D{stamp}", "100"])
            self.replays(stamp, reply(200, BODIES[stamp], content_type="text/csv", memento_datetime=date))
        rows.append(["example,old)/data.csv", "20230401000000", URL, "text/csv", "200", rows[-1][5], "100"])
        rows.append(["example,old)/data.csv", "20230501000000", URL, "text/csv", "404", "E", "100"])
        self.rows = rows
        timemap = reply(200, ",\n".join(links).encode(), content_type="application/link-format")
        site.pages[f"/timemap/link/{URL}"] = timemap
        site.pages["/cdx/search/cdx?"] = reply(
            200, json.dumps(rows).encode(), content_type="application/json"
        )

    def replays(self, stamp, page):
        self.site.pages[f"/web/{stamp}id_/{URL}"] = page

    def backfill(self, source, *words):
        self.site.log.clear()
        self.tamias.env["TAMIAS_FETCH__DELAY"] = "0.01"
        return self.tamias.run(
            *("backfill", URL, "--from", self.site.url(source), "--allow-private", "--json", *words)
        )

    def requested(self):
        return [path for path, _ in self.site.log if path.startswith("/web/")]

    def versions(self):
        found = self.tamias.run("versions", URL, "--json")
        return [(each["captured_at"][:19], each["sha256"]) for each in json.loads(found.stdout or "[]")]


@pytest.fixture
def other(tamias, site, reply):
    return OtherArchive(tamias, site, reply)


TIMES = ("2021-03-01T10:00:00", "2022-03-01T10:00:00", "2023-03-01T10:00:00")
EXPECTED = [(at, sha256(body).hexdigest()) for at, body in zip(TIMES, BODIES.values(), strict=True)]


@pytest.mark.parametrize("source", ["/timemap/link/", f"/timemap/link/{URL}", "/cdx/search/cdx"])
def test_all_states_become_versions_with_their_source_and_a_second_run_adds_nothing(other, source):
    done = json.loads(other.backfill(source).stdout)
    assert (done["requested"], done["imported"]["versions"], done["left"]) == (3, 3, 0)
    assert other.requested() == [f"/web/{stamp}id_/{URL}" for stamp in BODIES]
    assert other.versions() == EXPECTED
    metadata = other.tamias.run("export", "--graph", "metadata").stdout
    for stamp in BODIES:
        assert f'; brought from {other.site.url(f"/web/{stamp}id_/{URL}")}"' in metadata
    again = json.loads(other.backfill(source).stdout)
    assert (again["requested"], again["imported"]["captures"]) == (0, 0)
    assert other.requested() == []
    assert other.versions() == EXPECTED


def test_a_run_stops_at_its_limit_and_the_next_one_goes_on(other):
    first = json.loads(other.backfill("/timemap/link/", "--limit", "2").stdout)
    assert (first["requested"], first["left"]) == (2, 1)
    assert json.loads(other.backfill("/timemap/link/", "--since", "2024").stdout)["requested"] == 0
    assert json.loads(other.backfill("/timemap/link/").stdout)["requested"] == 1
    assert other.versions() == EXPECTED


def test_versions_of_ours_stay_and_what_is_brought_stands_before_them(other):
    """The states of two archives make one history, whichever was first."""
    other.backfill("/timemap/link/", "--since", "2023")
    assert other.versions() == EXPECTED[2:]
    other.backfill("/cdx/search/cdx")
    assert other.versions() == EXPECTED


def test_what_was_forgotten_is_not_brought_back(other):
    other.backfill("/timemap/link/")
    assert other.tamias.run("forget", URL, "--version", "2", "--reason", "wrong").returncode == 0
    assert other.versions() == [EXPECTED[0], EXPECTED[2]]
    other.backfill("/timemap/link/")
    assert other.versions() == [EXPECTED[0], EXPECTED[2]]
    assert other.tamias.run("forget", URL, "--reason", "all of it").returncode == 0
    done = other.backfill("/timemap/link/")
    assert done.returncode == 2
    assert other.site.log == [], "nobody is asked for what is forgotten"
    assert other.versions() == []


def test_robots_txt_of_the_other_archive_is_obeyed(other):
    other.site.pages["/robots.txt"] = b"User-agent: *\nDisallow: /web/\n"
    done = other.backfill("/timemap/link/")
    assert done.returncode == 1
    assert other.requested() == []
    [problem, *_] = json.loads(done.stdout)["imported"]["told"]
    assert "robots.txt" in problem["problem"]


def test_another_capture_than_the_listed_one_and_errors_of_the_archive_are_no_versions(other):
    first, second, _ = BODIES
    wrong = {"content_type": "text/csv", "memento_datetime": DATES[0]}
    other.replays(first, other.reply(200, b"<h1>Welcome", content_type="text/html"))
    other.site.pages[f"/web/{first}/{URL}"] = other.reply(200, b"<h1>Welcome", content_type="text/html")
    other.replays(second, other.reply(200, b"a,b\n1,2\n", **wrong))
    assert other.backfill("/timemap/link/").returncode == 0
    assert other.versions() == EXPECTED[2:]


def cdx(other, query, rows):
    other.site.pages[query] = other.reply(200, json.dumps(rows).encode(), content_type="application/json")


def test_an_answer_of_a_cdx_server_is_read_to_its_end_by_its_resume_key(other):
    """Wayback's server sends a part of a long list, an empty row, and a key for the rest."""
    rows = other.rows
    query = f"/cdx/search/cdx?url={quote(URL, safe='')}&output=json&showResumeKey=true"
    cdx(other, query, [*rows[:2], [], ["old%29%2F+2022%21"]])
    cdx(other, f"{query}&resumeKey=old%29%2F+2022%21", [rows[0], rows[2], [], ["old%29%2F+2023"]])
    text = "\n".join(" ".join(row) for row in rows[3:])
    other.site.pages[f"{query}&resumeKey=old%29%2F+2023"] = other.reply(200, text.encode())
    done = json.loads(other.backfill("/cdx/search/cdx").stdout)
    assert (done["listed"], done["is_cut"]) == (5, False)
    assert other.versions() == EXPECTED


def test_a_listing_that_is_too_large_is_an_error_and_not_an_empty_one(other):
    other.site.pages["/large?"] = other.reply(200, b"\n" * (65 << 20), content_type="text/plain")
    done = other.backfill("/large?url=all")
    assert (done.returncode, done.stdout) == (2, "")
    assert "64 MiB" in done.stderr


def test_captures_of_all_listings_together_are_bounded_and_the_rest_is_not_concealed(other):
    """The archive names 120,000 states on two pages; a run says that it read 100,000."""
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    lines = [
        f"k {moment + timedelta(minutes=minute):%Y%m%d%H%M%S} {URL} text/csv 200 SAME 1"
        for minute in range(120_000)
    ]
    first, second = "\n".join(lines[:60_000]), "\n".join(lines[60_000:])
    other.site.pages["/long?url=x"] = other.reply(200, f"{first}\n\nkey".encode())
    other.site.pages["/long?url=x&resumeKey=key"] = other.reply(200, second.encode())
    done = json.loads(other.backfill("/long?url=x", "--limit", "1").stdout)
    assert (done["listed"], done["is_cut"], done["requested"]) == (100_000, True, 1)
    done = json.loads(other.backfill("/long?url=x", "--since", "2020-03", "--limit", "1").stdout)
    assert (done["listed"], done["is_cut"]) == (120_000 - 60 * 24 * 60, False)


@pytest.mark.parametrize("source", ["/nothing", "/page"])
def test_an_address_that_lists_nothing_is_one_sentence(other, source):
    other.site.pages["/page?"] = other.reply(200, b"<html><p>An archive", content_type="text/html")
    done = other.backfill(source)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert other.site.url(source) in done.stderr


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("is_first", [True, False], ids=["import first", "backfill first"])
def test_captures_that_were_brought_and_imported_are_there_once(other, tmp_path, is_first):
    crawler = Crawler()
    for stamp, body in BODIES.items():
        date = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:00:00Z"
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/csv")], protocol="HTTP/1.1")
        record = crawler.writer.create_warc_record(
            URL, "response", io.BytesIO(body), http_headers=head, warc_headers_dict={"WARC-Date": date}
        )
        crawler.writer.write_record(record)
    (tmp_path / "a.warc.gz").write_bytes(crawler.bytes())
    if is_first:
        assert imported(other.tamias, tmp_path / "a.warc.gz", "--archive")["captures"] == 3
    assert other.backfill("/cdx/search/cdx").returncode == 0
    found = imported(other.tamias, tmp_path / "a.warc.gz", "--archive")
    assert (found["captures"], found["known"]) == (0, 3)
    assert other.versions() == EXPECTED
    with served(other.tamias) as client:
        mementos = client.get(f"/timemap/json/{URL}").json()["mementos"]["list"]
        assert [each["datetime"][:19] for each in mementos] == list(TIMES)
