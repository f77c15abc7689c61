"""DCAT into values, in the many ways in which catalogues write it."""

import pytest
from pyoxigraph import RdfFormat, parse

from tamias.features.dcat.datasets.descriptions import Descriptions
from tamias.features.dcat.datasets.from_dcat import addresses_in, datasets_in, unread_in
from tamias.features.quality.metrics import claims_of
from tamias.model.dataset import Period

PREFIXES = """@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix dct: <http://purl.org/dc/terms/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix vcard: <http://www.w3.org/2006/vcard/ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix spdx: <http://spdx.org/rdf/terms#> .
@prefix schema: <http://schema.org/> . @prefix locn: <http://www.w3.org/ns/locn#> .
@prefix time: <http://www.w3.org/2006/time#> . @prefix dcatap: <http://data.europa.eu/r5r/> .
@prefix : <https://example.org/> .
"""


def quads(text):
    return list(parse((PREFIXES + text).encode(), format=RdfFormat.TURTLE))


def dataset(said):
    (found,) = datasets_in(quads(f':d a dcat:Dataset ; dct:title "T" ; {said} .'))
    return found


def distribution(said):
    return dataset(f"dcat:distribution [ dcat:downloadURL <https://example.org/f> ; {said} ]").distributions[
        0
    ]


CATEGORY = "http://data.europa.eu/bna/c_ac64a52d"
LAW = "http://data.europa.eu/eli/reg_impl/2023/138/oj"


@pytest.mark.parametrize(
    ("said", "hvd"),
    [
        (f"dcatap:hvdCategory <{CATEGORY}>", (CATEGORY,)),
        (f"dcat:distribution [ dcat:accessURL :f ; dcatap:applicableLegislation <{LAW}> ]", (LAW,)),
        ("dcatap:applicableLegislation :law", ()),
    ],
)
def test_a_high_value_dataset_is_known_by_its_category_or_by_the_regulation(said, hvd):
    assert claims_of(dataset(said)).hvd == hvd


def test_a_dataset_that_is_only_listed_counts_too():
    assert [each.iri for each in datasets_in(quads(':c dcat:dataset :d . :d dct:title "T" .'))] == [
        "https://example.org/d"
    ]


def test_a_dataset_without_name_gets_one_within_its_catalogue():
    (found,) = datasets_in(quads('[] a dcat:Dataset ; dct:identifier "a 1" .'), "https://example.org/c")
    assert (found.iri, found.record) == ("https://example.org/c#a%201/dataset", "a 1")


def test_a_dataset_that_cannot_be_named_is_left_out():
    assert datasets_in(quads('[] a dcat:Dataset ; dct:title "T" .'), "https://example.org/c") == []


@pytest.mark.parametrize(
    ("titles", "title", "language"),
    [
        ('"Titel"@de, "Title"@en-GB, "None"', "Title", "en-gb"),
        ('"Titel"@de, "None"', "None", None),
        ('"Titre"@fr, "Titel"@de', "Titel", "de"),
    ],
)
def test_of_several_languages_english_is_taken_then_none_then_the_first(titles, title, language):
    (found,) = datasets_in(quads(f":d a dcat:Dataset ; dct:title {titles} ."))
    assert (found.title, found.title_language and found.title_language.lower()) == (title, language)


@pytest.mark.parametrize(
    ("said", "name", "email"),
    [
        (
            '[ a foaf:Agent ; foaf:name "Office" ; foaf:mbox <mailto:a@example.org> ]',
            "Office",
            "a@example.org",
        ),
        ('"Office"', "Office", None),
        ("<https://example.org/office>", "https://example.org/office", None),
        (
            '[ vcard:fn "Office" ; vcard:hasEmail [ vcard:hasValue <mailto:a@example.org> ] ]',
            "Office",
            "a@example.org",
        ),
    ],
)
def test_an_agent_is_read_in_every_form(said, name, email):
    found = dataset(f"dct:publisher {said}").publisher
    assert (found.name, found.email) == (name, email)


@pytest.mark.parametrize(
    "said",
    [
        '[ dcat:startDate "2020" ; dcat:endDate "2021" ]',
        '[ schema:startDate "2020" ; schema:endDate "2021" ]',
        '[ time:hasBeginning [ time:inXSDDate "2020" ] ; time:hasEnd [ time:inXSDDate "2021" ] ]',
        '"2020/2021"',
    ],
)
def test_a_period_is_read_in_every_form(said):
    assert dataset(f"dct:temporal {said}").temporal == (Period("2020", "2021"),)


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("<https://example.org/city>", "https://example.org/city"),
        ('[ dcat:bbox "POLYGON((0 0, 1 0, 1 1, 0 0))" ]', "POLYGON((0 0, 1 0, 1 1, 0 0))"),
        ('[ locn:geometry "{}" ]', "{}"),
        ('[ rdfs:label "City" ]', "City"),
        ('"City"', "City"),
    ],
)
def test_a_place_is_read_in_every_form(said, place):
    assert dataset(f"dct:spatial {said}").spatial == (place,)


@pytest.mark.parametrize(
    "said",
    [
        "dcat:mediaType <https://www.iana.org/assignments/media-types/text/csv>",
        'dcat:mediaType "text/csv"',
        'dcat:mediaType [ rdfs:label "text/csv" ]',
    ],
)
def test_a_media_type_is_read_in_every_form(said):
    assert distribution(said).media_type == "text/csv"


def test_a_sha256_stands_apart_from_other_checksums():
    said = 'spdx:checksum [ spdx:algorithm spdx:checksumAlgorithm_{} ; spdx:checksumValue "ab" ]'
    found = [distribution(said.format(name)) for name in ("sha256", "md5")]
    assert [(each.sha256, each.checksum) for each in found] == [("ab", None), (None, ("md5", "ab"))]


def test_a_distribution_with_only_a_page_says_so():
    found = dataset("dcat:distribution [ dcat:accessURL <https://example.org/page> ]").distributions[0]
    assert (found.url, found.access_only) == ("https://example.org/page", True)


def test_an_address_in_a_literal_counts():
    found = dataset('dcat:distribution [ dcat:downloadURL "https://example.org/f.csv" ]')
    assert found.distributions[0].url == "https://example.org/f.csv"


def test_the_dates_of_a_record_are_those_of_the_catalogue():
    text = ':d a dcat:Dataset . :r a dcat:CatalogRecord ; foaf:primaryTopic :d ; dct:modified "2020-01-01" .'
    assert datasets_in(quads(text))[0].record_modified == "2020-01-01"


def test_subjects_are_themes_or_keywords():
    found = dataset('dcat:theme :water, "Rivers" ; dcat:keyword "Lakes"')
    assert (found.themes, found.keywords) == (("https://example.org/water",), ("Lakes", "Rivers"))


def test_a_sparql_endpoint_is_known_by_its_standard():
    said = Descriptions(
        quads(":s dcat:endpointURL :q ; dct:conformsTo <http://www.w3.org/TR/sparql11-protocol/> .")
    )
    assert addresses_in(said) == {"https://example.org/q": "sparql"}


def test_only_what_is_not_described_here_is_left_to_be_read():
    said = Descriptions(
        quads(':c a dcat:Catalog ; dcat:dataset :d, :far ; dcat:catalog :sub . :d dct:title "T" .')
    )
    assert unread_in(said) == ["https://example.org/far", "https://example.org/sub"]


def test_an_index_keeps_no_more_than_it_may():
    said = Descriptions(quads(':a dct:title "1" . :b dct:title "2" . :c dct:title "3" .'), most=2)
    assert (len(said.saying("http://purl.org/dc/terms/title")), said.full) == (2, True)
