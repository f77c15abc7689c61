"""What a portal listed on any day: what left and came back is missing exactly while it was away."""

import csv
import io

import pytest

from tamias.archive.sources.catalogues import note_datasets, note_listed, note_whole
from tamias.archive.versions.resources import VisitNote, note_visits
from tamias.model.dataset import Dataset, Distribution
from tamias.model.finding import Deleted

from .conftest import DAY, START

CATALOGUE = "http://catalogue.example/"
HARVESTS = {
    0: {"A": ["a1", "a2"], "B": ["b1"], "C": []},
    2: {"A": ["a1"], "C": []},
    4: {"A": ["a1", "a2"], "B": ["b1"], "C": ["c1"]},
    6: {"A": ["a2"], "C": ["c1"]},
    8: {"A": ["a1", "a2"], "B": ["b1", "b2"], "C": ["c1"]},
    10: {"A": ["a1", "a2"], "C": ["c1"]},
}
"""By day: what a whole harvest saw."""


def url(name):
    return f"http://files.example/{name}.csv"


def dataset(name, files):
    forms = tuple(Distribution(url=url(each), format="CSV") for each in files)
    return Dataset(record=name, iri=f"{CATALOGUE}{name}", title=f"Title of {name}", distributions=forms)


@pytest.fixture(scope="module")
def harvested(filled):
    name = filled.put(url("b1"), b"x\n1\n", b"x\n2\n", step=5 * DAY)

    def harvest(day):
        def note(cursor):
            when = START + day * DAY
            note_datasets(cursor, CATALOGUE, "ckan", when, [dataset(*each) for each in HARVESTS[day].items()])
            note_whole(cursor, CATALOGUE, when)

        filled.session.transact(note)

    def visit(day, state):
        told = VisitNote(resource=name, state=state, now=START + day * DAY, next_visit=0, fails=0)
        filled.session.transact(lambda cursor: note_visits(cursor, [told]))

    for day in HARVESTS:
        harvest(day)
    harvest(10)  # the same news twice
    for day, state in ((1, "gone"), (3, "active"), (5, "gone"), (7, "active"), (9, "gone")):
        visit(day, state)
    deleted = Deleted(records=("C",))
    filled.session.transact(lambda cursor: note_listed(cursor, CATALOGUE, START + 12 * DAY, deleted))


def listed(client, day, **words):
    """Datasets and files of a day by REST, page after page."""
    asked = {"url": CATALOGUE, "at": f"2026-01-{day + 1:02}T12:00:00Z", "limit": 2, **words}
    found = []
    while True:
        answer = client.get("/api/v1/portal/at", params=asked).json()
        found += answer["items"]
        if answer["cursor"] is None:
            return found
        asked["cursor"] = answer["cursor"]


def expected(day):
    if day >= 12:
        return {name: files for name, files in HARVESTS[10].items() if name != "C"}
    return HARVESTS[max(seen for seen in HARVESTS if seen <= day)]


@pytest.mark.usefixtures("harvested")
@pytest.mark.parametrize("day", range(14))
def test_every_day_has_what_the_harvest_before_it_saw(client, day):
    found = {each["record"]: [file["url"] for file in each["files"]] for each in listed(client, day)}
    assert found == {name: sorted(map(url, files)) for name, files in expected(day).items()}


@pytest.mark.usefixtures("harvested")
def test_before_the_first_harvest_nothing_was_listed(client):
    assert (
        client.get("/api/v1/portal/at", params={"url": CATALOGUE, "at": "2025-12-31"}).json()["items"] == []
    )


@pytest.mark.usefixtures("harvested")
@pytest.mark.parametrize(
    ("day", "number", "gone"), [(0, 1, False), (4, 1, False), (5, 2, True), (8, 2, False), (9, 2, True)]
)
def test_a_file_has_the_version_of_the_day_and_whether_its_server_had_it(client, day, number, gone):
    [file] = [file for each in listed(client, day) for file in each["files"] if file["url"] == url("b1")]
    assert (file["version"].partition("_")[2], file["gone"]) == (str(number), gone)
    content = client.get(f"/api/v1/get/file/id/{file['version']}").content
    assert content == b"x\n%d\n" % number


@pytest.mark.usefixtures("harvested")
def test_every_absence_is_told(client):
    items = client.get("/api/v1/portal/absences", params={"url": CATALOGUE}).json()["items"]

    def at(day):
        return None if day is None else f"2026-01-{day + 1:02}T00:00:00.000Z"

    told = [
        ("C", None, 12, None), ("B", None, 10, None), ("A", "a1", 6, 8), ("B", None, 6, 8), ("A", "a2", 2, 4),
        ("B", None, 2, 4),
    ]  # fmt: skip
    assert [(each["record"], each["url"], each["gone_at"], each["back_at"]) for each in items] == [
        (record, file and url(file), at(gone), at(back)) for record, file, gone, back in told
    ]


@pytest.mark.usefixtures("harvested")
def test_the_page_its_json_and_its_csv_say_the_same(client):
    asked = {"url": CATALOGUE, "at": "2026-01-07"}
    page = client.get("/portal/at", params=asked, headers={"Accept": "text/html"}).text
    data = client.get("/portal/at.json", params=asked).json()
    lines = list(
        csv.DictReader(io.StringIO(client.get("/portal/at", params={**asked, "format": "csv"}).text))
    )
    assert [(line["record"], line["url"]) for line in lines] == [("A", url("a2")), ("C", url("c1"))]
    assert [each["record"] for each in data["datasets"]] == ["A", "C"]
    assert data["datasets"] == client.get("/api/v1/portal/at", params=asked).json()["items"]
    assert "Title of A" in page
    assert url("a2") in page
    assert "Left and came back" in page
    assert client.get("/portal/at", params={"url": "http://nobody.example/"}).status_code == 404
