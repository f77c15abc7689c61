"""What machines are told: datasets and catalogue as RDF, JSON-LD, VoID, sitemap, robots.txt, linksets."""

import io
import json
import re

import httpx
import pytest
from pyoxigraph import NamedNode, RdfFormat, Store, parse

import tamias
from tamias.analyse.sitemaps.urlset import SitemapAnalyser
from tamias.model.document import Document
from tamias.model.finding import Problem
from tamias.model.resource import resource_id
from tamias.model.site import SemanticDatasets
from tamias.model.url import url_key
from tamias.model.vocabulary import RDF_TYPE

from .conftest import Filled

DCAT = "http://www.w3.org/ns/dcat#"
DCT = "http://purl.org/dc/terms/"
HYDRA = "http://www.w3.org/ns/hydra/core#"
NUMBERS = resource_id(url_key("http://data.example/a.csv"))
FORMS = {
    "ttl": ("text/turtle", RdfFormat.TURTLE),
    "jsonld": ("application/ld+json", RdfFormat.JSON_LD),
    "nt": ("application/n-triples", RdfFormat.N_TRIPLES),
    "rdf": ("application/rdf+xml", RdfFormat.RDF_XML),
}


def store_of(answer, form=RdfFormat.TURTLE):
    store = Store()
    store.load(answer.content, format=form)
    return store


def quads_of(answer, form=RdfFormat.TURTLE):
    """As they stand: a store would make all whole numbers of one type."""
    return list(parse(answer.content, format=form))


def values(store, subject, predicate):
    found = store.quads_for_pattern(NamedNode(subject), NamedNode(predicate), None, None)
    return [quad.object.value for quad in found]


@pytest.mark.parametrize("ending", FORMS)
def test_the_iri_of_a_dataset_gives_the_form_of_rdf_that_accept_names(client, served, ending):
    media_type, form = FORMS[ending]
    answer = client.get(f"/dataset/{NUMBERS}", headers={"Accept": f"{media_type}, text/html;q=0.5"})
    told = values(store_of(answer, form), f"{served.address}/dataset/{NUMBERS}", DCT + "title")
    assert (answer.headers["content-type"].partition(";")[0], told) == (media_type, ["Numbers"])


@pytest.mark.parametrize("accept", ["text/html,application/xhtml+xml,*/*;q=0.8", "*/*", ""])
def test_the_iri_of_a_dataset_is_a_page_for_browsers(client, accept):
    answer = client.get(f"/dataset/{NUMBERS}", headers={"Accept": accept})
    assert (answer.headers["content-type"], "Accept" in answer.headers["vary"]) == (
        "text/html; charset=utf-8", True,
    )  # fmt: skip


def test_the_page_of_a_dataset_links_to_its_forms_and_its_linkset(client):
    links = client.get(f"/dataset/{NUMBERS}", headers={"Accept": "text/html"}).headers["link"]
    targets = re.findall(r"<([^>]+)>", links)
    ours = [target for target in targets if not target.startswith("https://schema.org/")]
    assert all(client.get(target).status_code == 200 for target in ours)
    assert len(ours) == 8


@pytest.mark.parametrize("path", [f"/dataset/{NUMBERS}", f"/dataset/{NUMBERS}/2"])
def test_a_page_names_its_type_and_the_iri_to_cite_it_by(client, served, path):
    links = client.get(path, headers={"Accept": "text/html"}).headers["link"]
    newest = f"{served.address}/api/v1/get/file/id/{NUMBERS}_{path[-1] if path[-2] == '/' else 3}"
    wanted = {
        "cite-as": {f"{served.address}{path}"},
        "type": {"https://schema.org/AboutPage", "https://schema.org/Dataset"},
        "item": {newest},
    }
    for relation, targets in wanted.items():
        assert set(re.findall(f'<([^>]+)>; rel="{relation}"', links)) == targets
    assert f'<{newest}>; rel="item"; type="text/csv"' in links


def test_a_form_of_rdf_has_an_address_of_its_own(client):
    told = [client.get(f"/dataset/{NUMBERS}.{ending}") for ending in FORMS]
    assert [each.headers["content-type"].partition(";")[0] for each in told] == [
        kind for kind, _ in FORMS.values()
    ]


def test_the_iri_of_a_version_describes_that_version_only(client, served):
    answer = client.get(f"/dataset/{NUMBERS}/2", headers={"Accept": "text/turtle"})
    store, iri = store_of(answer), f"{served.address}/dataset/{NUMBERS}/2"
    before = values(store, iri, DCAT + "previousVersion")
    assert (before, values(store, f"{served.address}/dataset/{NUMBERS}/3", DCT + "title")) == (
        [f"{served.address}/dataset/{NUMBERS}/1"], [],
    )  # fmt: skip


def test_the_iri_of_a_version_is_a_page_for_browsers(client):
    answer = client.get(f"/dataset/{NUMBERS}/2", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "Accept" in answer.headers["vary"]


def test_the_page_and_the_statements_of_a_version_link_to_its_forms_its_file_and_its_dataset(client, served):
    links = [
        client.get(f"/dataset/{NUMBERS}/2", headers={"Accept": accept}).headers["link"]
        for accept in ("text/html", "text/turtle")
    ]
    assert links[1] == f'<{served.address}/dataset/{NUMBERS}/2>; rel="describes", {links[0]}'
    suffixed = client.get(f"/dataset/{NUMBERS}/2.nt").headers["link"]
    assert suffixed == links[1]
    file = client.get(f"/api/v1/get/file/id/{NUMBERS}_2").headers["link"]
    assert file == f'<{served.address}/dataset/{NUMBERS}/2>; rel="collection"'
    for way in (f"/dataset/{NUMBERS}/2.ttl", f"/dataset/{NUMBERS}", f"/api/v1/get/file/id/{NUMBERS}_2"):
        assert f"<{served.address}{way}>; rel=" in links[0]


@pytest.mark.parametrize("path", [f"/dataset/{NUMBERS}/99", "/dataset/none.ttl", f"/dataset/{'0' * 24}.nt"])
def test_what_is_not_there_is_not_found_as_rdf_either(client, path):
    assert client.get(path, headers={"Accept": "text/turtle"}).status_code == 404


def test_statements_that_a_client_has_are_not_sent_again(client):
    tag = client.get(f"/dataset/{NUMBERS}.nt").headers["etag"]
    assert client.get(f"/dataset/{NUMBERS}.nt", headers={"If-None-Match": tag}).status_code == 304


def test_the_catalogue_breaks_no_rule_of_dcat_ap(client, violations):
    assert violations(quads_of(client.get("/catalog.ttl"))) == []


def test_the_shapes_find_fault_with_a_catalogue_that_lacks_a_title(client, violations):
    quads = [quad for quad in quads_of(client.get("/catalog.ttl")) if quad.predicate.value != DCT + "title"]
    assert any("title" in line for line in violations(quads))


def test_a_dataset_with_its_versions_breaks_no_rule_of_dcat_ap(client, served, violations):
    # Beside DCAT there are the words of the Open Dataset Archive, about the address and about the files.
    ours = [
        quad
        for quad in quads_of(client.get(f"/dataset/{NUMBERS}.ttl"))
        if quad.subject.value.startswith(f"{served.address}/dataset/") or quad.predicate == RDF_TYPE
    ]
    assert violations(ours) == []


@pytest.mark.parametrize("ending", FORMS)
def test_the_catalogue_says_the_same_in_every_form(client, ending):
    names = {
        form: {
            quad.object.value
            for quad in store_of(client.get(f"/catalog.{form}"), FORMS[form][1]).quads_for_pattern(
                None, NamedNode(DCAT + "dataset"), None, None
            )
        }
        for form in ("ttl", ending)
    }
    assert names["ttl"] == names[ending]
    assert len(names["ttl"]) >= 3


def test_a_catalogue_since_a_time_has_only_what_changed_then(client, filled):
    late = filled.put("http://late.example/new.csv", b"x\n1\n", start=1_900_000_000_000)
    store = store_of(client.get("/catalog.ttl?modified_since=2029-12-31"))
    found = [quad.object.value for quad in store.quads_for_pattern(None, NamedNode(DCAT + "dataset"), None)]
    assert [name.rpartition("/")[2] for name in found] == [late]


@pytest.mark.parametrize("asked", ["page=0", "page=x", "page=99999", "modified_since=yesterday"])
def test_a_page_that_cannot_be_is_refused(client, asked):
    answer = client.get(f"/catalog.ttl?{asked}")
    assert (answer.status_code in (400, 404), answer.headers["content-type"]) == (
        True, "application/problem+json",
    )  # fmt: skip


def test_the_iri_of_the_catalogue_leads_to_its_first_page(client):
    answer = client.get("/catalogue", headers={"Accept": "application/ld+json"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/catalog.jsonld")


def test_void_names_the_endpoint_and_an_example_that_is_there(client, served):
    store = store_of(client.get("/.well-known/void"))
    node = f"{served.address}/.well-known/void#archive"
    example = values(store, node, "http://rdfs.org/ns/void#exampleResource")[0]
    endpoint = values(store, node, "http://rdfs.org/ns/void#sparqlEndpoint")
    status = client.get(example, headers={"Accept": "text/turtle"}).status_code
    assert (endpoint, status) == ([f"{served.address}/sparql"], 200)


def test_our_own_reader_of_semantic_sitemaps_reads_ours(client, served):
    place = f"{served.address}/sitemap.xml"
    stream = io.BytesIO(client.get("/sitemap.xml").content)
    document = Document(url=place, stream=stream, media_type="application/xml")
    findings = list(SitemapAnalyser().analyse(document))
    problems = [finding for finding in findings if isinstance(finding, Problem)]
    (dataset,) = [
        dataset
        for finding in findings
        if isinstance(finding, SemanticDatasets)
        for dataset in finding.datasets
    ]
    assert ([each.url for each in dataset.endpoints], problems) == ([f"{served.address}/sparql"], [])


def test_the_sitemap_names_the_page_of_every_dataset(client, served):
    page = client.get("/sitemap.xml").text
    assert f"<loc>{served.address}/dataset/{NUMBERS}</loc><lastmod>2026-01-03T00:00:00.000Z</lastmod>" in page


def test_a_sitemap_of_too_many_places_is_an_index_of_parts(starting, tmp_path):
    many = Filled(tmp_path / "many")
    many.run("ALTER TABLE resource DISABLE TRIGGER USER")
    many.run(
        "INSERT INTO resource (resource, url, host, added_at)"
        " SELECT lpad(to_hex(n), 24, '0'), 'http://many.example/' || n, 'many.example', 0"
        " FROM generate_series(1, 50000) AS n"
    )
    many.run("INSERT INTO tally VALUES ('host', 'many.example', 50000, 0)")
    many.run("ALTER TABLE resource ENABLE TRIGGER USER")
    many.close()
    running = starting(many.data, "--no-crawl", TAMIAS_SECRET="x" * 20)
    parts = places(f"{running.address}/sitemap.xml")
    found = [place for part in parts for place in places(part) if "/dataset/" in place]
    assert parts == [f"{running.address}/sitemap/{number}.xml" for number in (1, 2)]
    assert (len(found), len(set(found))) == (50_000, 50_000)


def places(url):
    return re.findall("<loc>([^<]+)</loc>", httpx.get(url, timeout=60).text)


def test_robots_txt_names_the_sitemap(client, served):
    lines = client.get("/robots.txt").text.splitlines()
    assert f"Sitemap: {served.address}/sitemap.xml" in lines


def test_a_linkset_leads_to_every_version_and_to_nothing_that_is_not_there(client, served):
    answer = client.get(f"/dataset/{NUMBERS}/linkset")
    told = answer.json()["linkset"]
    ours = {
        target["href"]
        for context in told
        for name, targets in context.items()
        if name != "anchor"
        for target in targets
        if target["href"].startswith(served.address)
    }
    broken = {each for each in ours if client.get(each).status_code not in (200, 302, 303)}
    versions = [f"{served.address}/dataset/{NUMBERS}/{number}" for number in (1, 2, 3)]
    assert [context["anchor"] for context in told[1:]] == versions
    assert broken == set()


def test_our_own_reader_of_linksets_reads_ours(client, served):
    answer = client.get(f"/dataset/{NUMBERS}/linkset")
    place = f"{served.address}/dataset/{NUMBERS}/linkset"
    reading = tamias.read(answer.content, base=place, media_type="application/linkset+json")
    assert f"{served.address}/dataset/{NUMBERS}.ttl" in set(reading.links)


def embedded(client, named=NUMBERS):
    page = client.get(f"/dataset/{named}", headers={"Accept": "text/html"}).text
    found = re.search(r'<script type="application/ld\+json">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def test_a_dataset_page_carries_what_croissant_requires(client, served):
    told = embedded(client)
    assert told["@type"] == "sc:Dataset"
    assert told["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    needed = ("@context", "name", "description", "url", "creator", "datePublished", "version", "distribution")
    assert [name for name in needed if not told.get(name)] == []


def test_the_file_in_a_dataset_page_is_the_newest_version_with_its_digest(client):
    (file,) = embedded(client)["distribution"]
    answer = client.get(file["contentUrl"])
    assert (answer.headers["etag"].strip('"'), answer.content) == (file["sha256"], b"a,b\n1,4\n5,6\n")


def test_a_search_engine_finds_a_dataset_of_schema_org_in_the_page(client, served):
    from tamias.features.dcat.datasets.schemaorg import datasets_in

    page = client.get(f"/dataset/{NUMBERS}", headers={"Accept": "text/html"})
    reading = tamias.read(page.content, base=f"{served.address}/dataset/{NUMBERS}", media_type="text/html")
    assert [dataset.title for dataset in datasets_in(reading.quads)] == ["Numbers"]


def test_a_title_cannot_leave_the_script_element(client, filled):
    title = "</script><script>alert(1)</script>"
    named = filled.put("http://evil.example/a.csv", b"a\n1\n", title=title)
    assert embedded(client, named)["name"] == title
