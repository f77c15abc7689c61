"""Whatever a record holds, it is refused or becomes a dataset, and that becomes quads that can be written."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse, serialize

from tamias.features.dcat.datasets.dcat import dataset_quads
from tamias.features.dcat.datasets.mapping import BAD, map_record
from tamias.features.dcat.datasets.terms import day_or_moment, mailbox, text_literal
from tamias.features.portals import arcgis, opendatasoft, socrata, udata
from tamias.features.portals.records import ckan as ckan_records
from tamias.features.stats.coverage import MappingCoverage
from tamias.model.dataset import Agent, Dataset, Distribution, Period
from tamias.model.vocabulary import sound_iri
from tests.examples import examples

ROOT = "https://data.example.org/"

ODD_WORDS = [
    "https://example.org/%zz", "http://[", "https://é.example/ü", "urn:", "a:b c", "2020-13-01", "\ud800",
    "POINT(1 2)", "{}", '{"coordinates":[[]]}', "1,2,3,4", "POLYGON((1 2,3 4))", "mailto:a@b", "@", "R/P1D",
    "http://publications.europa.eu/resource/authority/frequency/DAILY", "en", "text/csv", "CSV", "\x00",
]  # fmt: skip
ODD_TEXTS = st.one_of(st.text(max_size=30), st.sampled_from(ODD_WORDS))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), ODD_TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ODD_TEXTS, inner, max_size=3)),
    max_leaves=6,
)

RECORDS = {
    ckan_records.dataset_of: (
        "id name title notes url license_url organization groups tags extras resources theme language "
        "spatial metadata_created metadata_modified contact_email publisher_name version"
    ),
    socrata.dataset_of: "resource classification metadata permalink link owner",
    opendatasoft.dataset_of: "dataset_id metas attachments features has_records alternative_exports",
    udata.dataset_of: (
        "id title page organization owner spatial temporal_coverage contact_points resources harvest"
    ),
    arcgis.MAPPING.dataset: "id properties geometry",
}


MAPPINGS = [module.MAPPING for module in (ckan_records, socrata, opendatasoft, udata, arcgis)]


def written(quads):
    return list(parse(serialize(quads, format=RdfFormat.N_QUADS), format=RdfFormat.N_QUADS))


@pytest.mark.parametrize("read", RECORDS, ids=lambda read: read.__module__.rpartition(".")[2])
@settings(max_examples=examples(150))
@given(data=st.data())
def test_any_record_is_read_or_refused(read, data):
    record = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(RECORDS[read].split(), JSON)))
    try:
        dataset = read(record, ROOT)
    except BAD:
        return
    written(dataset_quads(dataset, ROOT))


@pytest.mark.parametrize("mapping", MAPPINGS, ids=lambda mapping: mapping.name)
@settings(max_examples=examples(100))
@given(data=st.data())
def test_no_value_of_any_record_is_lost(mapping, data):
    fields = RECORDS[mapping.dataset].split()
    record = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys([*fields, "odd"], JSON)))
    try:
        mapped = map_record(mapping, msgspec.json.encode(record), ROOT)
    except (*BAD, UnicodeEncodeError):
        return
    coverage = MappingCoverage()
    coverage.add(mapped.source, mapped.quads, mapping.dropped)
    assert [each for each in coverage.fields.values() if each.lost] == []
    assert set(written(mapped.quads)) == set(mapped.quads)


AGENTS = st.builds(Agent, name=ODD_TEXTS, iri=ODD_TEXTS, email=ODD_TEXTS, homepage=ODD_TEXTS, kind=ODD_TEXTS)
TEXTS = st.lists(ODD_TEXTS, max_size=2).map(tuple)
DISTRIBUTIONS = st.builds(
    Distribution, url=ODD_TEXTS, iri=ODD_TEXTS, title=ODD_TEXTS, media_type=ODD_TEXTS, format=ODD_TEXTS,
    licence=ODD_TEXTS, rights=ODD_TEXTS, byte_size=st.none() | st.integers(), sha256=ODD_TEXTS,
    checksum=st.tuples(ODD_TEXTS, ODD_TEXTS), issued=ODD_TEXTS, language=TEXTS, conforms_to=TEXTS,
    service=ODD_TEXTS, service_kind=ODD_TEXTS,
)  # fmt: skip
DATASETS = st.builds(
    Dataset, iri=ODD_TEXTS, record=ODD_TEXTS, title=ODD_TEXTS, title_language=ODD_TEXTS,
    description=ODD_TEXTS, identifiers=TEXTS, keywords=TEXTS, themes=TEXTS, groups=TEXTS,
    landing_page=ODD_TEXTS, licence=ODD_TEXTS, rights=ODD_TEXTS, access_rights=ODD_TEXTS, publisher=AGENTS,
    creator=AGENTS, contact=AGENTS, issued=ODD_TEXTS, record_modified=ODD_TEXTS, frequency=ODD_TEXTS,
    language=TEXTS, spatial=TEXTS, temporal=st.tuples(st.builds(Period, ODD_TEXTS, ODD_TEXTS)),
    version=ODD_TEXTS, provenance=ODD_TEXTS, conforms_to=TEXTS,
    distributions=st.lists(DISTRIBUTIONS, max_size=2).map(tuple),
)  # fmt: skip


@settings(max_examples=examples(300))
@given(DATASETS)
def test_any_dataset_can_be_written_and_read_again(dataset):
    quads = dataset_quads(dataset, ROOT)
    assert written(quads) == quads


@given(ODD_TEXTS)
def test_a_term_is_sound_or_none(word):
    for term in (sound_iri(word), sound_iri(word, web=True), mailbox(word), day_or_moment(word)):
        assert term is None or term.value
    text_literal(word, word)


@pytest.mark.parametrize(
    ("word", "datatype"),
    [
        ("2024-02-29", "date"), ("2023-02-29", None), ("2024-02-29Z", "date"), ("2024-1-1", None),
        ("2024-01-01T10:00", "dateTime"), ("2024-01-01 10:00:00.5", "dateTime"), ("0000-01-01", None),
        ("2024-01-01T10:00:00+0100", "dateTime"), ("2024-01-01T24:00:00", None), ("2024", "gYear"),
        ("2024-05", "gYearMonth"), ("2024-13", None), ("99", None), ("", None), (None, None), ("R/P1D", None),
    ],
)  # fmt: skip
def test_a_date_has_its_type_or_is_none(word, datatype):
    found = day_or_moment(word)
    assert (found and found.datatype.value.rpartition("#")[2]) == datatype


def test_a_state_is_small_whatever_the_portal():
    from tamias.features.portals.paging.listing import state_of
    from tamias.features.portals.paging.position import Position, digest

    place = Position(
        root=ROOT, size=1000, offset=10**7, recent=[digest(str(number)) for number in range(1000)]
    )
    assert len(state_of(place)) < 10_000
    assert msgspec.msgpack.decode(state_of(place), type=Position) == place


def test_no_value_is_lost_of_a_record_too_large_to_be_searched(monkeypatch):
    monkeypatch.setattr("tamias.features.dcat.datasets.mapping.MOST_SEARCHED", 0)
    record = {"id": "a", "notes": "A text of several words.", "own_field": "several words"}
    quads = map_record(ckan_records.MAPPING, msgspec.json.encode(record), ROOT).quads
    assert any(quad.predicate.value.endswith("#ckan.own_field") for quad in quads)
