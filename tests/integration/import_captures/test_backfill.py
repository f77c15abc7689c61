"""`tamias backfill`: earlier versions come from another archive once, and not against a tombstone."""

import json
from hashlib import sha256

import pytest

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


@pytest.mark.parametrize("source", ["/nothing", "/page"])
def test_an_address_that_lists_nothing_is_one_sentence(other, source):
    other.site.pages["/page?"] = other.reply(200, b"<html><p>An archive", content_type="text/html")
    done = other.backfill(source)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert other.site.url(source) in done.stderr
