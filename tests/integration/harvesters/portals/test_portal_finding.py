"""A portal of unknown make is recognised in six requests at the most, and handed over to its harvester."""

import pytest

from tamias.features.portals.portal import PortalHarvester
from tamias.model.capture import Outcome

APIS = {
    "ckan": ("/api/3/action/status_show", {"success": True, "result": {"ckan_version": "2.10"}}),
    "opendatasoft": ("/api/explore/v2.1/catalog/datasets", {"total_count": 1, "results": []}),
    "socrata": ("/api/catalog/v1", {"results": [], "resultSetSize": 0, "timings": {}}),
    "udata": ("/api/1/datasets/", {"data": [], "page": 1, "page_size": 1, "total": 0}),
    "arcgis": ("/api/search/v1/collections", {"collections": []}),
    "dkan": ("/api/1/metastore/schemas", {"catalog": {}, "dataset": {}}),
    "dataverse": ("/api/info/version", {"status": "OK", "data": {"version": "6.2"}}),
    "zenodo": ("/api/records", {"hits": {"hits": [], "total": 0}}),
}
WORDS = {
    "dkan": "<a href='/api/1/metastore/schemas/dataset/items'>DKAN</a>",
    "dataverse": "<div class='dataverse'></div>",
    "zenodo": "<script src='/static/invenio.js'></script>",
}


def page(body):
    return 200, f"<html><head>{body}</head></html>".encode(), {"Content-Type": "text/html"}


@pytest.mark.parametrize("kind", APIS)
def test_an_api_that_answers_tells_the_kind(site, kind):
    where, answer = APIS[kind]
    site.answer = lambda path, query: (
        answer if path == where else page(WORDS.get(kind, "")) if path == "/" else (404, b"", {})
    )
    harvested = site.harvest(PortalHarvester())
    assert harvested.links(kind) == [site.root]
    assert harvested.end.outcome is Outcome.OK
    assert len(site.requests) <= 6


@pytest.mark.parametrize(
    ("generator", "kind"),
    [
        ("ckan 2.10.4", "ckan"),
        ("Opendatasoft", "opendatasoft"),
        ("Drupal 9 with DKAN", "dkan"),
        ("udata", "udata"),
    ],
)
def test_a_page_that_names_its_generator_needs_no_other_request(site, generator, kind):
    site.answer = lambda path, query: page(f'<meta name="generator" content="{generator}"/>')
    harvested = site.harvest(PortalHarvester())
    assert harvested.links(kind) == [site.root]
    assert site.requests == ["/"]


def test_words_of_the_page_are_tried_first(site):
    site.answer = lambda path, query: (
        APIS["arcgis"][1] if path == APIS["arcgis"][0] else page("<link href='https://hub.arcgis.com/a.css'>")
    )
    harvested = site.harvest(PortalHarvester())
    assert harvested.links("arcgis") == [site.root]
    assert len(site.requests) == 2


def test_a_portal_is_recognised_though_robots_txt_forbids_its_api(site):
    site.robots = b"User-agent: *\nDisallow: /api/\n"
    site.answer = lambda path, query: page('<meta name="generator" content="ckan 2.9.5">')
    assert site.harvest(PortalHarvester()).links("ckan") == [site.root]


@pytest.mark.parametrize(
    ("kind", "path", "body"),
    [
        ("data-json", "data.json", b'{"conformsTo": "https://example.org/v1.1/schema", "dataset": []}'),
        ("dcat", "feed.rdf", b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
            <c:Catalog xmlns:c="http://www.w3.org/ns/dcat#" rdf:about="http://a.example/"/></rdf:RDF>"""),
        ("oai-pmh", "oai?verb=Identify", b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"></OAI-PMH>'),
        ("stac", "stac/catalog.json", b'{"stac_version": "1.0.0", "type": "Catalog", "links": []}'),
    ],
)  # fmt: skip
def test_a_catalogue_that_is_named_directly_is_requested_first(site, kind, path, body):
    types = {"dcat": "application/rdf+xml", "oai-pmh": "text/xml"}
    headers = {"Content-Type": types.get(kind, "application/json")}
    site.answer = lambda where, query: (
        (200, body, headers) if where == f"/{path.partition('?')[0]}" else page("")
    )
    harvested = site.harvest(PortalHarvester(), path)
    assert harvested.links(kind) == [site.root + path]
    assert site.requests == [f"/{path}"]


def test_an_address_that_is_gone_leads_to_the_front_page_of_its_portal(site):
    site.answer = lambda path, query: (
        page('<meta name="generator" content="ckan 2.10"/>') if path == "/" else (404, b"", {})
    )
    harvested = site.harvest(PortalHarvester(), "dataset/trees")
    assert harvested.links("ckan") == [site.root]
    assert site.requests == ["/dataset/trees", "/"]


def test_a_portal_that_is_down_is_asked_later(site):
    site.answer = lambda path, query: (503, b"", {})
    harvested = site.harvest(PortalHarvester(), "data.json")
    assert harvested.end.retry
    assert harvested.end.reason == f"the portal at {site.root}data.json: 503 Service Unavailable"
    assert len(site.requests) == 1


def test_what_fits_nothing_is_a_failure_that_lists_what_was_tried(site):
    site.answer = lambda path, query: page("Hello")
    harvested = site.harvest(PortalHarvester())
    assert harvested.end.outcome is Outcome.FAILED
    assert len(site.requests) == 6
    assert all(request.rstrip("?") in harvested.end.reason for request in site.requests)
    assert harvested.links() == []


@pytest.mark.parametrize("body", [b"[]", b"{", b"null", b'{"results": 5}', b"[" * 100_000])
def test_an_answer_of_another_shape_is_no_sign(site, body):
    site.answer = lambda path, query: body
    assert site.harvest(PortalHarvester()).end.outcome is Outcome.FAILED
