"""Socrata, OpenDataSoft, udata, DKAN and ArcGIS Hub, each as it lists its datasets."""

import re

import pytest

from tamias.features.portals.arcgis import ArcGisHarvester
from tamias.features.portals.ckan import CkanHarvester
from tamias.features.portals.dkan import DkanHarvester
from tamias.features.portals.opendatasoft import LISTING as OPENDATASOFT
from tamias.features.portals.opendatasoft import OpenDataSoftHarvester
from tamias.features.portals.socrata import LISTING as SOCRATA
from tamias.features.portals.socrata import SocrataHarvester
from tamias.features.portals.udata import UdataHarvester
from tamias.model.capture import Outcome

NOWHERE = (404, b"", {})


class Portal:
    """Records behind one software's listing; `break_at` spoils a record, `before` happens before a page."""

    def __init__(self, site, count):
        self.site = site
        self.records = [self.record(number) for number in range(count)]
        self.pages = 0
        self.deepest = 10_000
        self.before = lambda page: None
        self.most_a_page = None
        site.answer = self

    def __call__(self, path, query):
        if self.most_a_page is not None:
            sizes = {name: query[name] for name in ("limit", "page_size") if name in query}
            query |= {name: str(min(int(size), self.most_a_page)) for name, size in sizes.items()}
        answer = self.answer(path, query)
        return NOWHERE if answer is None else answer

    def turned(self):
        self.pages += 1
        self.before(self.pages)


class Socrata(Portal):
    harvester = SocrataHarvester
    identifiers = staticmethod(lambda record: record["resource"]["id"])
    dataset = "{root}d/aaaa-0000"

    def record(self, number):
        key = f"aaaa-{number:04d}"
        return {
            "resource": {
                "name": f"Trees {number}",
                "id": key,
                "description": "Where they stand.",
                "attribution": "Parks",
                "attribution_link": "https://parks.example.org/",
                "contact_email": "desk@example.org",
                "type": "dataset",
                "createdAt": "2020-01-01T10:00:00.000Z",
                "updatedAt": "2024-01-01T10:00:00.000Z",
                "data_updated_at": "2023-12-31T10:00:00.000Z",
                "metadata_updated_at": "2024-01-01T10:00:00.000Z",
                "columns_name": ["a", "b"],
                "provenance": "official",
            },
            "classification": {
                "categories": ["environment"],
                "tags": [],
                "domain_category": "Nature",
                "domain_tags": ["tree"],
                "domain_metadata": [{"key": "Dataset-Information_Update-Frequency", "value": "Annually"}],
            },
            "metadata": {"domain": "data.example.org", "license": "Public Domain"},
            "permalink": f"{self.site.root}d/{key}",
            "link": f"{self.site.root}Nature/Trees/{key}",
            "owner": {"id": "zzzz-0001", "user_type": "interactive", "display_name": "Parks"},
        }

    def answer(self, path, query):
        if path != "/api/catalog/v1" or query["domains"] != self.site.root.split("/")[2]:
            return None
        self.turned()
        records = sorted(self.records, key=self.identifiers)
        size = int(query["limit"])
        if "scroll_id" in query:
            later = [each for each in records if self.identifiers(each) > query["scroll_id"]]
            return {"results": later[:size], "resultSetSize": len(records)}
        start = int(query["offset"])
        if start + size > self.deepest:
            return 400, {"error": "offset + limit must not exceed 10000"}, {}
        return {"results": records[start : start + size], "resultSetSize": len(records), "timings": {}}


class OpenDataSoft(Portal):
    harvester = OpenDataSoftHarvester
    identifiers = staticmethod(lambda record: record["dataset_id"])
    dataset = "{root}explore/dataset/trees-0000/"

    def record(self, number):
        return {
            "dataset_id": f"trees-{number:04d}",
            "dataset_uid": f"da_{number}",
            "has_records": True,
            "data_visible": True,
            "features": ["analyze", "geo"],
            "attachments": [{"mimetype": "application/pdf", "url": "odsfile://x.pdf", "title": "About"}],
            "fields": [{"name": "a", "type": "text"}],
            "metas": {
                "default": {
                    "title": f"Trees {number}",
                    "description": "<p>Where they stand.</p>",
                    "theme": ["Nature"],
                    "keyword": ["tree"],
                    "license": "CC BY 4.0",
                    "license_url": "https://creativecommons.org/licenses/by/4.0/",
                    "language": "fr",
                    "modified": f"2023-01-{number % 28 + 1:02d}T10:00:00+00:00",
                    "metadata_processed": "2024-01-01T10:00:00.123000+00:00",
                    "publisher": "Parks",
                    "records_count": 10,
                    "territory": ["Vienna"],
                },
                "dcat": {
                    "created": "2020-01-01",
                    "contact_name": "Desk",
                    "contact_email": "desk@example.org",
                    "accrualperiodicity": "annual",
                    "temporal_coverage_start": "2019-01-01",
                },
            },
        }

    def answer(self, path, query):
        if path != "/api/explore/v2.1/catalog/datasets":
            return None
        self.turned()
        assert query["order_by"] == "modified asc, dataset_id asc"
        records = sorted(self.records, key=self.order)
        if found := re.fullmatch(r"modified >= date'(.*)'", query.get("where", "")):
            records = [each for each in records if each["metas"]["default"]["modified"] >= found[1]]
        start, size = int(query["offset"]), int(query["limit"])
        if start + size > self.deepest or size > 100:
            return 400, {"error_code": "InvalidRESTParameterError"}, {}
        return {"total_count": len(records), "results": records[start : start + size]}

    @staticmethod
    def order(record):
        return record["metas"]["default"]["modified"], record["dataset_id"]


class Udata(Portal):
    harvester = UdataHarvester
    identifiers = staticmethod(lambda record: record["id"])
    dataset = "{root}datasets/536990000000000000000000/"

    def record(self, number):
        key = f"53699{number:019d}"
        return {
            "id": key,
            "slug": f"arbres-{number}",
            "title": f"Trees {number}",
            "description": "Where they stand.",
            "created_at": f"2020-01-01T10:00:{number % 60:02d}.000000+00:00",
            "last_modified": "2024-01-01T10:00:00.000000+00:00",
            "last_update": "2023-12-31T10:00:00.000000+00:00",
            "frequency": "annual",
            "license": "lov2",
            "page": f"{self.site.root}fr/datasets/arbres-{number}/",
            "uri": f"{self.site.root}api/1/datasets/{key}/",
            "tags": ["tree"],
            "organization": {
                "id": "534fff",
                "name": "Parks",
                "slug": "parks",
                "page": f"{self.site.root}parks/",
            },
            "owner": None,
            "spatial": {"geom": None, "zones": ["country:fr"], "granularity": "other"},
            "temporal_coverage": {"start": "2019-01-01", "end": "2019-12-31"},
            "contact_points": [{"name": "Desk", "email": "desk@example.org", "role": "contact"}],
            "resources": [
                {
                    "id": f"r{number}",
                    "title": "Table",
                    "url": f"https://files.example.org/{number}.csv",
                    "format": "csv",
                    "mime": "text/csv",
                    "filesize": 12,
                    "filetype": "file",
                    "type": "main",
                    "checksum": {"type": "sha1", "value": "0" * 40},
                    "created_at": "2020-01-01T10:00:00+00:00",
                    "last_modified": "2020-01-02T10:00:00+00:00",
                }
            ],
        }

    def answer(self, path, query):
        if path == "/api/1/site/":
            return {"id": "x", "title": "Town data", "version": "9.0"}
        if path != "/api/1/datasets/":
            return None
        self.turned()
        page, size = int(query["page"]), int(query["page_size"])
        start = (page - 1) * size
        more = (
            f"{self.site.root}api/1/datasets/?page={page + 1}" if start + size < len(self.records) else None
        )
        return {
            "data": self.records[start : start + size],
            "next_page": more,
            "page": page,
            "page_size": size,
            "total": len(self.records),
        }


class Dkan(Portal):
    harvester = DkanHarvester
    identifiers = staticmethod(lambda record: record["identifier"])
    dataset = "{root}dataset/0000-uuid"

    def record(self, number):
        return {
            "@type": "dcat:Dataset",
            "identifier": f"{number:04d}-uuid",
            "title": f"Trees {number}",
            "description": "Where they stand.",
            "accessLevel": "public",
            "accrualPeriodicity": "R/P1Y",
            "modified": "2024-01-01",
            "%modified": "2024-01-02T10:00:00+00:00",
            "keyword": ["tree"],
            "theme": ["Nature"],
            "publisher": {"@type": "org:Organization", "name": "Parks"},
            "contactPoint": {"@type": "vcard:Contact", "fn": "Desk", "hasEmail": "mailto:desk@example.org"},
            "distribution": [
                {
                    "@type": "dcat:Distribution",
                    "downloadURL": f"https://files.example.org/{number}.csv",
                    "mediaType": "text/csv",
                    "format": "csv",
                    "title": "Table",
                }
            ],
        }

    def answer(self, path, query):
        if path == "/api/1/metastore/schemas/dataset/items":
            self.turned()
            return self.records
        return None


class ArcGisFeed(Dkan):
    harvester = ArcGisHarvester
    dataset = "{root}#0000-uuid/dataset"

    def answer(self, path, query):
        if path == "/api/feed/dcat-us/1.1.json":
            self.turned()
            return {"conformsTo": "https://project-open-data.cio.gov/v1.1/schema", "dataset": self.records}
        return None


class ArcGisSearch(Portal):
    harvester = ArcGisHarvester
    identifiers = staticmethod(lambda record: record["id"])
    dataset = "{root}datasets/0000ffff_0"

    def record(self, number):
        return {
            "id": f"{number:04d}ffff_0",
            "type": "Feature",
            "geometry": {"type": "Polygon", "coordinates": [[[1, 2], [3, 2], [3, 4], [1, 2]]]},
            "properties": {
                "title": f"Trees {number}",
                "description": "<p>Where they stand.</p>",
                "tags": ["tree"],
                "categories": ["/Categories/Nature"],
                "created": 1577872800000,
                "modified": 1704103200000,
                "owner": "parks_gis",
                "source": "Parks",
                "type": "Feature Layer",
                "url": "https://services.example.org/rest/services/Trees/FeatureServer/0",
                "licenseInfo": "Free of charge",
                "access": "public",
                "culture": "en-us",
            },
        }

    def answer(self, path, query):
        if path != "/api/search/v1/collections/dataset/items":
            return None
        self.turned()
        start, size = int(query["startindex"]) - 1, int(query["limit"])
        records = list(reversed(self.records))
        return {
            "type": "FeatureCollection",
            "features": records[start : start + size],
            "numberMatched": len(records),
            "numberReturned": size,
        }


ALL = [Socrata, OpenDataSoft, Udata, Dkan, ArcGisFeed, ArcGisSearch]
PAGED = [Socrata, OpenDataSoft, Udata, ArcGisSearch]


@pytest.mark.parametrize("portal", ALL)
def test_every_dataset_comes_once(site, portal):
    made = portal(site, 1230)
    harvested = site.harvest(portal.harvester())
    assert len(harvested.records) == 1230
    assert set(harvested.records) == {made.identifiers(record) for record in made.records}
    assert harvested.end.outcome is Outcome.OK
    assert harvested.end.complete
    assert harvested.end.reason.startswith("1,230 datasets of 1,230 counted, in ")


@pytest.mark.parametrize("portal", ALL)
def test_it_becomes_dcat(site, portal):
    portal(site, 2)
    harvested = site.harvest(portal.harvester())
    dataset = portal.dataset.format(root=site.root)
    assert harvested.says(f"<{site.root}> a dcat:Catalog; dcat:dataset <{dataset}>")
    assert harvested.says(f"<{dataset}> dct:title ?t FILTER(STR(?t) = 'Trees 0')")
    assert harvested.says(f"<{dataset}> dcat:keyword ?k FILTER(STR(?k) = 'tree')")
    assert harvested.says(f"<{dataset}> dct:publisher [ a foaf:Agent; foaf:name 'Parks' ]")
    assert harvested.says(f"<{dataset}> dcat:distribution [ a dcat:Distribution; dcat:downloadURL ?u ]")
    assert harvested.says(f"?r foaf:primaryTopic <{dataset}>; dct:modified ?m")


@pytest.mark.parametrize("portal", ALL)
def test_its_dcat_has_the_published_shape(site, suites, portal):
    import pyshacl
    import rdflib
    from pyoxigraph import RdfFormat, serialize
    from rdflib.namespace import SH

    portal(site, 2)
    [path] = suites("dcat-ap-3.0.1-shapes").rglob("dcat-ap-SHACL.ttl")
    rules = rdflib.Graph().parse(path)
    for shape, part in list(rules.subject_objects(SH.property)):
        if rules.value(part, SH.path) is None:  # one by mistake
            rules.remove((shape, SH.property, part))
    quads = site.harvest(portal.harvester()).quads
    data = rdflib.Graph().parse(serialize(quads, format=RdfFormat.N_QUADS), format="nt")
    conforms, _, told = pyshacl.validate(data, shacl_graph=rules)
    assert conforms, told


@pytest.mark.parametrize("portal", ALL)
def test_one_bad_record_stops_nothing_but_itself(site, portal):
    made = portal(site, 20)
    records = list(made.records)
    made.records = [*records[:5], {"title": None}, *records[5:]]
    made.identifiers = staticmethod(lambda record: portal.identifiers(record) if len(record) > 1 else "")
    made.order = lambda record: portal.order(record) if len(record) > 1 else ("", "")
    if portal is Socrata:
        made.identifiers = lambda record: record.get("resource", {}).get("id", "")
    harvested = site.harvest(portal.harvester())
    assert len(harvested.records) == 20
    assert any(site.root in problem and "record" in problem for problem in harvested.problems)
    assert not harvested.end.complete


@pytest.mark.parametrize("portal", PAGED)
def test_a_harvest_goes_on_after_the_last_step_that_was_kept(site, portal):
    portal(site, 1230)
    first = site.harvest(portal.harvester(), most=4)
    rest = site.harvest(portal.harvester(), state=first.steps[-1].state)
    assert 0 < len(first.records) < 1230
    assert len({*first.records, *rest.records}) == len(first.records) + len(rest.records) == 1230
    assert rest.end.complete


@pytest.mark.parametrize("portal", ALL)
def test_broken_json_is_a_failure_that_names_the_page(site, portal):
    made = portal(site, 3)
    site.answer = lambda path, query: b'{"results": [' if made(path, query) != NOWHERE else NOWHERE
    harvested = site.harvest(portal.harvester())
    assert harvested.end.outcome is not Outcome.OK
    assert site.root in harvested.end.reason
    assert not harvested.end.complete


@pytest.mark.parametrize("portal", PAGED)
def test_a_page_that_breaks_now_and_then_is_asked_for_again(site, portal):
    made = portal(site, 900)
    site.answer = lambda path, query: (
        (500, b"", {}) if made(path, query) and made.pages == 2 else made(path, query)
    )
    harvested = site.harvest(portal.harvester())
    assert len(set(harvested.records)) == 900
    assert harvested.end.complete


@pytest.mark.parametrize("portal", PAGED)
def test_a_portal_that_asks_us_to_wait_is_left_with_its_word(site, portal):
    made = portal(site, 350)
    made.most_a_page = 100
    answers = made.answer

    def tired(path, query):
        answer = answers(path, query)
        return (429, b"", {"Retry-After": "7"}) if answer and made.pages == 3 else answer

    made.answer = tired
    harvested = site.harvest(portal.harvester())
    assert harvested.end.retry_after_ms == 7_000
    rest = site.harvest(portal.harvester(), state=harvested.steps[-1].state)
    assert len({*harvested.records, *rest.records}) == 350


@pytest.mark.parametrize("portal", PAGED)
def test_a_portal_that_gives_smaller_pages_than_asked_for_is_read_to_its_end(site, portal):
    made = portal(site, 131)
    made.most_a_page = 12
    harvested = site.harvest(portal.harvester())
    assert sorted(harvested.records) == sorted(made.identifiers(record) for record in made.records)
    assert harvested.end.complete
    assert len(site.requests) == len(set(site.requests))


@pytest.mark.parametrize("portal", PAGED)
def test_records_removed_while_it_is_read_hide_no_others(site, portal):
    made = portal(site, 2500)
    staying = {made.identifiers(record) for record in made.records[40:]}

    def remove(page):
        if page == 2:
            del made.records[:40]

    made.before = remove
    harvested = site.harvest(portal.harvester())
    assert staying <= set(harvested.records)
    assert harvested.end.complete


@pytest.mark.parametrize("portal", [Socrata, OpenDataSoft])
def test_a_listing_goes_deeper_than_its_offset_may(site, portal, monkeypatch):
    made = portal(site, 2850)
    made.deepest = 1200
    listing = {Socrata: SOCRATA, OpenDataSoft: OPENDATASOFT}[portal]
    monkeypatch.setattr(listing, "deepest", 1200)
    harvested = site.harvest(portal.harvester())
    assert len(set(harvested.records)) == 2850
    assert harvested.end.complete


def test_the_exports_of_socrata_are_links(site):
    Socrata(site, 1)
    rows = f"{site.root}api/views/aaaa-0000/rows"
    assert site.harvest(SocrataHarvester()).links() == [
        f"{rows}.{ending}?accessType=DOWNLOAD" for ending in ("csv", "json", "rdf")
    ]


def test_the_exports_of_opendatasoft_are_links(site):
    OpenDataSoft(site, 1)
    exports = f"{site.root}api/explore/v2.1/catalog/datasets/trees-0000/exports/"
    links = site.harvest(OpenDataSoftHarvester()).links()
    assert links == [exports + ending for ending in ("csv", "json", "turtle", "geojson")]


def test_the_page_of_a_dataset_is_no_link(site):
    Udata(site, 1)
    assert site.harvest(UdataHarvester()).links() == ["https://files.example.org/0.csv"]


def test_dkan_without_a_metastore_is_read_from_its_data_json(site):
    made = Dkan(site, 4)
    site.answer = lambda path, query: {"dataset": made.records} if path == "/data.json" else NOWHERE
    harvested = site.harvest(DkanHarvester())
    assert len(harvested.records) == 4
    assert "404" in harvested.end.reason


def test_a_hub_whose_feed_is_broken_is_searched(site):
    made = ArcGisSearch(site, 150)
    site.answer = lambda path, query: b"{" if path.startswith("/api/feed/") else made(path, query)
    harvested = site.harvest(ArcGisHarvester())
    assert len(set(harvested.records)) == 150
    assert harvested.end.complete


def test_a_harvest_with_a_state_of_another_make_begins_anew(site):
    Udata(site, 3)
    assert len(site.harvest(UdataHarvester(), state=b"garbage").records) == 3


def test_a_harvester_of_the_wrong_kind_fails_and_says_so(site):
    Udata(site, 3)
    harvested = site.harvest(CkanHarvester())
    assert harvested.end.outcome is not Outcome.OK
    assert harvested.datasets == []
