"""What a portal listed on any day, by SPARQL: what left and came back is missing while it was away."""

from tamias.archive.sources.catalogues import note_datasets, note_whole
from tamias.archive.versions.resources import VisitNote, note_visits
from tamias.model.dataset import Dataset, Distribution

from .conftest import DAY, START

PORTAL = "http://catalogue.example/"
HARVESTS = {
    0: {"A": ["a1", "a2"], "B": ["b1"]},
    2: {"A": ["a1"]},
    4: {"A": ["a1", "a2"], "B": ["b1"]},
    6: {"A": ["a1"]},
    8: {"A": ["a1", "a2"], "B": ["b1"]},
}
"""By day: what a whole harvest saw. B and a2 go, come back, go and come back."""
VISITS = {1: "gone", 3: "active", 5: "gone", 7: "active", 8: "gone"}
"""Of the file b1."""
LISTED = """SELECT ?dataset ?file {
    ?dataset arc:listed ?time . ?time arc:hasPortal <%(portal)s> ; dcat:startDate ?from
    FILTER NOT EXISTS { ?time dct:isPartOf ?any }
    FILTER (?from <= %(at)s) FILTER NOT EXISTS { ?time dcat:endDate ?until FILTER (?until <= %(at)s) }
    ?file arc:listed ?its . ?its dct:isPartOf ?dataset ; dcat:startDate ?since
    FILTER (?since <= %(at)s) FILTER NOT EXISTS { ?its dcat:endDate ?left FILTER (?left <= %(at)s) }
}"""
GONE = """ASK { ?dataset dcat:distribution/dcat:accessURL <%(file)s> ; arc:gone ?time .
    ?time dcat:startDate ?from
    FILTER (?from <= %(at)s) FILTER NOT EXISTS { ?time dcat:endDate ?until FILTER (?until <= %(at)s) } }"""


TITLED = """SELECT ?dataset ?title {
    ?dataset arc:titled ?time . ?time arc:hasPortal <%(portal)s> ; dct:title ?title ; dcat:startDate ?from
    FILTER (?from <= %(at)s) FILTER NOT EXISTS { ?time dcat:endDate ?until FILTER (?until <= %(at)s) }
}"""


def url(name):
    return f"http://files.example/{name}.csv"


def dataset(name, files):
    forms = tuple(Distribution(url=url(each), format="CSV") for each in files)
    return Dataset(record=name, iri=f"{PORTAL}{name}", title=name, distributions=forms)


def noon(day):
    return f'"2026-01-{day + 1:02}T12:00:00Z"^^xsd:dateTime'


def test_every_day_has_what_the_harvest_before_it_saw_and_files_are_gone_while_they_were(
    corpus, refresher, client
):
    corpus.session.transact(lambda cursor: cursor.execute("TRUNCATE portal CASCADE"))
    name = corpus.put(url("b1"), b"a\n1\n", portal=PORTAL)

    def happens(day):
        def note(cursor):
            when = START + day * DAY
            if day in HARVESTS:
                told = [dataset(*each) for each in HARVESTS[day].items()]
                note_datasets(cursor, PORTAL, "ckan", when, told)
                note_whole(cursor, PORTAL, when)
            if day in VISITS:
                visit = VisitNote(resource=name, state=VISITS[day], now=when, next_visit=0, fails=0)
                note_visits(cursor, [visit])

        corpus.session.transact(note)

    for day in range(10):
        happens(day)
        refresher.round()
    for day in range(10):
        words = {"portal": PORTAL, "file": url("b1"), "at": noon(day)}
        rows = client.get("/sparql", params={"query": LISTED % words}).json()["results"]["bindings"]
        seen = HARVESTS[max(each for each in HARVESTS if each <= day)]
        expected = {(f"{PORTAL}{each}", url(file)) for each, files in seen.items() for file in files}
        assert {(row["dataset"]["value"], row["file"]["value"]) for row in rows} == expected, day
        state = VISITS[max((each for each in VISITS if each <= day), default=1)] if day else "active"
        gone = client.get("/sparql", params={"query": GONE % words}).json()["boolean"]
        assert gone == (state == "gone"), day


def test_every_day_has_the_titles_of_the_harvest_before_it(corpus, refresher, client):
    corpus.session.transact(lambda cursor: cursor.execute("TRUNCATE portal CASCADE"))
    titles = {0: "Budget", 2: "Spending", 4: "Budget", 6: None, 8: "Budget 2027"}

    def happens(day):
        def note(cursor):
            told = Dataset(record="A", iri=f"{PORTAL}A", title=titles[day]) if titles[day] else None
            note_datasets(cursor, PORTAL, "ckan", START + day * DAY, [told] if told else [])
            note_whole(cursor, PORTAL, START + day * DAY)

        corpus.session.transact(note)

    for day in titles:
        happens(day)
        refresher.round()
    for day in range(10):
        words = {"portal": PORTAL, "at": noon(day)}
        rows = client.get("/sparql", params={"query": TITLED % words}).json()["results"]["bindings"]
        last = titles[max(each for each in titles if each <= day)] or titles[4]
        assert [(row["dataset"]["value"], row["title"]["value"]) for row in rows] == [(f"{PORTAL}A", last)]
