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
