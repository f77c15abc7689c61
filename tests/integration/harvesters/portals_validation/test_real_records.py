"""Real records of portals: every value of each is said in DCAT, kept as an extra, or dropped for a reason."""

import json

import pytest
from lxml import etree
from pyoxigraph import RdfFormat, parse, serialize

from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.mapping import FIELDS, map_again, map_element, map_record
from tamias.features.portals.dataverse import export_mapping
from tamias.features.portals.records import ckan, pod
from tamias.features.portals.records.oai import MAPPING as OAI_MAPPING
from tamias.features.portals.records.oai import mapped_dataset
from tamias.features.stats.coverage import MappingCoverage

ROOT = "https://portal.example/"
MOST_DROPPED = 0.03


def ckan_records(folder):
    files = [*folder.glob("ckanext-dcat/**/ckan/*.json"), *folder.glob("udata/**/ckan/data/*.json")]
    for file in sorted(files):
        found = json.loads(file.read_bytes())
        found = found.get("result", found) if isinstance(found, dict) else found
        records = found if isinstance(found, list) else [found]
        yield from (each for each in records if "name" in each and ("notes" in each or "extras" in each))


def data_json_records(folder):
    for file in sorted([*folder.glob("data-json/**/*.json"), *folder.glob("udata/**/evian.json")]):
        found = json.loads(file.read_bytes())
        records = found if isinstance(found, list) else found.get("dataset", [])
        yield from (each for each in records if "identifier" in each or "title" in each)


def dataverse_records(folder):
    for file in sorted(folder.glob("dataverse/**/dataset-*.json")):
        found = json.loads(file.read_bytes())
        if isinstance(found, dict) and "datasetVersion" in found:
            yield found


JSON_KINDS = {
    "ckan": (ckan_records, ckan.MAPPING, 10),
    "data-json": (data_json_records, pod.MAPPING, 36),
    "dataverse": (dataverse_records, export_mapping("doi:10.5072/FK2/RECORD"), 9),
}


FORCED = {
    ("relation", "http://example.com/dataset/3.141592"),
    ("None", "http://example.com/dataset/3.141592"),
    ("servesDataset", "https://example.org/dataset/1"),
    ("servesDataset", "https://example.org/dataset/2"),
}
"""What the shapes have against records that name resources which are described nowhere."""


def mapped(folder, kind):
    """Each record as if it came from a catalogue of its own: some examples share their identifiers."""
    records, mapping, _ = JSON_KINDS[kind]
    return [
        map_record(mapping, json.dumps(record).encode(), f"{ROOT}{number}/")
        for number, record in enumerate(records(folder))
    ]


def oai_records(folder):
    """Those of sickle are about articles: their type is taken out, so that they are read as data."""
    for file in sorted(folder.glob("oai-pmh/**/*Record*.xml")):
        root = etree.parse(file, etree.XMLParser(recover=True)).getroot()
        for record in () if root is None else root.iter("{*}record"):
            for kind in list(record.iter("{*}type")):
                kind.getparent().remove(kind)
            if record.find(".//{*}metadata") is not None and record.find(".//{*}identifier") is not None:
                yield map_element(OAI_MAPPING, record, mapped_dataset(record, ROOT), ROOT)


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_no_value_of_a_real_record_disappears(suites, kind):
    mapping, number = JSON_KINDS[kind][1:]
    found = MappingCoverage()
    for each in mapped(suites("real-portal-records"), kind):
        found.add(each.source, each.quads, mapping.dropped)
    assert [(each.field, each.lost) for each in found.fields.values() if each.lost] == []
    assert found.dropped <= MOST_DROPPED * found.values
    assert found.records == number


def test_no_value_of_a_real_oai_record_disappears(suites):
    found = MappingCoverage()
    for each in oai_records(suites("real-portal-records")):
        found.add(each.source, each.quads, OAI_MAPPING.dropped)
    assert [(each.field, each.lost) for each in found.fields.values() if each.lost] == []
    assert found.dropped <= MOST_DROPPED * found.values
    assert found.records >= 4


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_the_measure_notices_values_that_are_left_out(suites, kind):
    mapping = JSON_KINDS[kind][1]
    bare, less = MappingCoverage(), MappingCoverage()
    for each in mapped(suites("real-portal-records"), kind):
        own = [quad for quad in each.quads if not quad.predicate.value.startswith(FIELDS)]
        bare.add(each.source, own, mapping.dropped)
        titled = [quad for quad in each.quads if not quad.predicate.value.endswith(("title", "name"))]
        less.add(each.source, titled, mapping.dropped)
    assert bare.lost > 20
    assert less.lost > 0


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_a_record_that_was_kept_says_the_same_again_without_a_request(suites, kind):
    for each in mapped(suites("real-portal-records"), kind):
        assert map_again(each.source) == each.quads
        written = serialize(each.quads, format=RdfFormat.N_QUADS)
        assert list(parse(written, format=RdfFormat.N_QUADS)) == each.quads


def test_texts_in_several_languages_keep_all_of_them(suites):
    (found,) = (
        each
        for each in mapped(suites("real-portal-records"), "ckan")
        if each.dataset.record == "test-dataset-multilingual"
    )
    said = {
        (quad.predicate.value.rpartition("/")[2].rpartition("#")[2], quad.object.language, quad.object.value)
        for quad in found.quads
        if getattr(quad.object, "language", None)
    }
    assert said >= {
        ("title", "ca", "Conjunt de dades de prova DCAT"),
        ("title", "es", "Conjunto de datos de prueba DCAT"),
        ("title", "en", "Test DCAT dataset"),
        ("description", "ca", "Una descripció qualsevol"),
        ("keyword", "es", "Robles"),
        ("versionNotes", "ca", "Notes sobre la versió"),
        ("label", "es", "Una declaración sobre la procedencia"),
        ("fn", "ca", "Contacte 2"),
        ("title", "es", "Recurso 1"),
        ("label", "ca", "Una nota sobre drets"),
    }
    untagged = {quad.object.value for quad in found.quads if not getattr(quad.object, "language", "x")}
    assert "Test DCAT dataset" not in untagged


def test_dcat_out_of_real_records_breaks_no_rule_that_they_do_not_break(suites, violations):
    quads = []
    for kind in JSON_KINDS:
        for each in mapped(suites("real-portal-records"), kind):
            quads += each.quads + catalogue_quads(each.source.catalogue, "Portal", None, None)
    found = {
        (path.rpartition("/")[2].rpartition("#")[2], value) for path, value in map(place, violations(quads))
    }
    assert found == FORCED


def place(violation):
    _, path, _, value, *_ = violation.split(" | ")
    return path, value
