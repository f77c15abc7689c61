"""What came to a portal, changed and went between two dates."""

import json

import pytest

from tamias.archive.sources.catalogues import note_datasets, note_whole
from tamias.archive.versions.resources import VisitNote, note_visits
from tamias.model.dataset import Dataset, Distribution
from tamias.model.resource import Source

PORTAL = "http://portal.example/"
START, DAY = 1_767_225_600_000, 86_400_000
"""2026-01-01T00:00:00Z"""


def offered(name):
    return {"sources": (Source(source=f"{PORTAL}dataset/{name}", portal=PORTAL),)}


@pytest.fixture
def portal(filled):
    """One that stays, one that changes, one that goes, one that the portal leaves out, and a stranger."""
    url = "http://data.example/{}.csv".format
    filled.run("TRUNCATE portal CASCADE")
    filled.put(url("same"), b"a\n1\n", **offered("same"))
    filled.put(url("changed"), b"a\n1\n", b"a\n2\n", b"a\n3\n", **offered("changed"))
    gone = filled.put(url("gone"), b"a\n4\n", **offered("gone"))
    left = filled.put(url("left"), b"a\n5\n", **offered("left"))
    filled.put(
        url("stranger"), b"a\n6\n", sources=(Source(source="http://o/1", portal="http://other.example/"),)
    )
    filled.put(url("new"), b"a\n7\n", **offered("new"))
    filled.run(
        "UPDATE version SET captured_at = captured_at + %s"
        " WHERE resource IN (SELECT resource FROM resource WHERE url = %s)",
        2 * DAY,
        url("new"),
    )
    note = VisitNote(resource=gone, state="gone", now=START + 3 * DAY, next_visit=0, fails=0)
    dataset = Dataset(
        record="1", iri=f"{PORTAL}dataset/1", title="", distributions=(Distribution(url="http://x/"),)
    )

    def harvested(cursor):
        note_visits(cursor, [note])
        note_datasets(cursor, PORTAL, "ckan", START + 4 * DAY, [dataset])
        note_whole(cursor, PORTAL, START + 4 * DAY)
        cursor.execute("UPDATE source SET last_seen = %s WHERE portal = %s", [START + 5 * DAY, PORTAL])
        cursor.execute("UPDATE source SET last_seen = %s WHERE resource = %s", [START + DAY, left])

    filled.session.transact(harvested)
    return url


def test_what_came_changed_and_went_is_told_of_this_portal_only(portal, tamias):
    told = tamias("diff", "--portal", PORTAL, "2026-01-01", "2026-01-10", "--json")
    assert json.loads(told.stdout) == {
        "added": [portal("new")],
        "changed": [portal("changed")],
        "gone": [portal("gone"), portal("left")],
    }


HARVESTS = {
    0: {"A": ["a1", "a2"], "B": ["b1"]},
    2: {"A": ["a1"]},
    4: {"A": ["a1", "a2"], "B": ["b1"]},
    6: {"A": ["a2"]},
    8: {"A": ["a1", "a2"], "B": ["b1"]},
}
"""By day: what a whole harvest saw."""
GONE = {5: "gone", 7: "active"}
"""By day: what the server of a2 said."""


def there(day):
    """The files that were offered at the end of a day."""
    seen = HARVESTS[max(each for each in HARVESTS if each <= day)]
    return {file for files in seen.values() for file in files} - ({"a2"} if 5 <= day < 7 else set())


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 5), (4, 6), (6, 7), (7, 9), (1, 9), (5, 6)])
def test_what_went_and_came_back_several_times_is_told_for_each_of_them(filled, tamias, before, after):
    url = "http://data.example/{}.csv".format
    filled.run("TRUNCATE portal CASCADE")
    names = {name: filled.put(url(name), name.encode(), **offered(name)) for name in ("a1", "a2", "b1")}

    def happens(cursor, day):
        now = START + day * DAY
        if day in HARVESTS:
            datasets = [
                Dataset(
                    record=name, iri=f"{PORTAL}dataset/{name}", title=name,
                    distributions=tuple(Distribution(url=url(each)) for each in files),
                )
                for name, files in HARVESTS[day].items()
            ]  # fmt: skip
            note_datasets(cursor, PORTAL, "ckan", now, datasets)
            note_whole(cursor, PORTAL, now)
            cursor.execute("UPDATE source SET last_seen = %s WHERE portal = %s", [now, PORTAL])
        if day in GONE:
            note_visits(
                cursor, [VisitNote(resource=names["a2"], state=GONE[day], now=now, next_visit=0, fails=0)]
            )

    for day in sorted({*HARVESTS, *GONE}):
        filled.session.transact(lambda cursor, day=day: happens(cursor, day))
    told = tamias("diff", "--portal", PORTAL, f"2026-01-{before + 1:02}", f"2026-01-{after + 1:02}", "--json")
    was, now = there(before), there(after)
    assert json.loads(told.stdout) == {
        "added": sorted(map(url, now - was)), "changed": [], "gone": sorted(map(url, was - now))
    }, told.stderr  # fmt: skip


def test_between_two_dates_without_events_there_is_nothing(portal, tamias):
    told = tamias("diff", "--portal", PORTAL.rstrip("/"), "2026-01-08", "2026-01-10")
    assert told.stdout == "resources: 0 added, 0 changed, 0 gone\n", told.stderr


@pytest.mark.usefixtures("portal")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [((PORTAL,), 2, "between two times"), (("http://no.example/", "2026-01-01"), 1, "not a watched portal")],
)
def test_what_cannot_be_compared_is_told(tamias, words, code, said):
    done = tamias("diff", "--portal", *words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
