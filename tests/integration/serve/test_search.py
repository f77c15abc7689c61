"""Searches: what comes first, what facets count and filter, and that access rules hold for both."""

import json
from urllib.parse import quote

import pytest

from .conftest import DAY, START
from .test_forgetting import forget, wait_for
from .test_usage import say

CITIES = "https://cities.example/"


def found(client, words, **filters):
    return client.get("/api/v1/search", params={"q": words, **filters}).json()


def ids(client, words, **filters):
    return [hit["id"] for hit in found(client, words, **filters)["hits"]]


def describe(filled, url, record, title, publisher=None, about=None, licence=None):
    """As if a harvest of a portal had brought the description of a dataset with one file."""
    filled.run(
        "INSERT INTO tamias.portal (url, kind, first_seen) VALUES (%s, 'ckan', 1) ON CONFLICT DO NOTHING",
        CITIES,
    )
    [(portal,)] = filled.rows("SELECT portal FROM tamias.portal WHERE url = %s", CITIES)
    told = {"publisher_name": publisher, "about": about, "forms": [{"url": url, "licence": licence}]}
    filled.run(
        "INSERT INTO tamias.described (portal, record, iri, title, first_seen, last_seen, told_at)"
        " VALUES (%s, %s, %s, %s, 1, 1, 1)",
        portal, record, CITIES + record, title,
    )  # fmt: skip
    filled.run(
        "INSERT INTO tamias.offered (portal, record, url, first_seen, last_seen, told_at)"
        " VALUES (%s, %s, %s, 1, 1, 1)",
        portal, record, url,
    )  # fmt: skip
    filled.run(
        "UPDATE tamias.described SET told = %s WHERE portal = %s AND record = %s",
        json.dumps(told),
        portal,
        record,
    )
    return portal


@pytest.fixture(scope="module")
def borough(filled):
    """Borough 12, the oldest, and 150 others whose names, addresses or columns begin so."""
    names = {}
    for n in [12, *range(100, 130), *range(1200, 1320)]:
        names[n] = filled.put(
            f"http://borough.example/{n}.csv",
            b"a\n%d\n" % n,
            start=START + n * 1000,
            title=f"Trees of borough {n}",
        )
    names["address"] = filled.put(
        "http://borough.example/years/12/x.csv", b"a\n", start=START + 10 * DAY, title="Trees"
    )
    return names


@pytest.mark.parametrize("words", ["borough 12", "12 trees borough", "Trees of borough 12", "boro 12"])
def test_whole_words_of_titles_come_before_beginnings_and_addresses(client, borough, words):
    assert ids(client, words)[0] == borough[12]


def test_beginnings_of_words_are_found_after_it(client, borough):
    assert set(ids(client, "borough 12", limit=1000)) == {
        name for n, name in borough.items() if n == "address" or str(n).startswith("12")
    }


def test_a_dataset_that_is_called_exactly_so_is_first(client, filled, borough):
    name = filled.put("http://exactly.example/a.csv", b"a\n", start=START, title="Borough!")
    assert ids(client, "borough")[0] == name


@pytest.fixture(scope="module")
def cities(filled):
    """Four datasets of one portal that differ in each facet."""
    urls = [f"http://cities.example/{n}.csv" for n in range(4)]
    kinds = ["text/csv", "text/csv", "application/json", "text/turtle"]
    sizes = [10, 20_000, 10, 10]
    names = [
        filled.put(url, b"x" * size + url.encode(), media_type=kind, title=f"Metropolis {n}")
        for n, (url, kind, size) in enumerate(zip(urls, kinds, sizes, strict=True))
    ]
    for n, url in enumerate(urls[:3]):
        describe(
            filled, url, f"r{n}", f"Dataset {n}", f"Office {n % 2}", "Counts of hedgehogs", f"licence-{n}"
        )
    filled.run("UPDATE tamias.resource SET state = 'gone' WHERE resource = %s", names[3])
    filled.run("UPDATE tamias.resource SET trouble = 'x' WHERE resource = %s", names[2])
    return names


def test_facets_count_what_was_found(client, cities):
    facets = found(client, "metropolis")["facets"]
    assert {name: facets[name] for name in ("publisher", "type", "licence", "state", "size")} == {
        "publisher": {"Office 0": 2, "Office 1": 1},
        "type": {"text/csv": 2, "application/json": 1, "text/turtle": 1},
        "licence": {"licence-0": 1, "licence-1": 1, "licence-2": 1},
        "state": {"active": 2, "failing": 1, "gone": 1},
        "size": {"under 10 KiB": 3, "10 KiB to 1 MiB": 1},
    }
    assert (facets["portal"], sum(facets["changed"].values())) == ({"http://portal.example/": 4}, 4)


@pytest.mark.parametrize(
    ("filters", "places"),
    [({"publisher": "Office 0"}, {0, 2}), ({"type": "csv"}, {0, 1}), ({"licence": "licence-1"}, {1}),
     ({"state": "failing"}, {2}), ({"size": "10 KiB to 1 MiB"}, {1}), ({"state": "gone"}, {3}),
     ({"publisher": "Office 0", "type": "csv"}, {0}), ({"portal": "http://absent.example/"}, set()),
     ({"publisher": "Office 1", "licence": "licence-0"}, set())],
)  # fmt: skip
def test_every_facet_is_a_filter(client, cities, filters, places):
    assert set(ids(client, "metropolis", **filters)) == {cities[place] for place in places}


def test_each_value_that_is_counted_filters_to_as_many(client, cities):
    for facet, values in found(client, "metropolis")["facets"].items():
        for value, count in values.items():
            assert found(client, "metropolis", **{facet: value})["found"] == count, (facet, value)


def test_filters_alone_are_a_search(client, cities):
    assert set(ids(client, "", publisher="Office 0")) == {cities[0], cities[2]}


def test_what_a_portal_says_of_a_dataset_is_found_and_gone_with_its_record(client, filled, cities):
    name = filled.put("http://cities.example/badger.csv", b"a\n", title="Beasts")
    portal = describe(
        filled, "http://cities.example/badger.csv", "badger", "Setts", "Badger Trust", "Where they dig"
    )
    assert ids(client, "setts badger trust dig") == [name]
    filled.run("DELETE FROM tamias.described WHERE portal = %s AND record = 'badger'", portal)
    assert (ids(client, "setts"), ids(client, "", publisher="Badger Trust")) == ([], [])


def test_facets_do_not_count_what_is_not_to_be_listed(client, writer, filled):
    urls = [f"http://quiet.example/{n}.csv" for n in range(2)]
    names = [filled.put(url, b"a\n", title="Quietude") for url in urls]
    describe(filled, urls[1], "quiet", "Quiet", "Secret Society")
    say(filled, names[1], 1, "noindex")
    assert "publisher" not in found(client, "quietude")["facets"]
    assert (ids(client, "quietude"), ids(client, "", publisher="Secret Society")) == (names[:1], [])
    assert set(ids(writer, "quietude")) == set(names)


def test_what_is_forgotten_is_found_and_counted_no_more(client, writer, filled):
    url = "http://forget.example/searched.csv"
    name = filled.put(url, b"a\n1\n", title="Oblivion")
    describe(filled, url, "oblivion", "Oblivion", "Lethe")
    assert ids(client, "oblivion") == [name]
    assert forget(writer, url).status_code < 300
    wait_for(lambda: not ids(client, "oblivion"))
    assert found(client, "", publisher="Lethe")["hits"] == []


def test_the_page_links_each_value_and_removes_each_filter(client, cities):
    page = client.get(
        "/search", params={"q": "metropolis", "type": "text/csv"}, headers={"Accept": "text/html"}
    ).text
    assert (
        f'href="/search?q=metropolis&amp;type={quote("text/csv", safe="")}&amp;publisher=Office%200"' in page
    )
    assert 'href="/search?q=metropolis" aria-label="Remove the filter type: text/csv"' in page


@pytest.mark.parametrize("params", [{"q": "x" * 201}, {"q": "a " * 9}, {"type": "no such"}, {"limit": "0"}])
def test_a_search_out_of_bounds_is_refused(client, params):
    assert client.get("/api/v1/search", params=params).status_code == 400
