"""A CKAN portal, honest, changing or broken, is harvested to the end that it deserves."""

import pytest

from tamias.features.portals import ckan
from tamias.features.portals.ckan import CkanHarvester
from tamias.model.capture import Outcome
from tests.messages import unsaid

SEARCH = "/api/3/action/package_search"


def package(number, **more):
    key = f"{number:08d}-aaaa-4bbb-8ccc-{number:012d}"
    return {
        "id": key,
        "name": f"trees-{number}",
        "title": f"Trees of district {number}",
        "notes": "Where they stand.",
        "url": "",
        "version": "3",
        "license_id": "cc-by",
        "license_title": "CC BY 4.0",
        "license_url": "https://creativecommons.org/licenses/by/4.0/",
        "author": "Survey",
        "author_email": "survey@example.org",
        "maintainer": "Desk",
        "maintainer_email": "desk@example.org",
        "metadata_created": "2020-01-01T10:00:00.123456",
        "metadata_modified": "2024-01-01T10:00:00.123456",
        "state": "active",
        "organization": {"id": "9f2d", "name": "parks", "title": "Parks department"},
        "groups": [{"id": "g1", "name": "nature", "title": "Nature", "display_name": "Nature"}],
        "tags": [{"name": "tree", "display_name": "tree", "state": "active"}],
        "extras": [
            {
                "key": "frequency",
                "value": "http://publications.europa.eu/resource/authority/frequency/ANNUAL",
            },
            {"key": "theme", "value": '["http://publications.europa.eu/resource/authority/data-theme/ENVI"]'},
            {"key": "language", "value": '["de"]'},
            {"key": "spatial", "value": '{"type": "Point", "coordinates": [16.3, 48.2]}'},
            {"key": "temporal_start", "value": "2019-01-01"},
            {"key": "temporal_end", "value": "2019-12-31"},
        ],
        "resources": [
            {
                "id": f"r-{number}",
                "name": "Table",
                "url": f"https://files.example.org/{number}.csv",
                "format": "CSV",
                "mimetype": "text/csv",
                "size": 1234,
                "hash": "d41d8cd98f00b204e9800998ecf8427e",
                "created": "2020-01-01T10:00:00",
                "last_modified": None,
            }
        ],
        **more,
    }


class Ckan:
    """The action API over a list of packages that a test may change between requests."""

    def __init__(self, packages, most=1000):
        self.packages = packages
        self.most = most
        self.searches = 0
        self.sort = True

    def __call__(self, path, query):
        action = path.removeprefix("/api/3/action/")
        if action == "status_show":
            return {"success": True, "result": {"site_title": "Town data", "ckan_version": "2.10.4"}}
        if action == "package_search":
            self.searches += 1
            self.before(self.searches)
            return self.search(int(query["start"]), int(query["rows"]))
        if action == "package_list":
            start = int(query.get("offset", 0))
            names = sorted(each["name"] for each in self.packages)
            return {"success": True, "result": names[start : start + int(query["limit"])]}
        if action == "package_show":
            [found] = [each for each in self.packages if each["name"] == query["id"]]
            return {"success": True, "result": found}
        return 404, b"", {}

    def before(self, search):
        """What happens to the portal before a search."""

    def search(self, start, rows):
        packages = sorted(self.packages, key=lambda each: str(each.get("id"))) if self.sort else self.packages
        found = packages[start : start + min(rows, self.most)]
        return {"success": True, "result": {"count": len(packages), "results": found, "sort": "id asc"}}


def portal(site, count, **options):
    site.answer = Ckan([package(number) for number in range(count)], **options)
    return site.answer


def test_every_dataset_comes_once_and_the_end_says_how_many(site):
    portal(site, 250, most=100)
    harvested = site.harvest(CkanHarvester())
    assert len(harvested.records) == len(set(harvested.records)) == 250
    assert harvested.end.complete
    assert harvested.end.outcome is Outcome.OK
    assert not unsaid(harvested.end.reason, "250", "5")


@pytest.mark.parametrize(
    "pattern",
    [
        "<{root}> a dcat:Catalog; dct:title 'Town data'; dcat:dataset <{dataset}>",
        "<{dataset}> a dcat:Dataset; dct:title 'Trees of district 0'; dcat:distribution ?r",
        "?r a dcat:Distribution; dcat:accessURL <https://files.example.org/0.csv>",
        "<{dataset}> dct:publisher <{root}organization/9f2d>. "
        "<{root}organization/9f2d> foaf:name 'Parks department'",
        "<{dataset}> dcat:contactPoint [ vcard:fn 'Desk'; vcard:hasEmail <mailto:desk@example.org> ]",
        "<{dataset}> dct:license <https://creativecommons.org/licenses/by/4.0/>",
        "<{dataset}> dct:temporal [ dcat:startDate '2019-01-01'^^xsd:date ]",
        "<{dataset}> dct:spatial [ dcat:centroid ?c ]",
        "?record a dcat:CatalogRecord; foaf:primaryTopic <{dataset}>",
    ],
)
def test_a_dataset_becomes_dcat(site, pattern):
    portal(site, 1)
    dataset = f"{site.root}dataset/{package(0)['id']}"
    assert site.harvest(CkanHarvester()).says(pattern.format(root=site.root, dataset=dataset))


def test_the_links_are_the_distributions(site):
    portal(site, 2)
    harvested = site.harvest(CkanHarvester())
    assert harvested.links() == ["https://files.example.org/0.csv", "https://files.example.org/1.csv"]


def test_a_sparql_resource_is_a_link_of_that_kind(site):
    endpoint = "https://data.example.org/sparql"
    site.answer = Ckan([package(0, resources=[{"id": "r", "url": endpoint, "format": "api/sparql"}])])
    harvested = site.harvest(CkanHarvester())
    assert harvested.links("sparql") == [endpoint]
    assert harvested.links() == []


@pytest.mark.parametrize("path", ["dataset/trees-0", "api/3/action/package_search?q=x", "en/"])
def test_any_address_of_the_portal_leads_to_it(site, path):
    ckan = portal(site, 3)
    site.answer = lambda path, query: ckan(path, query) if path.startswith("/api/") else (404, b"", {})
    harvested = site.harvest(CkanHarvester(), path)
    assert len(harvested.records) == 3
    assert harvested.says(f"<{site.root}> a dcat:Catalog")


def test_a_portal_below_a_path_is_found(site):
    ckan = portal(site, 3)
    site.answer = lambda path, query: (
        ckan(path.removeprefix("/catalogue"), query) if path.startswith("/catalogue/") else (404, b"", {})
    )
    harvested = site.harvest(CkanHarvester(), "catalogue/dataset")
    assert len(harvested.records) == 3
    assert harvested.says(f"<{site.root}catalogue/> a dcat:Catalog")


def test_a_page_that_is_too_much_for_the_server_is_asked_for_smaller(site):
    ckan = portal(site, 700)
    search = ckan.search
    ckan.search = lambda start, rows: (500, b"", {}) if rows > 150 else search(start, rows)
    harvested = site.harvest(CkanHarvester())
    assert len(set(harvested.records)) == 700
    assert harvested.end.complete


def test_one_record_that_breaks_the_server_is_left_out_and_named(site):
    ckan = portal(site, 30)
    search = ckan.search
    ckan.search = lambda start, rows: (
        (500, b"", {}) if start <= 17 < start + rows and ckan.searches > 1 else search(start, min(rows, 10))
    )
    harvested = site.harvest(CkanHarvester())
    assert len(set(harvested.records)) == 29
    assert any("record 18 left out" in problem for problem in harvested.problems)
    assert not harvested.end.complete
    assert not unsaid(harvested.end.reason, "1")


def test_a_broken_page_is_tried_smaller_and_then_left_out(site):
    ckan = portal(site, 30)
    search = ckan.search
    ckan.search = lambda start, rows: (
        b'{"success": true, "result": {"count": 30, "results": [{"id": "x", '
        if start <= 5 < start + rows and ckan.searches > 1
        else search(start, min(rows, 5))
    )
    harvested = site.harvest(CkanHarvester())
    assert len(set(harvested.records)) == 29
    assert not harvested.end.complete


@pytest.mark.parametrize(
    "bad", ["text", None, 7, [1], {"title": "no id"}, {"id": {"a": 1}}, {"id": None, "name": None}]
)
def test_a_record_of_a_wrong_shape_stops_nothing_but_itself(site, bad):
    ckan = portal(site, 5)
    search = ckan.search

    def with_bad(start, rows):
        answer = search(start, rows)
        answer["result"]["results"].insert(2, bad)
        answer["result"]["count"] = 6
        return answer

    ckan.search = with_bad
    harvested = site.harvest(CkanHarvester())
    assert len(harvested.records) == 5
    assert any(site.root in problem and "record" in problem for problem in harvested.problems)
    assert not harvested.end.complete


@pytest.mark.parametrize(
    "field",
    [
        {"tags": "tree"}, {"tags": [None, 7]}, {"extras": {"theme": 5}}, {"extras": [{}]}, {"resources": {}},
        {"resources": [None, {"url": 5, "size": "many"}]}, {"organization": "parks"},
        {"title": {"de": "Baum"}}, {"notes": ["a"]}, {"groups": [[]]}, {"license_url": "see notes"},
        {"metadata_created": 5},
    ],
)  # fmt: skip
def test_a_field_of_a_wrong_shape_costs_only_the_field(site, field):
    site.answer = Ckan([package(0, **field)])
    harvested = site.harvest(CkanHarvester())
    assert harvested.records == [package(0)["id"]]
    assert harvested.end.complete


def test_datasets_removed_while_it_is_read_hide_no_others(site):
    ckan = portal(site, 60, most=10)

    def remove(search):
        if search == 4:
            del ckan.packages[0:7]

    ckan.before = remove
    harvested = site.harvest(CkanHarvester())
    staying = {package(number)["id"] for number in range(7, 60)}
    assert staying <= set(harvested.records)
    assert harvested.end.complete
    assert not unsaid(harvested.end.reason)


def test_datasets_added_while_it_is_read_are_found_in_a_second_pass(site):
    ckan = portal(site, 60, most=10)
    new = [package(0, id=f"0000000{number}-0000") for number in range(3)]

    def add(search):
        if search == 4:
            ckan.packages.extend(new)

    ckan.before = add
    harvested = site.harvest(CkanHarvester())
    assert {each["id"] for each in ckan.packages} == set(harvested.records)
    assert harvested.end.complete
    assert "second pass" in harvested.end.reason


def test_a_portal_that_never_stands_still_is_not_called_complete(site):
    ckan = portal(site, 40, most=10)
    ckan.before = lambda search: ckan.packages.append(package(0, id=f"00000000-{search:04d}"))
    harvested = site.harvest(CkanHarvester())
    assert not harvested.end.complete
    assert {package(number)["id"] for number in range(40)} <= set(harvested.records)


def test_a_server_that_ignores_the_order_is_read_all_the_same(site):
    ckan = portal(site, 95, most=10)
    ckan.sort = False
    ckan.packages.reverse()
    harvested = site.harvest(CkanHarvester())
    assert len(set(harvested.records)) == 95
    assert harvested.end.complete


def test_a_server_that_ignores_the_order_and_gives_one_at_a_time_is_read_all_the_same(site):
    ckan = portal(site, 12, most=1)
    ckan.sort = False
    ckan.packages.reverse()
    assert len(set(site.harvest(CkanHarvester()).records)) == 12


def test_a_claim_of_a_million_datasets_is_not_believed(site):
    ckan = portal(site, 3)
    search = ckan.search

    def boasting(start, rows):
        answer = search(start, rows)
        answer["result"]["count"] = 1_000_000
        return answer

    ckan.search = boasting
    harvested = site.harvest(CkanHarvester())
    assert len(harvested.records) == 3
    assert not harvested.end.complete
    assert "3 datasets of 1,000,000 counted" in harvested.end.reason
    assert len(site.requests) < 10


def test_a_portal_that_gives_the_same_page_for_ever_is_left(site):
    ckan = portal(site, 10)
    search = ckan.search

    def same(_start, rows):
        answer = search(0, rows)
        answer["result"]["count"] = 1_000_000
        return answer

    ckan.search = same
    harvested = site.harvest(CkanHarvester())
    assert sorted(harvested.records) == sorted({package(number)["id"] for number in range(10)})
    assert "again and again" in harvested.end.reason
    assert len(site.requests) < 30


def test_a_portal_that_asks_us_to_wait_is_left_with_its_word(site):
    ckan = portal(site, 30, most=10)
    search = ckan.search
    ckan.search = lambda start, rows: (
        (429, b"", {"Retry-After": "120"}) if ckan.searches == 2 else search(start, rows)
    )
    harvested = site.harvest(CkanHarvester())
    assert harvested.end.outcome is Outcome.FAILED
    assert harvested.end.retry
    assert harvested.end.retry_after_ms == 120_000
    again = site.harvest(CkanHarvester(), state=harvested.steps[-1].state)
    assert len(set(harvested.records) | set(again.records)) == 30
    assert not set(harvested.records) & set(again.records)
    assert again.end.complete


def test_a_harvest_goes_on_after_the_last_step_that_was_kept(site):
    portal(site, 600)
    first = site.harvest(CkanHarvester(), most=2)
    rest = site.harvest(CkanHarvester(), state=first.steps[-1].state)
    assert len(first.records) == 250
    assert len(rest.records) == 350
    assert rest.end.complete


def test_an_outage_in_the_middle_loses_nothing(site):
    ckan = portal(site, 100, most=10)
    search = ckan.search
    ckan.search = lambda start, rows: (503, b"", {}) if ckan.searches > 3 else search(start, rows)
    harvested = site.harvest(CkanHarvester())
    assert harvested.end.retry
    assert not harvested.end.complete
    ckan.search = search
    again = site.harvest(CkanHarvester(), state=harvested.steps[-1].state)
    assert len(set(harvested.records) | set(again.records)) == 100
    assert again.end.complete


def test_without_a_search_each_dataset_is_asked_for_by_name(site):
    ckan = portal(site, 45)
    ckan.search = lambda start, rows: (404, b"", {})
    harvested = site.harvest(CkanHarvester())
    assert len(set(harvested.records)) == 45
    assert harvested.end.complete
    assert "package_search" in harvested.end.reason


def test_by_name_a_dataset_that_cannot_be_shown_is_left_out(site):
    ckan = portal(site, 5)
    ckan.search = lambda start, rows: (404, b"", {})
    site.answer = lambda path, query: (500, b"", {}) if query.get("id") == "trees-3" else ckan(path, query)
    harvested = site.harvest(CkanHarvester())
    assert len(harvested.records) == 4
    assert any("trees-3" in problem for problem in harvested.problems)
    assert not harvested.end.complete


def test_by_name_it_goes_on_after_the_last_step_that_was_kept(site):
    ckan = portal(site, 45)
    ckan.search = lambda start, rows: (404, b"", {})
    first = site.harvest(CkanHarvester(), most=3)
    rest = site.harvest(CkanHarvester(), state=first.steps[-1].state)
    assert len(first.records) == 40
    assert len(rest.records) == 5


def test_by_name_a_portal_that_knows_no_limit_is_read_once_and_to_its_end(site, monkeypatch):
    monkeypatch.setattr(ckan, "_NAMES", 30)
    made = portal(site, 75)

    def answer(path, query):
        if path.endswith("package_search"):
            return 404, b"", {}
        if path.endswith("package_list"):
            return {"success": True, "result": sorted(each["name"] for each in made.packages)}
        return made(path, query)

    site.answer = answer
    first = site.harvest(CkanHarvester(), most=3)
    rest = site.harvest(CkanHarvester(), state=first.steps[-1].state)
    assert (len(first.records), len(set(first.records + rest.records))) == (40, 75)
    assert len(rest.records) == 35
    assert rest.end.complete


ROBOTS = b"User-agent: *\nDisallow: /dataset/rate/\nDisallow: /api/\nCrawl-Delay: 10\n"


def test_a_portal_whose_robots_txt_forbids_the_api_is_read_from_its_data_json(site):
    site.robots = ROBOTS
    record = {
        "identifier": "a",
        "title": "Trees",
        "accessLevel": "public",
        "distribution": [{"downloadURL": "https://files.example.org/a.csv", "mediaType": "text/csv"}],
    }
    site.answer = lambda path, query: (
        {"conformsTo": "https://project-open-data.cio.gov/v1.1/schema", "dataset": [record]}
        if path == "/data.json"
        else (404, b"", {})
    )
    harvested = site.harvest(CkanHarvester())
    assert harvested.records == ["a"]
    assert harvested.links() == ["https://files.example.org/a.csv"]
    assert not any("/api/" in asked for asked in harvested.asked)
    assert "robots.txt forbids its API" in harvested.end.reason
    assert "[permit] granted" in harvested.end.reason


def test_and_without_one_from_its_catalog_ttl(site):
    site.robots = ROBOTS
    turtle = b"""@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix dct: <http://purl.org/dc/terms/> .
    <#c> a dcat:Catalog ; dcat:dataset <#d> . <#d> a dcat:Dataset ; dct:title "Trees" ."""
    site.answer = lambda path, query: (
        (200, turtle, {"Content-Type": "text/turtle"}) if path == "/catalog.ttl" else (404, b"", {})
    )
    harvested = site.harvest(CkanHarvester())
    assert [dataset.title for dataset in harvested.datasets] == ["Trees"]
    assert "robots.txt forbids its API" in harvested.end.reason


def test_a_portal_that_offers_nothing_is_a_failure_that_says_what_was_tried(site):
    site.robots = ROBOTS
    harvested = site.harvest(CkanHarvester())
    assert harvested.end.outcome in (Outcome.GONE, Outcome.FAILED)
    assert "robots.txt" in harvested.end.reason
    assert "data.json" in harvested.end.reason
    assert "catalog.ttl" in harvested.end.reason


def test_a_page_that_is_too_large_is_asked_for_smaller(site):
    portal(site, 300)
    harvested = site.harvest(CkanHarvester(), max_bytes=200_000)
    assert len(set(harvested.records)) == 300
    assert harvested.end.complete
