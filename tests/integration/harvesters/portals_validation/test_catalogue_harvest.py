"""DCAT catalogues: every syntax, both forms of paging, and pages that lead nowhere."""

import pytest
from pyoxigraph import BlankNode, RdfFormat, parse, serialize

from tamias.features.portals.dcat import CatalogueHarvester
from tamias.model.capture import Outcome
from tests.messages import unsaid

PREFIXES = """@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix dct: <http://purl.org/dc/terms/> .
@prefix hydra: <http://www.w3.org/ns/hydra/core#> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
"""
SYNTAXES = {
    "text/turtle": RdfFormat.TURTLE,
    "application/rdf+xml": RdfFormat.RDF_XML,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/trig": RdfFormat.TRIG,
}


def dataset(number):
    return f"""<https://data.example.org/> dcat:dataset <https://data.example.org/{number}> .
<https://data.example.org/{number}> a dcat:Dataset ; dct:title "Set {number}"@en ; dct:publisher _:p ;
  dcat:distribution [ a dcat:Distribution ; dcat:accessURL <https://data.example.org/{number}/about> ;
    dcat:downloadURL <https://data.example.org/{number}.csv> ] .
_:p a foaf:Agent ; foaf:name "Office {number}" .
"""


class Catalogue:
    """Pages of two datasets each, in one of the two forms of Hydra."""

    def __init__(self, root):
        self.root = root
        self.pages = 3
        self.next = "hydra:next"
        self.view = "hydra:PartialCollectionView"
        self.media_type = "text/turtle"
        self.extra = ""
        self.following = lambda number: number + 1 if number < self.pages else None
        self.served = lambda number: number

    def __call__(self, path, query):
        if not path.startswith("/catalog"):
            return None
        number = int(query.get("page", 1))
        return 200, {"Content-Type": self.media_type}, self.page(number)

    def page(self, number):
        shown = self.served(number)
        text = PREFIXES + dataset(2 * shown - 1) + dataset(2 * shown) + self.extra
        page = f"{self.root}catalog.ttl?page="
        text += f"<{page}{number}> a {self.view} ."
        if following := self.following(number):
            text += f"<{page}{number}> {self.next} <{page}{following}> ."
        quads = parse(text.encode(), format=RdfFormat.TURTLE, base_iri=self.root)
        return serialize(list(quads), format=SYNTAXES[self.media_type]) or b""


@pytest.fixture
def catalogue(portal):
    portal.serve = Catalogue(portal.root)
    return portal.serve


FORMS = [("hydra:next", "hydra:PartialCollectionView"), ("hydra:nextPage", "hydra:PagedCollection")]


@pytest.mark.parametrize(("predicate", "view"), FORMS)
def test_all_pages_are_read_in_either_form_of_paging(catalogue, harvest, predicate, view):
    catalogue.next, catalogue.view = predicate, view
    assert harvest(CatalogueHarvester(), "/catalog.ttl").titles == [f"Set {number}" for number in range(1, 7)]


@pytest.mark.parametrize("media_type", SYNTAXES)
def test_a_catalogue_is_read_in_any_syntax(catalogue, harvest, media_type):
    catalogue.media_type = media_type
    assert len(harvest(CatalogueHarvester(), "/catalog.ttl").datasets) == 6


def test_a_catalogue_read_to_its_end_is_complete(catalogue, harvest):
    assert harvest(CatalogueHarvester(), "/catalog.ttl").end.complete


def test_each_page_is_asked_for_once(portal, catalogue, harvest):
    harvest(CatalogueHarvester(), "/catalog.ttl")
    assert len(portal.log) == 3


def test_a_page_is_one_step(catalogue, harvest):
    assert len(harvest(CatalogueHarvester(), "/catalog.ttl").steps) == 3


def test_the_catalogues_own_statements_are_kept_as_they_stand(catalogue, harvest):
    catalogue.extra = '<https://data.example.org/1> <https://own.example.org/word> "kept" .'
    quads = harvest(CatalogueHarvester(), "/catalog.ttl").quads
    assert any(quad.predicate.value == "https://own.example.org/word" for quad in quads)


def test_blank_nodes_of_two_pages_are_never_one(catalogue, harvest):
    catalogue.media_type = "application/n-triples"
    quads = harvest(CatalogueHarvester(), "/catalog.ttl").quads
    nodes = {quad.subject for quad in quads if quad.predicate.value.endswith("foaf/0.1/name")}
    assert (len(nodes), {type(node) for node in nodes}) == (3, {BlankNode})


def test_distributions_become_links(catalogue, harvest):
    links = harvest(CatalogueHarvester(), "/catalog.ttl").links
    assert {("https://data.example.org/1.csv", None), ("https://data.example.org/1/about", None)} <= set(
        links
    )


def test_an_endpoint_becomes_a_link_of_its_kind(catalogue, harvest):
    catalogue.extra = """<https://data.example.org/s> a dcat:DataService ;
      dct:conformsTo <https://www.w3.org/TR/sparql11-protocol/> ;
      dcat:endpointURL <https://data.example.org/q> ."""
    assert ("https://data.example.org/q", "sparql") in harvest(CatalogueHarvester(), "/catalog.ttl").links


def test_a_dataset_described_elsewhere_becomes_a_link(catalogue, harvest):
    catalogue.extra = "<https://data.example.org/> dcat:dataset <https://data.example.org/far> ."
    assert ("https://data.example.org/far", None) in harvest(CatalogueHarvester(), "/catalog.ttl").links


def test_a_harvest_goes_on_from_the_state_of_its_last_step(portal, catalogue, harvest):
    first = harvest(CatalogueHarvester(), "/catalog.ttl", most_steps=1)
    rest = harvest(CatalogueHarvester(), "/catalog.ttl", state=first.steps[-1].state)
    assert (first.titles + rest.titles, len(portal.log)) == ([f"Set {number}" for number in range(1, 7)], 3)


def test_a_page_that_leads_back_ends_the_walk(catalogue, harvest):
    catalogue.following = lambda number: number + 1 if number < 3 else 2
    end = harvest(CatalogueHarvester(), "/catalog.ttl").end
    assert ("leads back" in end.reason, end.complete) == (True, False)


def test_a_catalogue_that_shows_its_last_page_for_ever_is_left(portal, catalogue, harvest):
    catalogue.following = lambda number: number + 1
    catalogue.served = lambda number: min(number, 3)
    end = harvest(CatalogueHarvester(), "/catalog.ttl").end
    assert (not unsaid(end.reason), len(portal.log)) == (True, 4)


def test_a_catalogue_that_counts_more_than_it_shows_is_not_complete(catalogue, harvest):
    catalogue.extra = "<https://data.example.org/> hydra:totalItems 7 ."
    assert not harvest(CatalogueHarvester(), "/catalog.ttl").end.complete


def test_a_page_with_a_fault_keeps_what_is_good(portal, catalogue, harvest):
    good = catalogue.page(3)
    portal.serve = lambda path, query: (
        200,
        {"Content-Type": "text/turtle"},
        good + b"\n<http://a b> <p> .\n",
    )
    harvested = harvest(CatalogueHarvester(), "/catalog.ttl")
    assert (len(harvested.datasets), harvested.end.complete, len(harvested.problems)) == (2, False, 1)


def test_a_page_that_fails_for_a_while_is_asked_for_again_later(portal, catalogue, harvest):
    served = catalogue.__call__
    portal.serve = lambda path, query: (500, {}, b"") if query.get("page") == "2" else served(path, query)
    broken = harvest(CatalogueHarvester(), "/catalog.ttl")
    portal.serve = catalogue
    rest = harvest(CatalogueHarvester(), "/catalog.ttl", state=broken.steps[-1].state)
    assert (broken.end.retry, rest.titles) == (True, ["Set 3", "Set 4", "Set 5", "Set 6"])


def test_rdf_without_datasets_is_no_catalogue(portal, harvest):
    portal.serve = lambda path, query: (
        200,
        {"Content-Type": "text/turtle"},
        b"<http://a> <http://b> <http://c> .",
    )
    assert harvest(CatalogueHarvester(), "/catalog.ttl").end.outcome is Outcome.FAILED


def test_a_page_too_large_for_one_step_resumes_where_it_was(portal, harvest):
    statements = "".join(
        f"<https://e.org/{n}> <https://e.org/p> [ <https://e.org/q> {n} ] .\n" for n in range(30_000)
    )
    body = (PREFIXES + dataset(1) + statements).encode()
    portal.serve = lambda path, query: (200, {"Content-Type": "text/turtle"}, body)
    whole = harvest(CatalogueHarvester(), "/catalog.ttl")
    first = harvest(CatalogueHarvester(), "/catalog.ttl", most_steps=1)
    rest = harvest(CatalogueHarvester(), "/catalog.ttl", state=first.steps[-1].state)
    assert (len(whole.steps) > 1, first.quads + rest.quads == whole.quads) == (True, True)
