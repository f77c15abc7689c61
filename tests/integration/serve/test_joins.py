"""Join candidates over HTTP."""

from urllib.parse import quote

import pytest

from tamias.archive.blobs import BlobReader, LocalPacks
from tamias.features.tables.chores import find_joins, profile_some

TOWNS, SCHOOLS = "http://joins.example/towns.csv", "http://joins.example/schools.csv"


@pytest.fixture(scope="module")
def joined(filled):
    """All towns of the schools are among the towns."""
    filled.put(TOWNS, "".join(["town\n", *(f"Ort {n}\n" for n in range(90))]).encode())
    filled.put(SCHOOLS, "".join(["school,place\n", *(f"S{n},Ort {n % 30}\n" for n in range(120))]).encode())
    blobs = BlobReader(LocalPacks(filled.data / "blobs"), filled.session)
    while profile_some(filled.session, blobs):
        pass
    find_joins(filled.session)


@pytest.mark.usefixtures("joined")
@pytest.mark.parametrize("url", [TOWNS, SCHOOLS])
def test_candidates_are_told_from_either_side(client, url):
    answer = client.get(f"/api/v1/joins?url={quote(url, safe='')}")
    (join,) = answer.json()["items"]
    assert (join["of"]["url"], join["of"]["name"]) == (SCHOOLS, "place")
    assert (join["within"]["url"], join["within"]["name"]) == (TOWNS, "town")
    assert join["containment"] == 1.0


@pytest.mark.usefixtures("joined")
def test_all_candidates_come_page_by_page(client):
    pages = [client.get("/api/v1/joins?limit=1").json()]
    while pages[-1]["items"]:
        assert len(pages[-1]["items"]) == 1
        pages.append(client.get(f"/api/v1/joins?limit=1&cursor={pages[-1]['cursor']}").json())
    told = [(join["of"]["url"], join["within"]["url"]) for page in pages for join in page["items"]]
    assert told.count((SCHOOLS, TOWNS)) == 1
    assert told == [
        (join["of"]["url"], join["within"]["url"]) for join in client.get("/api/v1/joins").json()["items"]
    ]


def test_a_resource_that_is_not_archived_is_not_found(client):
    assert client.get("/api/v1/joins?url=http://nowhere.example/").status_code == 404
