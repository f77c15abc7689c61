"""The mapping of a dataset to DCAT, and the published shapes of DCAT-AP over it."""

import pytest
from pyoxigraph import Literal, NamedNode, RdfFormat, Store, serialize

from tamias.features.dcat.datasets.dcat import catalogue_quads, dataset_quads
from tamias.model.dataset import Agent, Dataset, Distribution, Period

CATALOGUE = "https://data.example.org/"
PREFIXES = """
PREFIX dcat: <http://www.w3.org/ns/dcat#>
PREFIX dct: <http://purl.org/dc/terms/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX geo: <http://www.opengis.net/ont/geosparql#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
PREFIX spdx: <http://spdx.org/rdf/terms#>
PREFIX vcard: <http://www.w3.org/2006/vcard/ns#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX eu: <http://publications.europa.eu/resource/authority/>
"""

MINIMAL = Dataset(iri="https://data.example.org/dataset/1", record="1", title="Trees")

ODD = Dataset(
    iri="not an iri",
    record="an id/with <signs>",
    title="  ",
    title_language="no tag!",
    description=" ",
    themes=("just a word",),
    landing_page="see above",
    licence="You may do as you like",
    rights="all",
    access_rights="ask the mayor",
    publisher=Agent(name=" "),
    contact=Agent(name="", email="nobody"),
    issued="yesterday",
    modified="2023-02-30",
    frequency="whenever",
    language=("Deutsch",),
    spatial=("The old town", "{broken", "", "POLYGON((x y))"),
    temporal=(Period("long ago", "2020"), Period()),
    conforms_to=("a standard of ours",),
    distributions=(
        Distribution(url="", title="nowhere"),
        Distribution(
            url="https://data.example.org/a b.csv",
            media_type="csv",
            format="CSV files",
            byte_size=-5,
            sha256="zz",
            issued="0000-00-00",
            licence="other",
        ),
    ),
)

FULL = Dataset(
    iri="https://data.example.org/dataset/2",
    record="2",
    title="Bäume",
    title_language="de",
    description="Alle Bäume der Stadt",
    identifiers=("2", "urn:trees"),
    keywords=("Baum", "Stadt"),
    themes=("http://publications.europa.eu/resource/authority/data-theme/ENVI",),
    groups=("Umwelt & Natur",),
    landing_page="https://data.example.org/dataset/baeume",
    licence="https://creativecommons.org/licenses/by/4.0/",
    rights="© the city",
    access_rights="public",
    publisher=Agent(
        name="Parks",
        iri="https://data.example.org/organization/parks",
        email="parks@example.org",
        homepage="https://parks.example.org/",
        kind="http://purl.org/adms/publishertype/LocalAuthority",
    ),
    creator=Agent(name="Survey office"),
    contact=Agent(name="Desk", email="mailto:desk@example.org", homepage="https://example.org/desk"),
    issued="2020-01-02",
    modified="2024-05-06T07:08:09+0200",
    record_issued="2021-01-01T00:00:00.123456",
    record_modified="2024-05-07",
    frequency="R/P1D",
    language=("de", "fra", "en-GB"),
    spatial=(
        "https://sws.geonames.org/2761369/",
        "Vienna",
        '{"type":"Polygon","coordinates":[[[1,2],[3,2],[3,4],[1,2]]]}',
        "POINT(16.3 48.2)",
        "1.5,2,3,4",
    ),
    temporal=(Period("2020-01-01", None), Period("2019", "2020-06")),
    version="1.0",
    provenance="Counted on foot",
    conforms_to=("https://www.opengis.net/def/crs/EPSG/0/4326",),
    distributions=(
        Distribution(
            url="https://files.example.org/trees.csv",
            iri="https://data.example.org/dataset/2/resource/a",
            title="Trees as CSV",
            description="A table",
            media_type="text/csv; charset=utf-8",
            format="CSV",
            licence="https://creativecommons.org/publicdomain/zero/1.0/",
            rights="none",
            byte_size=12,
            sha256="AB" * 32,
            issued="2020-01-02",
            modified="2020-01-03",
            language=("de",),
            conforms_to=("https://tools.ietf.org/html/rfc4180",),
        ),
        Distribution(url="https://data.example.org/about", access_only=True, checksum=("MD5", "0" * 32)),
        Distribution(
            url="https://data.example.org/sparql",
            service="https://data.example.org/sparql",
            service_kind="sparql",
        ),
    ),
)


@pytest.fixture(scope="module")
def shapes(suites):
    folder = suites("dcat-ap-3.0.1-shapes")
    return {path.name: path for path in folder.rglob("*.ttl")}


def without_a_path(rules):
    """Drops what the 3.0.1 file has one of by mistake: a property shape of no property."""
    from rdflib.namespace import SH

    for shape, part in list(rules.subject_objects(SH.property)):
        if rules.value(part, SH.path) is None:
            rules.remove((shape, SH.property, part))


def quads_of(*datasets):
    made = catalogue_quads(CATALOGUE, "Open data of the town", None, "https://data.example.org/")
    return made + [quad for dataset in datasets for quad in dataset_quads(dataset, CATALOGUE)]


def store_of(quads):
    store = Store()
    store.extend(quads)
    return store


def asked(dataset, pattern):
    store = store_of(dataset_quads(dataset, CATALOGUE))
    return bool(store.query(f"{PREFIXES} ASK {{ {pattern} }}"))


@pytest.mark.parametrize("dataset", [MINIMAL, ODD, FULL], ids=["minimal", "odd", "full"])
@pytest.mark.parametrize("shape", ["dcat-ap-SHACL.ttl", "shapes.ttl", "range.ttl"])
def test_the_published_shapes_find_no_violation(shapes, shape, dataset):
    import pyshacl
    import rdflib

    data = rdflib.Graph().parse(serialize(quads_of(dataset), format=RdfFormat.N_QUADS), format="nt")
    rules = rdflib.Graph().parse(shapes[shape])
    without_a_path(rules)
    conforms, _, text = pyshacl.validate(data, shacl_graph=rules)
    assert conforms, text


@pytest.mark.parametrize("dataset", [MINIMAL, ODD, FULL], ids=["minimal", "odd", "full"])
def test_no_blank_node_is_made(dataset):
    nodes = {node for quad in quads_of(dataset) for node in (quad.subject, quad.object)}
    assert all(isinstance(node, NamedNode | Literal) for node in nodes)


def test_the_same_dataset_gives_the_same_quads():
    assert dataset_quads(FULL, CATALOGUE) == dataset_quads(FULL, CATALOGUE)


@pytest.mark.parametrize(
    "pattern",
    [
        "<https://data.example.org/> dcat:dataset <https://data.example.org/dataset/2>",
        "<https://data.example.org/dataset/2> a dcat:Dataset; dct:title 'Bäume'@de",
        "?d dcat:distribution ?r. ?r a dcat:Distribution; "
        "dcat:accessURL <https://files.example.org/trees.csv>",
        "?r dcat:downloadURL <https://files.example.org/trees.csv>",
        "?r dcat:byteSize '12'^^xsd:nonNegativeInteger",
        "?r dcat:mediaType <https://www.iana.org/assignments/media-types/text/csv>; "
        "dct:format <http://publications.europa.eu/resource/authority/file-type/CSV>",
        "?r spdx:checksum [ spdx:algorithm spdx:checksumAlgorithm_sha256; spdx:checksumValue ?v ] "
        f"FILTER(STR(?v) = '{'ab' * 32}')",
        "?d dct:publisher <https://data.example.org/organization/parks>. "
        "<https://data.example.org/organization/parks> a foaf:Agent; foaf:name 'Parks'; "
        "foaf:mbox <mailto:parks@example.org>",
        "?d dcat:contactPoint [ a vcard:Kind; vcard:fn 'Desk'; vcard:hasEmail <mailto:desk@example.org> ]",
        "?d dct:accrualPeriodicity <http://publications.europa.eu/resource/authority/frequency/DAILY>",
        "?d dct:accessRights <http://publications.europa.eu/resource/authority/access-right/PUBLIC>",
        "?d dct:language <http://id.loc.gov/vocabulary/iso639-1/de>, "
        "<http://id.loc.gov/vocabulary/iso639-2/fra>",
        "?d dct:spatial <https://sws.geonames.org/2761369/>",
        "?d dct:spatial [ skos:prefLabel 'Vienna'@de ]",
        "?d dct:spatial [ dcat:bbox 'POLYGON((1 2,3 2,3 4,1 4,1 2))'^^geo:wktLiteral; "
        "geo:hasGeometry [ geo:asGeoJSON ?j ] ]",
        "?d dct:spatial [ dcat:bbox 'POLYGON((1.5 2,3 2,3 4,1.5 4,1.5 2))'^^geo:wktLiteral ]",
        "?d dct:spatial [ dcat:centroid 'POINT(16.3 48.2)'^^geo:wktLiteral ]",
        "?d dct:temporal [ a dct:PeriodOfTime; dcat:startDate '2020-01-01'^^xsd:date ]",
        "?d dct:temporal [ dcat:startDate '2019'^^xsd:gYear; dcat:endDate '2020-06'^^xsd:gYearMonth ]",
        "?d dct:modified '2024-05-06T07:08:09+02:00'^^xsd:dateTime; dct:issued '2020-01-02'^^xsd:date",
        "?d dcat:theme [ skos:prefLabel 'Umwelt & Natur'@de ]",
        "?d dct:provenance [ rdfs:label 'Counted on foot'@de ]",
        "?r dcat:accessService [ a dcat:DataService; dcat:endpointURL <https://data.example.org/sparql>; "
        "dcat:servesDataset ?d ]. <https://data.example.org/> dcat:service ?s",
        "<https://data.example.org/> dcat:record <https://data.example.org/#2>. "
        "<https://data.example.org/#2> a dcat:CatalogRecord; dct:identifier '2'; "
        "foaf:primaryTopic <https://data.example.org/dataset/2>; dct:modified '2024-05-07'^^xsd:date",
    ],
)
def test_a_full_dataset_says(pattern):
    assert asked(FULL, pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "<https://data.example.org/#an%20id%2Fwith%20%3Csigns%3E/dataset> a dcat:Dataset",
        "?d dct:title 'an id/with <signs>'; dct:description 'an id/with <signs>'",
        "?d dct:license [ rdfs:label 'You may do as you like' ]",
        "?d dct:accrualPeriodicity [ rdfs:label 'whenever' ]",
        "?d dct:language [ rdfs:label 'Deutsch' ]",
        "?d dcat:keyword 'just a word'",
        "?d dct:spatial [ skos:prefLabel '{broken' ]",
        "?d dct:temporal [ rdfs:label 'long ago/2020'; dcat:endDate '2020'^^xsd:gYear ]",
        "?r dcat:accessURL <https://data.example.org/a%20b.csv>; dct:format [ rdfs:label 'CSV files' ]",
    ],
)
def test_odd_words_are_kept_as_words(pattern):
    assert asked(ODD, pattern)


@pytest.mark.parametrize(
    "predicate",
    [
        "dct:issued", "dct:modified", "dcat:landingPage", "dcat:byteSize", "spdx:checksum", "dcat:mediaType",
        "dct:publisher", "dcat:contactPoint", "dcat:record",
    ],
)  # fmt: skip
def test_what_is_not_sound_is_left_out(predicate):
    assert not asked(ODD, f"?s {predicate} ?o")


def test_an_access_page_is_no_download():
    assert not asked(FULL, "?r dcat:downloadURL <https://data.example.org/about>")


def test_a_distribution_without_an_address_leads_to_the_landing_page():
    page = "https://data.example.org/d"
    dataset = Dataset(
        iri=page, record="d", title="D", landing_page=page, distributions=(Distribution(url="n/a"),)
    )
    assert asked(dataset, f"?r dcat:accessURL <{page}> MINUS {{ ?r dcat:downloadURL ?any }}")


def test_a_catalogue_without_a_publisher_is_named_after_its_host():
    store = store_of(catalogue_quads(CATALOGUE, "", None, None))
    assert store.query(
        f"{PREFIXES} ASK {{ <{CATALOGUE}> a dcat:Catalog; dct:title 'data.example.org'; "
        "dct:publisher [ foaf:name 'data.example.org' ] }"
    )
