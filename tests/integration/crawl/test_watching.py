"""What is watched: listed with its trouble, visited as often as the user says, stopped on the user's word."""

import csv
import json
import threading
from datetime import datetime

import pytest

from tests.messages import unsaid

TABLE = b"id,value\n1,one\n"


@pytest.fixture
def listed(tamias):
    """`listed(*words)`: rows of `tamias list` by the path of their URLs."""

    def rows(*words):
        done = tamias.run("list", "--json", *words)
        assert done.returncode == 0, done.stderr
        return {"/" + each["url"].rpartition("/")[2]: each for each in json.loads(done.stdout)}

    return rows


def hours(row):
    last, following = (datetime.fromisoformat(row[name]) for name in ("last_visit", "next_visit"))
    return round((following - last).total_seconds() / 3600, 1)


def test_a_list_tells_visits_and_trouble_and_what_has_succeeded_since_has_none(tamias, site, reply, listed):
    site.pages |= {"/good.csv": TABLE, "/bad.csv": reply(500)}
    urls = [site.url(path) for path in ("/good.csv", "/bad.csv", "/gone.csv")]
    done = tamias.run("add", "--every", "12h", "--priority", "2", *urls)
    assert done.returncode == 0, done.stderr
    assert tamias.crawl("--recrawl").returncode == 0
    rows = listed()
    assert {path: (row["state"], row["versions"], row["trouble"]) for path, row in rows.items()} == {
        "/good.csv": ("active", 1, None),
        "/bad.csv": ("active", 0, "failed: 500 Internal Server Error"),
        "/gone.csv": ("gone", 0, "gone: 404 Not Found"),
    }
    good = rows["/good.csv"]
    assert (hours(good), good["every"], good["priority"]) == (12.0, "12h", 2.0)
    assert set(listed("--trouble")) == {"/bad.csv", "/gone.csv"}
    site.pages["/bad.csv"] = TABLE
    assert tamias.crawl("--recrawl", site.url("/bad.csv")).returncode == 0
    found = list(csv.DictReader(tamias.run("list", "--format", "csv", "--trouble").stdout.splitlines()))
    assert [(each["state"], each["url"]) for each in found] == [("gone", site.url("/gone.csv"))]
    table = tamias.run("list").stdout
    assert "          gone: 404 Not Found" in table.splitlines()


def test_no_cell_of_a_list_is_a_formula_for_a_spreadsheet(tamias, site):
    assert tamias.run("add", site.url("/a.csv"), "--title", "=1+1").returncode == 0
    [row] = csv.DictReader(tamias.run("list", "--format", "csv").stdout.splitlines())
    assert row["title"] == "'=1+1"


def test_what_is_removed_is_not_visited_and_keeps_its_history_until_it_is_added_again(tamias, site, listed):
    site.pages |= {"/a.csv": TABLE, "/b.csv": TABLE + b"2,two\n"}
    assert tamias.run("add", site.url("/a.csv"), site.url("/b.csv"), "--every", "1m").returncode == 0
    assert tamias.crawl("--recrawl").returncode == 0
    done = tamias.run("remove", site.url("/a.csv"), site.url("/unknown.csv"))
    assert (done.returncode, f"not watched: {site.url('/unknown.csv')}" in done.stderr) == (2, True)
    assert done.stdout.startswith(f"stopped: {site.url('/a.csv')}; its versions stay")
    rows = listed()
    assert (rows["/a.csv"]["state"], rows["/a.csv"]["versions"], rows["/a.csv"]["next_visit"]) == (
        "stopped",
        1,
        None,
    )
    assert set(listed("--state", "active")) == {"/b.csv"}
    done = tamias.crawl("--recrawl", site.url("/a.csv"))
    assert (done.returncode, "not watched" in done.stderr) == (2, True)
    assert site.asked("/a.csv") == 1
    assert tamias.run("get", site.url("/a.csv")).stdout.encode() == TABLE
    assert tamias.run("add", site.url("/a.csv")).returncode == 0
    assert tamias.crawl("--recrawl").returncode == 0
    assert (site.asked("/a.csv"), listed()["/a.csv"]["state"]) == (2, "active")


def test_a_wish_during_a_visit_is_remembered(tamias, site, reply):
    arrived, leave = threading.Event(), threading.Event()

    def slow(handler):
        arrived.set()
        leave.wait(60)
        reply(200, TABLE, Content_Type="text/csv")(handler)

    site.pages["/a.csv"] = slow
    assert tamias.run("add", site.url("/a.csv")).returncode == 0
    usual = ("--allow-private", "--delay", "0", "--workers", "1", "--recrawl")
    first = tamias.start("crawl", *usual)
    assert arrived.wait(60)
    wish = tamias.run("crawl", *usual, site.url("/a.csv"), "--max-time", "0.1")
    assert (wish.returncode, site.asked("/a.csv")) == (5, 1), wish.stderr
    leave.set()
    first.communicate(timeout=60)
    assert first.returncode == 0
    done = tamias.run("crawl", *usual)
    assert (done.returncode, site.asked("/a.csv")) == (0, 2), done.stderr


@pytest.mark.parametrize("every", ["tomorrow", "10s", "0d"])
def test_an_interval_that_is_none_is_refused(tamias, site, every):
    done = tamias.run("add", site.url("/a.csv"), "--every", every)
    assert (done.returncode, f"'{every}'" in done.stderr) == (2, True)


def test_what_changed_at_each_visit_is_visited_within_hours_and_never_later_than_before(tamias, site, listed):
    assert tamias.run("add", site.url("/a.csv")).returncode == 0
    waits = []
    for number in range(4):
        site.pages["/a.csv"] = TABLE + f"{number},new\n".encode()
        assert tamias.crawl("--recrawl", site.url("/a.csv")).returncode == 0
        waits.append(hours(listed()["/a.csv"]))
    assert max(waits) <= 6
    assert waits == sorted(waits, reverse=True)
    assert listed()["/a.csv"]["versions"] == 4


def test_the_visits_that_a_host_gets_in_a_day_are_bounded_and_shown(tamias, site, listed):
    tamias.env["TAMIAS_SCHEDULE__HOST_VISITS"] = "2"
    urls = [site.url(f"/{number}.csv") for number in range(8)]
    assert tamias.run("add", *urls).returncode == 0
    for version in range(3):
        for number in range(8):
            site.pages[f"/{number}.csv"] = TABLE + f"{number},{version}\n".encode()
        assert tamias.crawl("--recrawl", *urls).returncode == 0
    assert sum(24 / hours(row) for row in listed().values()) < 4
    for words in (("status", "--once"), ("stats",)):
        assert not unsaid(tamias.run(*words).stdout, "127.0.0.1", "2")
