"""What comes out of every kind of portal is DCAT-AP 3.0.1, by the published shapes."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

from tamias.features.dcat.datasets.dcat import catalogue_quads, dataset_quads
from tamias.features.dcat.datasets.from_dcat import datasets_in
from tamias.features.dcat.datasets.mapping import dataset_again, map_again, mapping_of
from tamias.features.dcat.datasets.schemaorg import datasets_in as datasets_in_page
from tamias.features.stats.coverage import MappingCoverage


def _kinds():
    place = Path(__file__).with_name("portal_kinds.py")
    spec = importlib.util.spec_from_file_location("portal_kinds", place)
    module = sys.modules["portal_kinds"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.KINDS


KINDS = _kinds()


def subjects(quads, kind):
    return {quad.subject for quad in quads if quad.object.value == f"http://www.w3.org/ns/dcat#{kind}"}


def records(harvested):
    """The sources that are datasets: what a file says beside them is a source of its own."""
    return [each for each in harvested.sources if each.mapping != "data-json-catalogue"]


def unlabelled(quads):
    return {re.sub(r"_:\w+", "_", str(quad)) for quad in quads}


@pytest.mark.parametrize("kind", KINDS)
def test_dcat_out_of_a_portal_breaks_no_rule_of_the_profile(portal, harvest, violations, kind):
    harvester, path, portal.serve, _ = KINDS[kind]
    assert violations(harvest(harvester(), path).quads) == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_of_a_portal_becomes_a_dataset(portal, harvest, kind):
    harvester, path, portal.serve, number = KINDS[kind]
    harvested = harvest(harvester(), path)
    told = subjects(harvested.quads, "Dataset") - subjects(harvested.quads, "DatasetSeries")
    assert (len(harvested.datasets), len(told), harvested.problems) == (number, number, [])


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_is_kept_and_says_the_same_when_it_is_read_again(portal, harvest, kind):
    harvester, path, portal.serve, number = KINDS[kind]
    harvested = harvest(harvester(), path)
    coverage = MappingCoverage()
    again = set()
    for source in harvested.sources:
        quads = map_again(source)
        coverage.add(source, quads, mapping_of(source).dropped)
        again.update(quads)
    assert len(records(harvested)) == number
    assert unlabelled(again) <= unlabelled(harvested.quads)
    assert [(each.field, each.lost) for each in coverage.fields.values() if each.lost] == []
    assert coverage.dropped <= 0.03 * coverage.values


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_describes_the_same_dataset_when_it_is_read_again(portal, harvest, kind):
    def words(dataset):
        files = {(each.url, each.title, each.format) for each in dataset.distributions}
        return dataset.iri, dataset.title, files

    harvester, path, portal.serve, _ = KINDS[kind]
    harvested = harvest(harvester(), path)
    again = {source.record: words(dataset_again(source)) for source in records(harvested)}
    assert again == {each.record: words(each) for each in harvested.datasets if each.record in again}


@pytest.mark.parametrize("kind", KINDS)
def test_a_portal_read_to_its_end_is_complete(portal, harvest, kind):
    harvester, path, portal.serve, _ = KINDS[kind]
    assert harvest(harvester(), path).end.complete


def test_the_shapes_do_find_fault(portal, harvest, violations):
    harvester, path, portal.serve, _ = KINDS["data-json"]
    quads = [
        quad for quad in harvest(harvester(), path).quads if not quad.predicate.value.endswith("accessURL")
    ]
    assert any("accessURL" in line for line in violations(quads))


def test_dcat_that_was_read_and_written_again_breaks_no_rule(portal, harvest, violations):
    harvester, path, portal.serve, _ = KINDS["ckan"]
    again = datasets_in(harvest(harvester(), path).quads)
    quads = [quad for dataset in again for quad in dataset_quads(dataset, portal.root)]
    assert (len(again), violations(quads + catalogue_quads(portal.root, "Again", None, None))) == (3, [])


def test_dcat_out_of_a_page_with_schema_org_breaks_no_rule(tmp_path, violations):
    from tamias.crawl.verbs.read import read

    page = b"""<script type="application/ld+json">{"@context": "https://schema.org/", "@type": "Dataset",
      "@id": "https://example.org/d", "name": "Rain", "description": "Of a year", "keywords": ["rain"],
      "license": "https://creativecommons.org/licenses/by/4.0/", "datePublished": "2022-01-01",
      "temporalCoverage": "2021-01-01/..", "creator": {"@type": "Person", "name": "A. Cloud"},
      "spatialCoverage": {"@type": "Place", "geo": {"@type": "GeoShape", "box": "47 8 48 9"}},
      "distribution": [{"@type": "DataDownload", "contentUrl": "https://example.org/d.csv",
        "encodingFormat": "text/csv", "contentSize": "12 kB"}]}</script>"""
    datasets = datasets_in_page(read(page, base="https://example.org/page", media_type="text/html").quads)
    quads = dataset_quads(datasets[0], "https://example.org/page")
    assert violations(quads + catalogue_quads("https://example.org/page", "Page", None, None)) == []


def test_the_documentation_has_the_coverage_of_every_kind(portal, harvest):
    """`TAMIAS_WRITE_DOCS=1 pytest` with this test writes the table anew."""
    lines = []
    for kind, (harvester, path, serve, _) in KINDS.items():
        portal.serve = serve
        coverage = MappingCoverage()
        for source in harvest(harvester(), path).sources:
            coverage.add(source, map_again(source), mapping_of(source).dropped)
        reasons = sorted({each.reason for each in coverage.fields.values() if each.dropped and each.reason})
        row = (coverage.records, coverage.values, coverage.mapped, coverage.extra, coverage.dropped)
        if coverage.records:
            lines.append(
                f"| {kind} | {' | '.join(map(str, row))}{': ' if reasons else ''}{'; '.join(reasons)} |"
            )
    page = Path(__file__).parents[4] / "docs" / "benchmarks" / "interop.md"
    before, _, rest = page.read_text().partition("<!-- coverage -->\n")
    _, _, after = rest.partition("<!-- end of coverage -->\n")
    head = "| kind | records | values | mapped | extra | dropped |\n|---|---|---|---|---|---|\n"
    table = "".join(f"{line}\n" for line in lines)
    written = f"{before}<!-- coverage -->\n\n{head}{table}\n<!-- end of coverage -->\n{after}"
    if os.environ.get("TAMIAS_WRITE_DOCS"):
        page.write_text(written)
    assert page.read_text() == written
