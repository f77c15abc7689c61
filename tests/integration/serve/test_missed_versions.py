"""A visit that comes late says how many versions it probably missed: in list, page and feed."""

import json
import time
from contextlib import closing

import httpx
import pytest

from tamias.database.connect import Database
from tamias.schedule.visit import DAY_MS, VisitHistory, pack

from .conftest import Running


@pytest.fixture
def visited_late(tamias, site):
    """A file that changed every day, was visited ten days ago, and again now."""
    url, now = site.url("/a.csv"), int(time.time() * 1000)
    site.pages["/a.csv"] = b"a,b\n1,2\n"
    assert tamias.run("add", url).returncode == 0
    assert tamias.crawl("--recrawl", url).returncode == 0
    history = VisitHistory(
        visited_at=now - 10 * DAY_MS,
        unchanged_days=20.0,
        changed=((0.5, 40.0),),
        recent=((DAY_MS, True),) * 10,
    )
    with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
        statement, values = (
            "UPDATE resource SET visited_at = %s, history = %b",
            (history.visited_at, pack(history)),
        )
        session.transact(lambda cursor: cursor.execute(statement, values))
    site.pages["/a.csv"] = b"a,b\n1,3\n"
    assert tamias.crawl("--recrawl", url).returncode == 0
    return url


def test_versions_that_were_probably_missed_are_in_the_list_on_the_page_and_in_the_feed(tamias, visited_late):
    [row] = json.loads(tamias.run("list", "--json").stdout)
    assert 5 <= row["missed"] <= 15
    said = f"bout {row['missed']} versions were probably missed between visits"
    assert said in tamias.run("list").stdout
    running = Running(tamias.data, "--no-crawl")
    try:
        [item, _] = httpx.get(f"{running.address}/api/v1/changes.feed.json").json()["items"]
        [dataset] = httpx.get(f"{running.address}/api/v1/resources").json()["items"]
        page = httpx.get(f"{running.address}/dataset/{dataset['id']}", headers={"Accept": "text/html"}).text
    finally:
        running.stop()
    assert item["content_text"].endswith(said)
    assert said in page
