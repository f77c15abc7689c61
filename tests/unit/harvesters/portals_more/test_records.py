"""Records of other interfaces as values: nothing in them, however odd, breaks more than itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tamias.features.dcat.datasets.dcat import dataset_quads
from tamias.features.portals import dataverse, zenodo
from tamias.features.portals.records import oai as oai_records
from tamias.features.portals.records import pod
from tamias.features.portals.records.oai_xml import elements, local
from tamias.model.dataset import Period
from tamias.model.finding import Problem

ROOT = "https://example.org/"
WORDS = [
    "identifier", "title", "distribution", "publisher", "contactPoint", "spatial", "temporal", "keyword",
    "id", "metadata", "files", "creators", "license", "rights", "entries", "links", "global_id",
    "datasetVersion", "metadataBlocks", "citation", "fields", "typeName", "value", "dataFile", "checksum",
    "downloadURL", "key", "name", "size", "dates", "locations", "pids", "doi", "geographicBoundingBox",
    "geospatial", "url",
]  # fmt: skip
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=30,
)


@pytest.mark.parametrize(
    "read",
    [
        lambda odd: pod.dataset_of(odd if isinstance(odd, dict) else {}, ROOT),
        lambda odd: zenodo.dataset_of(odd, ROOT),
        lambda odd: dataverse.listed(odd, ROOT),
        lambda odd: dataverse.exported(odd, "doi:10.1/x", ROOT),
        lambda odd: dataverse.exported({"datasetVersion": odd}, "doi:10.1/x", ROOT),
    ],
    ids=["data.json", "InvenioRDM", "Dataverse search", "Dataverse export", "Dataverse version"],
)
@given(odd=ODD)
def test_any_json_is_a_dataset_or_a_value_error(read, odd):
    try:
        dataset = read(odd)
    except ValueError:
        return
    assert dataset_quads(dataset, ROOT)


@given(st.binary(max_size=300))
def test_any_bytes_are_records_or_words(raw):
    assert all(isinstance(each, str | bytes) for each in pod.read_file(raw, ROOT).records)


@given(st.integers(0, 400), st.binary(min_size=1, max_size=4))
def test_any_damage_to_an_oai_page_is_survived(place, damage):
    record = b"<record><header><identifier>%d</identifier></header><metadata><t>T</t></metadata></record>"
    page = b'<?xml version="1.0"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>'
    page += b"".join(record % number for number in range(4))
    page += b"<resumptionToken>next</resumptionToken></ListRecords></OAI-PMH>"
    broken = page[:place] + damage + page[place:]
    names = [local(each) for each in elements(broken) if not isinstance(each, Problem)]
    assert names.count("record") <= 4


def oai_record(metadata):
    return etree.fromstring(f"<record><metadata>{metadata}</metadata></record>")


HEADER = oai_records.OaiHeader("oai:x:1", "2024-01-01", deleted=False)


def test_a_doi_is_a_better_name_than_any_other_address():
    fields = "<t:title>T</t:title><t:identifier>https://example.org/1</t:identifier>"
    fields += "<t:identifier>doi:10.5072/abc</t:identifier>"
    record = oai_record(f'<t:dc xmlns:t="urn:t">{fields}</t:dc>')
    found = oai_records.dataset_of(record, HEADER, ROOT)
    assert (found.iri, found.landing_page) == ("https://doi.org/10.5072/abc", "https://example.org/1")


def test_a_file_among_the_identifiers_is_a_distribution():
    fields = "<t:title>T</t:title><t:identifier>https://example.org/1/data.csv.gz</t:identifier>"
    record = oai_record(f'<t:dc xmlns:t="urn:t">{fields}<t:format>text/csv</t:format></t:dc>')
    (file,) = oai_records.dataset_of(record, HEADER, ROOT).distributions
    assert (file.format, file.media_type) == ("CSV.GZ", "text/csv")


def test_a_record_without_address_is_named_by_its_identifier():
    record = oai_record('<t:dc xmlns:t="urn:t"><t:title>T</t:title></t:dc>')
    assert oai_records.dataset_of(record, HEADER, ROOT).iri == "oai:x:1"


def test_datacite_tells_licence_access_and_time():
    fields = """<titles><title>T</title></titles><dates><date dateType="Collected">2019/2020</date></dates>
      <rightsList><rights rightsURI="info:eu-repo/semantics/openAccess">Open Access</rights>
      <rights rightsURI="https://example.org/licence">L</rights></rightsList>"""
    record = oai_record(f'<resource xmlns="http://datacite.org/schema/kernel-4">{fields}</resource>')
    found = oai_records.dataset_of(record, HEADER, ROOT)
    assert (found.licence, found.access_rights, found.temporal) == (
        "https://example.org/licence",
        "open",
        (Period("2019", "2020"),),
    )


def test_a_box_of_older_datacite_is_turned_round():
    fields = "<titles><title>T</title></titles><geoLocations><geoLocation>"
    fields += "<geoLocationBox>47 8 48 9</geoLocationBox></geoLocation></geoLocations>"
    record = oai_record(f'<resource xmlns="http://datacite.org/schema/kernel-3">{fields}</resource>')
    found = oai_records.dataset_of(record, HEADER, ROOT)
    assert found.spatial == ("POLYGON((8 47,9 47,9 48,8 48,8 47))",)


def test_a_checksum_says_its_algorithm():
    files = [
        {"key": "a", "checksum": "sha256:aa"},
        {"key": "b", "checksum": "md5:bb"},
        {"key": "c", "checksum": "cc"},
    ]
    found = zenodo.dataset_of({"id": 1, "metadata": {"title": "T"}, "files": files}, ROOT)
    told = [(each.sha256, each.checksum) for each in found.distributions]
    assert told == [("aa", None), (None, ("md5", "bb")), (None, ("md5", "cc"))]
