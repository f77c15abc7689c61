"""A portal on an earlier day has the titles, formats and addresses that it told then."""

import csv
import io
import json

import pytest

from tamias.archive.sources.catalogues import note_datasets, note_listed, note_whole
from tamias.archive.sources.source_records import keep_records
from tamias.features.dcat.datasets.mapping import map_record
from tamias.features.portals.records.ckan import MAPPING
from tamias.model.dataset import Dataset, Distribution
from tamias.model.finding import Present

from .conftest import DAY, START

CATALOGUE = "http://renaming.example/"
FILE = "http://files.example/budget.csv"
HARVESTS = {
    0: {"A": ("Budget", "Budget, as a table", "CSV", "a"), "B": ("Trees", None, None, "b")},
    2: {"A": ("Spending", "Spending, as a table", "CSV", "a"), "B": ("Trees", None, None, "b")},
    4: {"A": ("Budget", "Spending, as a table", "csv file", "budget"), "B": ("Trees", "Trees", None, "b")},
    6: {"B": ("Trees", "Trees", None, "b")},
    8: {"A": ("Budget 2027", None, None, "a"), "B": ("Trees", None, "CSV", "b")},
    10: {"A": ("Budget 2027", None, None, "a"), "B": ("Trees", None, "CSV", "b")},
}
"""By day: of each dataset that a whole harvest saw its title, the title and format of its file, its name."""
FROM = {
    0: {"A": 0, "B": 0}, 2: {"A": 2, "B": 0}, 4: {"A": 4, "B": 0}, 6: {"B": 0}, 8: {"A": 8, "B": 0},
    10: {"A": 8, "B": 0},
}  # fmt: skip
"""By day: since which day a dataset has been called so."""


def time_of(day):
    return f"2026-01-{day + 1:02}T00:00:00.000Z"


def dataset(record, title, file_title, form, name):
    file = Distribution(url=FILE + record, title=file_title, format=form)
    return Dataset(record=record, iri=f"{CATALOGUE}{name}", title=title, distributions=(file,))


def harvest(filled, day, seen, catalogue=CATALOGUE, *, whole=True):
    def note(cursor):
        when = START + day * DAY
        note_datasets(cursor, catalogue, "ckan", when, [dataset(*each) for each in seen])
        if whole:
            note_whole(cursor, catalogue, when)

    filled.session.transact(note)


@pytest.fixture(scope="module")
def renamed(filled):
    for day, seen in HARVESTS.items():
        harvest(filled, day, [(record, *told) for record, told in seen.items()])
    harvest(filled, 10, [("A", *HARVESTS[10]["A"])], whole=False)  # the same news twice
    harvest(filled, 1, [("B", "Shrubs", None, None, "b")], whole=False)  # an early harvest comes in late
    listed = Present(records=("A", "B"))
    filled.session.transact(lambda cursor: note_listed(cursor, CATALOGUE, START + 12 * DAY, listed))


def told(item):
    [file] = item["files"]
    return item["title"], file["title"], file["format"], item["iri"].removeprefix(CATALOGUE)


def read(client, day, catalogue=CATALOGUE):
    asked = {"url": catalogue, "at": f"2026-01-{day + 1:02}T12:00:00Z"}
    return client.get("/api/v1/portal/at", params=asked).json()["items"]


@pytest.mark.usefixtures("renamed")
@pytest.mark.parametrize("day", range(14))
def test_every_day_has_the_words_of_the_harvest_before_it(client, day):
    seen = max(each for each in HARVESTS if each <= day)
    found = read(client, day)
    assert {item["record"]: told(item) for item in found} == HARVESTS[seen]
    assert {item["record"]: item["title_from"] for item in found} == {
        record: time_of(since) for record, since in FROM[seen].items()
    }


@pytest.mark.usefixtures("renamed")
def test_now_has_the_words_of_the_last_harvest(client):
    items = client.get("/api/v1/portal/at", params={"url": CATALOGUE}).json()["items"]
    assert {item["record"]: told(item) for item in items} == HARVESTS[10]


@pytest.mark.usefixtures("renamed")
@pytest.mark.parametrize(
    ("day", "title", "name"), [(0, "Budget", "a"), (3, "Spending", "a"), (9, "Budget 2027", "a")]
)
def test_the_page_its_json_and_its_csv_have_them_too(client, day, title, name):
    asked = {"url": CATALOGUE, "at": time_of(day)}
    page = client.get("/portal/at", params=asked, headers={"Accept": "text/html"}).text
    datasets = page.partition("Left and came back")[0]
    assert f'<td class="text">{title}<br><span class="soft small">{CATALOGUE}{name}</span>' in datasets
    assert "earliest known" not in page
    data = client.get("/portal/at.json", params=asked).json()
    assert data["datasets"] == client.get("/api/v1/portal/at", params=asked).json()["items"]
    lines = csv.DictReader(io.StringIO(client.get("/portal/at", params={**asked, "format": "csv"}).text))
    line = next(each for each in lines if each["record"] == "A")
    form = data["datasets"][0]["files"][0]["format"] or ""
    assert line["format_from"] == data["datasets"][0]["files"][0]["title_from"]
    assert (line["title"], line["dataset"], line["format"], line["title_from"]) == (
        title, f"{CATALOGUE}{name}", form, data["datasets"][0]["title_from"],
    )  # fmt: skip


@pytest.mark.usefixtures("renamed")
def test_an_absence_has_the_title_under_which_the_dataset_left(client):
    [item] = client.get("/api/v1/portal/absences", params={"url": CATALOGUE}).json()["items"]
    assert (item["record"], item["title"], item["iri"]) == ("A", "Budget", f"{CATALOGUE}budget")
    assert (item["gone_at"], item["back_at"]) == (time_of(6), time_of(8))


def test_of_a_time_before_titles_were_stored_the_earliest_known_one_is_given_and_said_to_be_that(
    client, filled
):
    """As in a data directory of an earlier version, whose last harvest was on day 4."""
    old = "http://upgraded.example/"
    harvest(filled, 0, [("A", "Lost", None, None, "a"), ("B", "New", None, None, "b")], old)
    harvest(filled, 4, [("A", "Kept", None, None, "a")], old, whole=False)
    filled.run(
        "DELETE FROM earlier_description AS earlier USING portal"
        " WHERE portal.portal = earlier.portal AND portal.url = %s",
        old,
    )
    harvest(filled, 6, [("A", "Later", None, None, "a")], old, whole=False)
    found = {
        day: {each["record"]: (each["title"], each["title_from"]) for each in read(client, day, old)}
        for day in (1, 5, 7)
    }
    assert found == {
        1: {"A": ("Kept", time_of(4)), "B": ("New", time_of(0))},
        5: {"A": ("Kept", time_of(4)), "B": ("New", time_of(0))},
        7: {"A": ("Later", time_of(6)), "B": ("New", time_of(0))},
    }
    pages = [
        client.get(
            "/portal/at", params={"url": old, "at": time_of(day)}, headers={"Accept": "text/html"}
        ).text
        for day in (1, 5)
    ]
    assert [page.count("earliest known") for page in pages] == [1, 0]


def record(title, form):
    file = {"id": "r", "url": FILE, "format": form, "name": f"{title}, as a table"}
    value = {"id": "A", "name": "a", "title": title, "notes": "x", "resources": [file]}
    return map_record(MAPPING, json.dumps(value).encode(), "http://recorded.example/")  # the portal's root


def test_titles_from_before_they_were_stored_are_read_from_the_records_of_that_time(client, filled):
    portal = "http://recorded.example/dataset?all=1"
    harvests = {0: ("Budget", "CSV"), 2: ("Spending", "CSV"), 4: ("Budget", "XLSX")}

    def note(cursor, day):
        mapped = record(*harvests[day])
        note_datasets(cursor, portal, "ckan", START + day * DAY, [mapped.dataset])
        keep_records(cursor, portal, START + day * DAY, [mapped.source])

    for day in harvests:
        filled.session.transact(lambda cursor, day=day: note(cursor, day))
    before = {day: read(client, day, portal) for day in range(6)}
    of_it = "portal = (SELECT portal FROM portal WHERE url = %s)"
    for change in ("UPDATE described SET told_at = last_seen", "UPDATE offered SET told_at = last_seen"):
        filled.run(f"{change} WHERE {of_it}", portal)  # as an upgrade does
    filled.run(f"DELETE FROM earlier_description WHERE {of_it}", portal)
    assert {day: read(client, day, portal) for day in range(6)} == before
    titles = {day: [(each["title"], each["title_from"]) for each in items] for day, items in before.items()}
    assert titles == {day: [(harvests[day // 2 * 2][0], time_of(day // 2 * 2))] for day in range(6)}
    assert [before[day][0]["files"][0]["format"] for day in (1, 3, 5)] == ["CSV", "CSV", "XLSX"]


def test_a_title_that_changes_with_every_harvest_is_stored_a_bounded_number_of_times(client, filled):
    busy = "http://busy.example/"
    rounds = 1005
    for turn in range(rounds):
        harvest(
            filled, turn / 100, [("A", f"Title {turn} " + "x" * 5000, None, None, "a")], busy, whole=False
        )
    stored = filled.rows(
        "SELECT count(*), max(length(title)) FROM earlier_description JOIN portal USING (portal)"
        " WHERE portal.url = %s",
        busy,
    )
    assert stored == [(1000, 2000)]
    [first] = read(client, 0, busy)
    assert first["title"].startswith("Title 50 ")
    assert first["title_from"] == "2026-01-01T12:00:00.000Z"
