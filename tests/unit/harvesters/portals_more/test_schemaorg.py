"""schema.org datasets out of the quads of a page."""

import pytest
from pyoxigraph import RdfFormat, parse

from tamias.features.dcat.datasets.schemaorg import datasets_in
from tamias.model.dataset import Period


def quads(text, space="https://schema.org/"):
    head = f"@prefix s: <{space}> . @prefix : <https://example.org/> .\n"
    return list(parse((head + text).encode(), format=RdfFormat.TURTLE))


def dataset(said, **options):
    (found,) = datasets_in(quads(f':d a s:Dataset ; s:name "T" ; {said} .', **options))
    return found


@pytest.mark.parametrize("space", ["http://schema.org/", "https://schema.org/"])
def test_both_spellings_of_the_vocabulary_count(space):
    assert dataset('s:description "D"', space=space).description == "D"


def test_a_dataset_without_a_name_is_known_by_its_address():
    (found,) = datasets_in(quads('[] a s:Dataset ; s:name "T" ; s:url <https://example.org/t> .'))
    assert found.iri == "https://example.org/t"


def test_a_dataset_without_any_address_is_named_within_its_page():
    (found,) = datasets_in(quads('[] a s:Dataset ; s:name "Trees 1" .'), "https://example.org/page")
    assert found.iri == "https://example.org/page#Trees%201/dataset"


def test_a_mere_mention_is_no_description():
    assert datasets_in(quads(":d a s:Dataset .")) == []


def test_keywords_between_commas_are_several():
    assert dataset('s:keywords "rain, water", "sun"').keywords == ("rain", "water", "sun")


def test_an_identifier_may_be_a_property_value():
    found = dataset('s:identifier [ a s:PropertyValue ; s:propertyID "doi" ; s:value "10.1/x" ]')
    assert found.identifiers == ("10.1/x",)


def test_the_contact_of_the_publisher_is_the_datasets():
    found = dataset(
        's:publisher [ s:name "O" ; s:contactPoint [ s:email "a@example.org" ; s:contactType "desk" ] ]'
    )
    assert (found.contact.name, found.contact.email) == ("desk", "a@example.org")


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ('[ s:geo [ s:box "47 8 48 9" ] ]', "POLYGON((8 47,9 47,9 48,8 48,8 47))"),
        ("[ s:geo [ s:latitude 47 ; s:longitude 8 ] ]", "POINT(8 47)"),
        ('[ s:name "Alps" ]', "Alps"),
        ('"Alps"', "Alps"),
    ],
)
def test_a_place_is_read_in_every_form(said, place):
    assert dataset(f"s:spatialCoverage {said}").spatial == (place,)


@pytest.mark.parametrize(
    ("said", "period"),
    [
        ("2020/2021", Period("2020", "2021")),
        ("2020/..", Period("2020", None)),
        ("2020", Period("2020", "2020")),
    ],
)
def test_a_period_is_read_in_every_form(said, period):
    assert dataset(f's:temporalCoverage "{said}"').temporal == (period,)


def test_a_download_carries_its_type_its_size_and_its_digest():
    file = f"""s:distribution [ a s:DataDownload ; s:contentUrl :f.csv ; s:encodingFormat "text/csv" ;
      s:contentSize "2 kB" ; s:sha256 "{"A" * 64}" ]"""
    found = dataset(file.replace(":f.csv", "<https://example.org/f.csv>")).distributions[0]
    assert (found.media_type, found.byte_size, found.sha256) == ("text/csv", 2000, "a" * 64)


def test_a_download_without_content_is_a_page():
    assert dataset("s:distribution [ s:url :page ]").distributions[0].access_only
