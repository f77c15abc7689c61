"""A portal on an earlier day, with the titles of that day: a cluster answers as one server does."""

from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from servers.running import free_port

from tamias.archive.sources.catalogues import note_datasets, note_whole
from tamias.database.connect import Database
from tamias.database.roles import Role
from tamias.model.dataset import Dataset, Distribution

from .conftest import done

PORTAL = "http://renaming.example/"
FILE = "http://files.example/"
START, DAY = 1_767_225_600_000, 86_400_000
HARVESTS = {
    0: {"A": ("Budget", "Budget, as a table", "CSV"), "B": ("Trees", None, None)},
    2: {"A": ("Spending", "Spending, as a table", "CSV"), "B": ("Trees", None, None)},
    4: {"A": ("Budget", "Spending, as a table", "csv file"), "B": ("Bäume", "Trees", None)},
    6: {"B": ("Bäume", "Trees", None)},
    8: {"A": ("Budget 2027", None, None), "B": ("Trees", None, "CSV")},
}
"""By day from 2026-01-01 on: titles of the datasets that a harvest saw, titles and formats of their files."""
LAST = {("A", "Budget 2027"), ("B", "Trees")}
TITLED = """SELECT ?dataset ?title {
    ?dataset arc:titled ?time . ?time arc:hasPortal <%(portal)s> ; dct:title ?title ; dcat:startDate ?from
    FILTER (?from <= %(at)s) FILTER NOT EXISTS { ?time dcat:endDate ?until FILTER (?until <= %(at)s) }
}"""


@pytest.fixture
def places(citus, database_of, tamias_at):
    """The executable on one server, and on a cluster; each with the addresses by which workers reach it."""
    made = {}
    for name, nodes in {"plain": 0, "cluster": None}.items():
        tamias = tamias_at(name)
        url = database_of(f"days_{name}", nodes)
        tamias.env |= {"TAMIAS_DB": url, "TAMIAS_FRONTIER__BUCKETS": "16", "PGOPTIONS": ""}
        if nodes is None:
            done(tamias.run("cluster init", "--shards", "8"))
            database = url.rpartition("/")[2].partition("?")[0]
            made[name] = tamias, [server.url(database) for server in citus.servers]
        else:
            made[name] = tamias, [url]
    return made


def harvest(url, day):
    """What a worker writes after a harvest of the whole portal."""
    seen = [
        Dataset(
            record=record,
            iri=f"{PORTAL}{record}",
            title=title,
            distributions=(Distribution(url=FILE + record, title=file_title, format=form),),
        )
        for record, (title, file_title, form) in HARVESTS[day].items()
    ]

    def note(cursor):
        note_datasets(cursor, PORTAL, "ckan", START + day * DAY, seen)
        note_whole(cursor, PORTAL, START + day * DAY)

    with (
        closing(Database(Path(), url, role=Role.WORKER, buckets=16)) as database,
        closing(database.session()) as session,
    ):
        session.transact(note)


@contextmanager
def served(tamias):
    """A client of a service that only reads."""
    port = free_port()
    process = tamias.start("serve", "--port", str(port), "--no-crawl")
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        tamias.wait_until(lambda: process.poll() is not None or is_answering(client))
        yield client
    process.terminate()
    assert process.wait(60) in (0, 130), process.stderr.read()


def is_answering(client):
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def words(item):
    [file] = item["files"]
    return item["title"], file["title"], file["format"]


def titles(client, day):
    """Titles of a day, by SPARQL."""
    asked = TITLED % {"portal": PORTAL, "at": f'"2026-01-{day + 1:02}T12:00:00Z"^^xsd:dateTime'}
    answer = client.get("/sparql", params={"query": asked}, headers={"Accept": "application/json"})
    found = answer.json()["results"]["bindings"]
    return {(row["dataset"]["value"].removeprefix(PORTAL), row["title"]["value"]) for row in found}


def test_every_day_has_its_titles_on_a_cluster_as_on_one_server(places, table):
    told = {}
    for name, (tamias, urls) in places.items():
        for turn, day in enumerate(HARVESTS):
            harvest(urls[turn % len(urls)], day)
        with served(tamias) as client:
            told[name] = {}
            for day in range(10):
                asked = {"url": PORTAL, "at": f"2026-01-{day + 1:02}T12:00:00Z"}
                listed = client.get("/api/v1/portal/at", params=asked).json()["items"]
                seen = HARVESTS[max(each for each in HARVESTS if each <= day)]
                assert {item["record"]: words(item) for item in listed} == seen
                page = client.get("/portal/at", params=asked, headers={"Accept": "text/html"})
                assert page.status_code == 200
                assert all(title in page.text for title, *_ in seen.values())
                data = client.get("/portal/at.json", params=asked).json()
                assert data["datasets"] == listed
                csv = client.get("/portal/at", params={**asked, "format": "csv"}).text
                told[name][day] = listed, data["datasets"], csv
            absences = client.get("/api/v1/portal/absences", params={"url": PORTAL}).json()["items"]
            assert [(each["record"], each["title"]) for each in absences] == [("A", "Budget")]
            told[name]["absences"] = absences
            tamias.wait_until(lambda client=client: titles(client, 9) == LAST)
            for day in range(10):
                known = [seen for each, seen in HARVESTS.items() if each <= day]
                wanted = {record: told_of[0] for seen in known for record, told_of in seen.items()}
                assert titles(client, day) == set(wanted.items()), day
    assert told["cluster"] == told["plain"]
    table.append(f"{'Citus: portal at a day':<28}titles of 10 days, by REST, page, CSV and SPARQL")
