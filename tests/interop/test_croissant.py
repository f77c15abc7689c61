"""The JSON-LD of a dataset's page is Croissant to mlcroissant, which also reads the records by it.

mlcroissant brings 370 MB of others with it, so `make nightly` puts it into an environment of its own.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tamias.features.dcat.terms import CatalogueBases
from tamias.features.pages.jsonld import dataset_jsonld
from tamias.model.profile import ColumnProfile, Profile, TableProfile, Types
from tamias.model.resource import Resource, Source, Version

PYTHON = Path(sys.prefix) / "croissant" / "bin" / "python"
CONTENT = b"id,name,day\n1,a,2020-01-01\n2,b,2020-01-02\n"
READ = """
import json, sys
import mlcroissant
dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
records = [{key: str(value) for key, value in each.items()} for each in dataset.records("records-1")]
about = dataset.metadata
version, licence = about.ctx.conforms_to.value, about.license
report = about.issues.report()
print(json.dumps({"records": records, "report": report, "version": version, "licence": licence}))
"""

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="mlcroissant is not there; make nightly")


@pytest.fixture
def described(tmp_path, request):
    """What our page tells of a table, with the file beside it instead of on a server."""
    sources = getattr(request, "param", ())
    url, digest = "http://data.example/a.csv", hashlib.sha256(CONTENT).hexdigest()
    resource = Resource(
        id="9637fc70d9dc55fb671d5c1f", url=url, title="Names", added_at=0, versions=1, sources=sources
    )
    version = Version(
        resource=resource.id, number=1, captured_at=0, sha256=digest, byte_size=len(CONTENT),
        media_type="text/csv", capture="",
    )  # fmt: skip
    columns = (
        ColumnProfile(name="id", number=1, datatype="integer"),
        ColumnProfile(name="name", number=2),
        ColumnProfile(name="day", number=3, datatype="date"),
    )
    table = TableProfile(
        name="a", header=True, rows=2, width=3, delimiter=",", encoding="utf-8", columns=columns
    )
    profile = Profile(size=len(CONTENT), types=Types(found="text/csv"), tables=(table,))
    (tmp_path / "a.csv").write_bytes(CONTENT)
    told = dataset_jsonld(resource, [version], profile, CatalogueBases())
    told["distribution"][0]["contentUrl"] = "a.csv"
    return told


def read(told, folder):
    place = folder / "croissant.json"
    place.write_text(json.dumps(told))
    return subprocess.run(
        [PYTHON, "-c", READ, place], check=False, capture_output=True, text=True, timeout=300, cwd=folder
    )


def test_mlcroissant_reads_the_records_and_misses_only_the_licence(described, tmp_path):
    done = read(described, tmp_path)
    told = json.loads(done.stdout)
    assert [next(iter(each.values())) for each in told["records"]] == ["1", "2"]
    assert told["report"].count("  -  ") == 1
    assert "schema.org/license" in told["report"]
    assert (told["version"], "not standard" in done.stderr) == ("http://mlcommons.org/croissant/1.1", False)


@pytest.mark.parametrize(
    "described", [[Source(source="", portal="http://p.example/", licence="cc-by-4.0")]], indirect=True
)
def test_mlcroissant_misses_nothing_where_a_portal_names_the_licence(described, tmp_path):
    told = json.loads(read(described, tmp_path).stdout)
    eu = "http://publications.europa.eu/resource/authority/licence/"
    assert (told["report"], told["licence"]) == ("", [f"{eu}CC_BY_4_0"])


def test_mlcroissant_refuses_a_file_with_another_digest(described, tmp_path):
    described["distribution"][0]["sha256"] = "0" * 64
    assert read(described, tmp_path).returncode != 0
