"""Snapshots have pages to cite them by, and versions say who else has their content."""

import json
import re

import pytest

from tamias.archive.moments import rfc3339
from tamias.archive.reader.library import ArchiveReader
from tamias.features.snapshots.entries import SnapshotAbout
from tamias.features.snapshots.make import make_snapshot
from tests.integration.serve.conftest import DAY, START

BROWSER = {"accept": "text/html"}
TITLE = "Figures of </script><b>Exampleton</b>"


@pytest.fixture(scope="module")
def snapshot(filled):
    filled.put("http://mirror.example/one.csv", b"id\n77\n", b"id\n78\n")
    filled.put("http://mirror.example/two.csv", b"id\n78\n", start=START + 5 * DAY)
    with ArchiveReader(filled.data) as archive:
        at = START + 10 * DAY
        plan = SnapshotAbout(
            name="2026-q1", at=rfc3339(at), hosts=("mirror.example",), title=TITLE, description="",
            creators=("A", "B"), publisher="P", doi="10.5072/x",
        )  # fmt: skip
        return make_snapshot(archive, plan, at)


def test_a_snapshot_has_a_page_that_says_how_to_cite_it(client, snapshot):
    listed = client.get("/snapshots", headers=BROWSER).text
    assert '<a href="/snapshot/2026-q1">' in listed
    page = client.get("/snapshot/2026-q1", headers=BROWSER).text
    assert "A; B (2026): Figures of &lt;/script&gt;" in page
    assert "Version 2026-q1. P. Dataset. https://doi.org/10.5072/x" in page
    (told,) = re.findall(r'<script type="application/ld\+json">(.*?)</script>', page, re.DOTALL)
    dataset = json.loads(told)
    assert (dataset["@id"], dataset["name"]) == ("https://doi.org/10.5072/x", TITLE)
    assert [each["name"] for each in dataset["creator"]] == ["A", "B"]


def test_a_snapshot_is_told_in_the_api(client, snapshot):
    (listed,) = client.get("/api/v1/snapshots").json()["items"]
    one = client.get("/api/v1/snapshots/2026-q1").json()
    assert one["snapshot"] == listed
    assert (listed["versions"], listed["at"]) == (3, rfc3339(START + 10 * DAY))
    assert [row["versions"] for row in one["licences"]] == [3]
    answer = client.get("/api/v1/snapshots/2026-q1/datacite")
    assert answer.headers["content-type"] == "application/vnd.datacite.datacite+json"
    assert answer.json() == one["datacite"] == json.loads(snapshot.datacite)
    assert client.get("/api/v1/snapshots/none").status_code == 404
    assert client.get("/snapshot/none", headers=BROWSER).status_code == 404


def test_a_version_says_who_else_has_its_content(client, snapshot):
    asked = {"url": "http://mirror.example/one.csv", "same_as": "1"}
    first, second = client.get("/api/v1/versions", params=asked).json()["items"]
    assert first["same_as"] == []
    (other,) = second["same_as"]
    assert (other["url"], other["number"], other["same_bytes"]) == ("http://mirror.example/two.csv", 1, True)
    del asked["same_as"]
    assert all("same_as" not in each for each in client.get("/api/v1/versions", params=asked).json()["items"])
    name = client.get("/api/v1/get/dataset/http://mirror.example/two.csv").json()["id"]
    page = client.get(f"/dataset/{name}", headers=BROWSER).text
    assert re.search(
        r'same bytes as <a href="/dataset/[0-9a-f]{24}/2">http://mirror.example/one.csv</a>', page
    )
