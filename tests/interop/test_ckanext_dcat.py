"""A record of CKAN that became DCAT here becomes the same record again in ckanext-dcat's own parser.

Started by `make nightly` only: the parser needs CKAN's code.
"""

import json
import os

import pytest
from pyoxigraph import RdfFormat, Triple, serialize
from servers import ckanext_dcat
from servers.packages import NotRun

from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.mapping import map_record
from tamias.features.portals.records.ckan import MAPPING

pytestmark = pytest.mark.skipif(not os.environ.get("TAMIAS_NIGHTLY"), reason="started by `make nightly` only")
ROOT = "https://data.example.org/"
EU = "http://publications.europa.eu/resource/authority/"
BY = "https://creativecommons.org/licenses/by/4.0/"
FILE = "https://files.example.org/trees.csv"
EXTRAS = {
    "identifier": "urn:x:trees",
    "issued": "2020-05-01",
    "modified": "2021-06-01",
    "frequency": f"{EU}frequency/ANNUAL",
    "language": json.dumps([f"{EU}language/ENG"]),
    "theme": json.dumps([f"{EU}data-theme/ENVI"]),
    "temporal_start": "2010-01-01",
    "temporal_end": "2019-12-31",
    "conforms_to": json.dumps(["https://example.org/standard"]),
    "access_rights": f"{EU}access-right/PUBLIC",
    "version_notes": "Corrected.",
    "applicable_legislation": json.dumps(["http://data.europa.eu/eli/reg_impl/2023/138/oj"]),
    "hvd_category": json.dumps(["http://data.europa.eu/bna/c_ac64a52d"]),
}
RESOURCE = {
    "id": "r1", "name": "Table", "description": "One row for each tree.", "url": FILE, "download_url": FILE,
    "size": 1234, "hash": "da39a3ee5e6b4b0d3255bfef95601890afd80709", "license": BY,
    "format": "CSV", "mimetype": "text/csv",
}  # fmt: skip
RECORD = {
    "id": "4d2f", "name": "trees", "title": "Trees of the city", "notes": "Every tree.", "version": "3.1",
    "url": "https://parks.example.org/trees", "tags": [{"name": "green"}, {"name": "trees"}],
    "license_url": BY, "organization": {"id": "o1", "name": "parks", "title": "Parks Office"},
    "maintainer": "Tree desk", "maintainer_email": "trees@example.org", "author": "Survey",
    "author_email": "survey@example.org", "resources": [RESOURCE],
    "extras": [{"key": key, "value": value} for key, value in EXTRAS.items()],
}  # fmt: skip


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    """What ckanext-dcat makes of our DCAT."""
    quads = catalogue_quads(ROOT, "Town", None, ROOT)
    quads += map_record(MAPPING, json.dumps(RECORD).encode(), ROOT).quads
    triples = tmp_path_factory.mktemp("dcat") / "catalogue.nt"
    written = [Triple(quad.subject, quad.predicate, quad.object) for quad in quads]
    triples.write_bytes(serialize(written, format=RdfFormat.N_TRIPLES))
    try:
        (found,) = ckanext_dcat.parsed(triples)
    except NotRun as reason:
        pytest.fail(str(reason))
    return found


@pytest.mark.parametrize("field", ["title", "notes", "version", "url", "tags"])
def test_a_field_of_the_record_comes_back(again, field):
    assert again[field] == RECORD[field]


@pytest.mark.parametrize("key", EXTRAS)
def test_an_extra_comes_back(again, key):
    assert {each["key"]: each["value"] for each in again["extras"]}[key] == EXTRAS[key]


def test_agents_come_back(again):
    extras = {each["key"]: each["value"] for each in again["extras"]}
    assert extras["publisher_name"] == "Parks Office"
    assert (extras["contact_name"], extras["contact_email"]) == ("Tree desk", "trees@example.org")
    assert (extras["creator_name"], extras["creator_email"]) == ("Survey", "survey@example.org")


def test_a_resource_comes_back_with_its_format_as_the_authoritys_iri(again):
    (resource,) = again["resources"]
    same = ("name", "description", "url", "download_url", "size", "hash", "license")
    assert {name: resource[name] for name in same} == {name: RESOURCE[name] for name in same}
    assert resource["format"] == f"{EU}file-type/CSV"
    assert resource["mimetype"] == "https://www.iana.org/assignments/media-types/text/csv"
