"""Catalogues that others wrote: what was loaded into them is in the harvest, record by record.

They are started by `make nightly` only.
"""

import json
import os
import re
import subprocess
import sys
import urllib.request

import pytest
from pyoxigraph import RdfFormat, parse
from servers import ckan, pycsw, pygeoapi, rustac
from servers.csw_answers import iso_record

from tests.messages import unsaid

pytestmark = pytest.mark.skipif(not os.environ.get("TAMIAS_NIGHTLY"), reason="started by `make nightly` only")
TAMIAS = [sys.executable, "-m", "tamias"]
SHAPE = {"type": "Polygon", "coordinates": [[[8, 47], [9, 47], [9, 48], [8, 48], [8, 47]]]}
DCT = "http://purl.org/dc/terms/"
DCAT = "http://www.w3.org/ns/dcat#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def harvested(folder, seed):
    """Of each dataset its title, description, keywords and files."""
    options = ["--depth", "0", "--delay", "0", "--allow-private", "--workers", "1"]
    done = subprocess.run(
        [*TAMIAS, "crawl", "--data", folder, seed, *options],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    words = ["export", "--data", folder, "--format", "nquads"]
    export = subprocess.run([*TAMIAS, *words], capture_output=True, check=True)
    said = {}
    for quad in parse(export.stdout, format=RdfFormat.N_QUADS):
        said.setdefault(quad.subject, {}).setdefault(quad.predicate.value, set()).add(quad.object)
    found = []
    for each in said.values():
        if f"{DCAT}Dataset" in {kind.value for kind in each.get(TYPE, ())}:
            files = {
                url.value
                for node in each.get(f"{DCAT}distribution", ())
                for url in said[node][f"{DCAT}accessURL"]
            }
            texts = [
                tuple(sorted(value.value for value in each.get(name, ())))
                for name in (f"{DCT}title", f"{DCT}description", f"{DCAT}keyword")
            ]
            found.append((*texts, tuple(sorted(files))))
    return sorted(found)


def harvest_twice(folder, seed, *options):
    """What the metadata says after a portal was harvested, and once more."""
    environment = {**os.environ, "TAMIAS_SCHEDULE__HARVESTS": "0.5", "TAMIAS_SEEDS__PROBE": "false"}
    visit = ["crawl", "--recrawl", "--delay", "0", "--allow-private", "--workers", "1", *options]
    words = [["add", seed], visit, visit, ["export", "--format", "nquads", "--graph", "metadata"]]
    for verb, *rest in words:
        command = [*TAMIAS, verb, "--data", folder, *rest]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=600, check=True, env=environment
        )
    return done.stdout


def test_pygeoapi_gives_all_its_records_though_its_pages_are_smaller_than_asked_for(started, tmp_path):
    records = [
        {
            "id": f"urn:x:{number}",
            "type": "Feature",
            "geometry": SHAPE,
            "time": {"interval": ["2019-01-01", ".."]},
            "properties": {
                "type": "dataset", "title": f"Trees {number}", "description": f"Of district {number}.",
                "keywords": ["tree", "park"], "created": "2020-01-01", "updated": "2024-01-02T03:04:05Z",
            },
            "links": [{"rel": "enclosure", "href": f"https://files.example.org/{number}.csv",
                       "type": "text/csv"}],
        }
        for number in range(230)
    ]  # fmt: skip
    url = started(pygeoapi, "pygeoapi", records=records)
    expected = sorted(
        ((f"Trees {n}",), (f"Of district {n}.",), ("park", "tree"), (f"https://files.example.org/{n}.csv",))
        for n in range(230)
    )
    assert harvested(tmp_path / "data", f"ogc-records:{url}") == expected


def test_rustac_gives_its_collection_and_all_items(started, tmp_path):
    collection = {
        "type": "Collection", "stac_version": "1.0.0", "id": "scenes", "title": "Scenes",
        "description": "Scenes of a satellite.", "license": "CC-BY-4.0", "keywords": ["satellite"],
        "extent": {"spatial": {"bbox": [[8, 47, 9, 48]]},
                   "temporal": {"interval": [["2020-01-01T00:00:00Z", None]]}},
        "links": [],
    }  # fmt: skip
    items = [
        {
            "type": "Feature", "stac_version": "1.0.0", "id": f"scene-{number}", "collection": "scenes",
            "geometry": SHAPE, "bbox": [8, 47, 9, 48], "links": [],
            "properties": {"datetime": "2020-12-11T22:38:32.125Z", "title": f"Scene {number}",
                           "description": f"Number {number}."},
            "assets": {"visual": {"href": f"https://files.example.org/{number}.tif", "type": "image/tiff"}},
        }
        for number in range(250)
    ]  # fmt: skip
    url = started(rustac, "rustac", collection=collection, items=items)
    expected = [
        ((f"Scene {n}",), (f"Number {n}.",), (), (f"https://files.example.org/{n}.tif",)) for n in range(250)
    ]
    expected.append((("Scenes",), ("Scenes of a satellite.",), ("satellite",), ()))
    got = [(title, text, words, tuple(file for file in files if "files.example.org" in file))
           for title, text, words, files in harvested(tmp_path / "data", f"stac:{url}")]  # fmt: skip
    assert got == sorted(expected)


def town_records(count):
    return {
        f"r{n:03d}": iso_record(
            f"r{n}", f"Trees {n}", f"Of district {n}.", f"2024-{1 + n // 13:02d}-02T03:04:05"
        )
        for n in range(count)
    }


def test_pycsw_gives_all_its_records_though_its_pages_are_smaller_than_asked_for(started, tmp_path):
    url = started(pycsw, "pycsw", records=town_records(130))
    expected = sorted(
        (
            ("Arbres", f"Trees {n}"), (f"Of district {n}.",), ("parks", "trees"),
            tuple(sorted((f"https://files.example.org/r{n}.csv", "https://maps.example.org/wms"))),
        )
        for n in range(130)
    )  # fmt: skip
    assert harvested(tmp_path / "data", f"csw:{url}") == expected


def test_pycsw_is_asked_for_changes_by_their_dates(started, tmp_path):
    # Without addresses of files, which would be visited too.
    records = {
        name: record.replace("https://files.example.org/", "urn:files:").replace("https://maps", "urn:maps")
        for name, record in town_records(130).items()
    }
    url = started(pycsw, "pycsw", records=records)
    said = harvest_twice(tmp_path / "data", f"csw:{url}")
    assert not unsaid(said, "130", "4", "ISO", "19139")
    reason = "13 of 130 records read, those changed since 2024-10-02T02:59:05 by dct:modified"
    assert not unsaid(said, reason, part=2)


def action(url, name, **words):
    """What CKAN itself answers."""
    query = "&".join(f"{key}={value}" for key, value in words.items())
    with urllib.request.urlopen(f"{url}api/3/action/{name}?{query}") as answer:
        return json.load(answer)["result"]


def in_order(record):
    """CKAN lists extras in one order in its search, and in another when it shows the record."""
    return {**record, "extras": sorted(record["extras"], key=lambda each: each["key"])}


def test_a_real_ckan_is_harvested_record_by_record(started, tmp_path, monkeypatch):
    """CKAN 2.12 with PostgreSQL; in the place of Solr there is a stand-in (see `servers/ckan.py`)."""
    records = [
        {
            "name": f"trees-{n}", "title": f"Trees {n}", "notes": f"Of district {n}.", "owner_org": "parks",
            "tags": [{"name": "green"}, {"name": f"n{n}"}], "license_id": "cc-by", "version": f"1.{n}",
            "maintainer": "Desk", "maintainer_email": "desk@example.org",
            "extras": [{"key": "frequency", "value": "annual"}, {"key": "district", "value": str(n)}],
            "resources": [{"url": f"https://files.example.org/{n}.csv", "format": "CSV", "name": "Table"}],
        }
        for n in range(60)
    ]  # fmt: skip
    organisations = [{"name": "parks", "title": "Parks Office"}]
    url = started(ckan, "CKAN", organisations=organisations, records=records)
    expected = sorted(
        ((f"Trees {n}",), (f"Of district {n}.",), ("green", f"n{n}"), (f"https://files.example.org/{n}.csv",))
        for n in range(60)
    )
    # The robots.txt of every CKAN forbids its API.
    monkeypatch.setenv("TAMIAS_PERMIT__GRANTED", "127.0.0.1")
    assert harvested(tmp_path / "data", f"ckan:{url}") == expected
    names = action(url, "package_list")
    assert len(names) == 60
    for name in names[:3]:
        record = action(url, "package_show", id=name)
        kept = subprocess.run(
            [*TAMIAS, "get", "--data", tmp_path / "data", f"{url}#{record['id']}"],
            capture_output=True,
            check=True,
        )
        assert in_order(json.loads(kept.stdout)) == in_order(record)
    said = harvest_twice(tmp_path / "again", f"ckan:{url}", "--exclude", "files.example.org")
    assert "60 datasets of 60 counted" in said
    # All of them were made within the five minutes by which an index may lag: they are read again.
    assert re.search(r"60 of 60 datasets read, those changed since [^;]* by metadata_modified, in \d", said)
