"""What `tamias serve` publishes, read by the harvesters of others and compared with what was harvested.

Started by `make nightly` only.
"""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from servers import ckanext_dcat
from servers.packages import NotRun, pip
from servers.running import free_port, running

pytestmark = pytest.mark.skipif(not os.environ.get("TAMIAS_NIGHTLY"), reason="started by `make nightly` only")
TAMIAS = [sys.executable, "-m", "tamias"]
COUNT = 130
EU = "http://publications.europa.eu/resource/authority/"
BY = "https://creativecommons.org/licenses/by/4.0/"
EXTRAS = {
    "issued": "2020-05-01",
    "modified": "2021-06-01",
    "frequency": f"{EU}frequency/ANNUAL",
    "language": json.dumps([f"{EU}language/ENG"]),
    "theme": json.dumps([f"{EU}data-theme/ENVI"]),
    "temporal_start": "2010-01-01",
    "temporal_end": "2019-12-31",
    "access_rights": f"{EU}access-right/PUBLIC",
    "version_notes": "Corrected.",
    "applicable_legislation": json.dumps(["http://data.europa.eu/eli/reg_impl/2023/138/oj"]),
    "hvd_category": json.dumps(["http://data.europa.eu/bna/c_ac64a52d"]),
}


class TownPortal:
    """A CKAN on the loopback address, and the files of its datasets."""

    def __init__(self):
        portal = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                split = urlsplit(self.path)
                query = {name: values[-1] for name, values in parse_qs(split.query).items()}
                kind, body = portal.answer(split.path, query)
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.server.server_port}/"
        self.records = [self.record(number) for number in range(COUNT)]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def record(self, number):
        url = f"{self.root}files/{number}.csv"
        return {
            "id": f"{number:08d}", "name": f"trees-{number}", "title": f"Trees {number}",
            "notes": f"Of district {number}.", "version": f"3.{number}", "license_url": BY,
            "url": f"https://parks.example.org/{number}", "metadata_modified": "2024-01-02T03:04:05",
            "tags": [{"name": "green"}, {"name": f"n{number}"}],
            "organization": {"id": "o1", "name": "parks", "title": "Parks Office"},
            "maintainer": "Tree desk", "maintainer_email": "trees@example.org",
            "author": "Survey", "author_email": "survey@example.org",
            "extras": [{"key": "identifier", "value": f"urn:x:{number}"},
                       *({"key": key, "value": value} for key, value in EXTRAS.items())],
            "resources": [{
                "id": f"r{number}", "name": "Table", "description": "One row for each tree.", "url": url,
                "download_url": url, "size": 4, "license": BY, "format": "CSV", "mimetype": "text/csv",
                "hash": "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            }],
        }  # fmt: skip

    def answer(self, path, query):
        if path.startswith("/files/"):
            return "text/csv", f"a\n{path[7:-4]}\n".encode()
        action = path.removeprefix("/api/3/action/")
        if action == "status_show":
            result = {"site_title": "Town"}
        elif action == "package_search":
            start, rows = int(query["start"]), int(query["rows"])
            result = {"count": COUNT, "results": self.records[start : start + rows]}
        else:
            return "text/plain", b""
        return "application/json", json.dumps({"success": True, "result": result}).encode()


@contextmanager
def service(folder):
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    command = [*TAMIAS, "serve", "--data", folder / "data", "--port", str(port), "--no-crawl"]
    environment = {"TAMIAS_SECRET": "x" * 20, "TAMIAS_SERVE__ADDRESS": base}
    with running(command, f"{base}/healthz", folder, environment=environment):
        yield base


@pytest.fixture(scope="module")
def harvested(tmp_path_factory):
    """The portal, and a service over what was harvested and archived from it."""
    folder, portal = tmp_path_factory.mktemp("out"), TownPortal()
    options = ["--depth", "1", "--delay", "0", "--allow-private", "--workers", "1", "--sink", "archive"]
    subprocess.run(
        [*TAMIAS, "crawl", "--data", folder / "data", f"ckan:{portal.root}", *options],
        check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    with service(folder) as base:
        yield portal, base
    portal.server.shutdown()
    portal.server.server_close()


def taken(url):
    try:
        return ckanext_dcat.harvested(url)
    except NotRun as reason:
        pytest.fail(str(reason))


def test_ckan_takes_a_portals_records_from_our_pages_field_by_field(harvested):
    portal, base = harvested
    pages, found = taken(f"{base}/catalog.ttl?portal={portal.root}")
    assert (pages, len(found)) == (2, COUNT)
    again = {each["title"]: each for each in found}
    for record in portal.records:
        got = again[record["title"]]
        extras = {each["key"]: each["value"] for each in got["extras"]}
        for field in ("title", "notes", "version", "url"):
            assert got[field] == record[field]
        assert sorted(tag["name"] for tag in got["tags"]) == sorted(tag["name"] for tag in record["tags"])
        expected = {each["key"]: each["value"] for each in record["extras"]} | {
            "publisher_name": "Parks Office",
            "contact_name": "Tree desk", "contact_email": "trees@example.org",
            "creator_name": "Survey", "creator_email": "survey@example.org",
        }  # fmt: skip
        assert {key: extras.get(key) for key in expected} == expected
        (resource,) = got["resources"]
        (source,) = record["resources"]
        same = ("name", "description", "url", "download_url", "size", "hash", "license")
        assert {name: resource[name] for name in same} == {name: source[name] for name in same}


def test_ckan_takes_the_archive_from_our_pages_each_dataset_once(harvested):
    portal, base = harvested
    _, found = taken(f"{base}/catalog.ttl")
    files = {each["resources"][0]["url"]: each for each in found}
    names = {f"{portal.root}files/{number}.csv" for number in range(COUNT)}
    archived = {
        resource["url"]: (each, resource)
        for each in found
        for resource in each["resources"]
        if resource["url"] in names or resource.get("download_url", "").startswith(base)
    }
    assert len(found) == len(
        {each["uri"] for each in ({e["key"]: e["value"] for e in one["extras"]} for one in found)}
    )
    assert names <= set(archived) | set(files)
    for each in found:
        copies = [one for one in each["resources"] if one.get("download_url", "").startswith(base)]
        assert [one["hash_algorithm"].rpartition("_")[2] for one in copies] == ["sha256"]
        assert each["version"] == "1"


OAI_CLIENT = """
import json, sys
from sickle import Sickle
client = Sickle(sys.argv[1])
told = client.Identify()
formats = sorted(each.metadataPrefix for each in client.ListMetadataFormats())
records = [[each.header.identifier, each.header.datestamp, each.metadata]
           for each in client.ListRecords(metadataPrefix="oai_dc")]
names = [each.identifier for each in client.ListIdentifiers(metadataPrefix="dcat")]
one = client.GetRecord(identifier=names[0], metadataPrefix="dcat").raw
print(json.dumps([told.repositoryName, told.granularity, formats, records, names, one]))
"""


def test_a_client_of_oai_pmh_reads_every_record(harvested):
    portal, base = harvested
    try:
        programs = pip("sickle==0.7.0")
    except NotRun as reason:
        pytest.fail(str(reason))
    done = subprocess.run(
        [programs / "python", "-c", OAI_CLIENT, f"{base}/oai"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    name, granularity, formats, records, names, one = json.loads(done.stdout)
    assert (name, granularity) == ("Archive of datasets", "YYYY-MM-DDThh:mm:ssZ")
    assert formats == ["dcat", "oai_dc"]
    sources = sorted(metadata["source"][0] for _, _, metadata in records)
    assert [each for each in sources if "/files/" in each] == sorted(
        f"{portal.root}files/{number}.csv" for number in range(COUNT)
    )
    assert sorted(names) == sorted(identifier for identifier, _, _ in records)
    assert "dcat#" in one
