"""Exports of the archive, each read back by a reader of its format."""

import hashlib
import io
import json
import zipfile

import pytest
from warcio.archiveiterator import ArchiveIterator

from tamias.features.warc.warc_writer import WarcWriter
from tamias.model.capture import Body, Capture, Hop, Outcome

URL = "http://data.example/a.csv"
OTHER = "http://other.example/../copy?x=1&y=<2>"
VERSIONS = [b"id\n1\n", b"id\n1\n2\n", b"id\n1\n"]
LARGE = b"0123456789abcdef" * 600_000


@pytest.fixture
def kept(filled):
    filled.put(URL, *VERSIONS, title="A table")
    filled.put(OTHER, VERSIONS[0], redirect="http://other.example/final.csv")
    filled.put("http://large.example/", LARGE, media_type="application/octet-stream")
    filled.watch("http://data.example/none.csv")
    return filled


def checked_bag(bag):
    """The payload of a bag, a mapping of paths to bytes, after every promise of it was looked at."""
    assert bag["bagit.txt"] == b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
    payload = {path: content for path, content in bag.items() if path.startswith("data/")}
    assert listed(bag["manifest-sha256.txt"]) == digests(payload)
    tags = {path: content for path, content in bag.items() if path not in payload}
    del tags["tagmanifest-sha256.txt"]
    assert listed(bag["tagmanifest-sha256.txt"]) == digests(tags)
    oxum = f"Payload-Oxum: {sum(map(len, payload.values()))}.{len(payload)}\n"
    assert oxum.encode() in bag["bag-info.txt"]
    return payload


def listed(manifest):
    return dict(line.split("  ", 1)[::-1] for line in manifest.decode().splitlines())


def digests(files):
    return {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}


def unzipped(content):
    with zipfile.ZipFile(io.BytesIO(content)) as package:
        assert package.testzip() is None
        return {name: package.read(name) for name in package.namelist()}


def in_folder(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_bag_on_stdout_has_every_version_of_every_resource(tamias, kept):
    result = tamias("export", "--format", "bagit", text=False)
    files = unzipped(result.stdout)
    assert all(path.startswith("bag/") for path in files)
    payload = checked_bag({path.removeprefix("bag/"): content for path, content in files.items()})
    bodies = [content for path, content in payload.items() if not path.endswith("resource.json")]
    assert sorted(bodies, key=len) == sorted([*VERSIONS, VERSIONS[0], LARGE], key=len)


def test_a_bag_in_a_folder_has_the_resource_that_was_chosen(tamias, kept, tmp_path):
    assert tamias("export", "--format", "bagit", "--url", URL, "-o", "out/bag").returncode == 0
    payload = checked_bag(in_folder(tmp_path / "out" / "bag"))
    (told,) = [json.loads(content) for path, content in payload.items() if path.endswith("resource.json")]
    versions = told["dataset"]["versions"]
    assert [payload[f"data/{told['files'][each['id']]}"] for each in versions] == VERSIONS
    assert told["captures"][0]["status"] == 200
    assert not (tmp_path / "out" / "bag.part").exists()


def test_a_folder_that_is_there_is_left_alone(tamias, kept, tmp_path):
    (tmp_path / "bag").mkdir()
    result = tamias("export", "--format", "bagit", "-o", "bag")
    assert result.returncode == 2
    assert "already exists" in result.stderr


@pytest.mark.parametrize("form", ["bagit", "ro-crate", "warc", "wacz"])
def test_a_damaged_version_stops_the_export_and_leaves_nothing(tamias, kept, tmp_path, form):
    kept.flip(hashlib.sha256(VERSIONS[1]).hexdigest())
    result = tamias("export", "--format", form, "--url", URL, "-o", "out.zip")
    assert result.returncode == 1
    assert "is damaged" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["bagit", "ro-crate", "warc", "wacz"])
def test_an_archive_without_versions_has_nothing_to_export(tamias, filled, form):
    result = tamias("export", "--format", form)
    assert result.returncode == 1
    assert "there are no" in result.stderr or "no versions" in result.stderr


def test_a_crate_describes_every_file_that_is_in_it(tamias, kept, tmp_path):
    assert tamias("export", "--format", "ro-crate", "-o", "crate.zip").returncode == 0
    files = unzipped((tmp_path / "crate.zip").read_bytes())
    described = json.loads(files.pop("ro-crate-metadata.json"))
    assert described["@context"] == "https://w3id.org/ro/crate/1.2/context"
    entities = {each["@id"]: each for each in described["@graph"]}
    assert len(entities) == len(described["@graph"])
    told = {name: each for name, each in entities.items() if each["@type"] == "File"}
    assert {name: each["sha256"] for name, each in told.items()} == digests(files)
    assert all(each["contentSize"] == str(len(files[name])) for name, each in told.items())


def test_a_crate_has_a_root_with_all_that_it_must_have(tamias, kept):
    described = json.loads(
        unzipped(tamias("export", "--format", "ro-crate", text=False).stdout)["ro-crate-metadata.json"]
    )
    entities = {each["@id"]: each for each in described["@graph"]}
    descriptor = entities["ro-crate-metadata.json"]
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.2"}
    root = entities[descriptor["about"]["@id"]]
    assert {"@id", "@type", "name", "description", "datePublished", "license", "hasPart"} <= root.keys()
    assert entities[root["license"]["@id"]]["name"]
    reached = [root["@id"]]
    for name in reached:
        reached += [part["@id"] for part in entities[name].get("hasPart", [])]
    assert {name for name, each in entities.items() if each["@type"] == "File"} <= set(reached)


def test_every_reference_of_a_crate_is_to_something_described(tamias, kept):
    result = tamias("export", "--format", "ro-crate", "--url", URL, "--url", OTHER, text=False)
    graph = json.loads(unzipped(result.stdout)["ro-crate-metadata.json"])["@graph"]
    known = {each["@id"] for each in graph} | {"https://w3id.org/ro/crate/1.2"}
    values = [value for each in graph for value in each.values()]
    flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
    assert {each["@id"] for each in flat if isinstance(each, dict)} <= known


def warc_records(content):
    found = []
    for record in ArchiveIterator(io.BytesIO(content), check_digests="raise"):
        headers = dict(record.rec_headers.headers)
        found.append((headers, record.http_headers, record.content_stream().read()))
    return found


def test_a_warc_file_has_every_version_or_refers_to_the_same_body(tamias, kept):
    found = warc_records(tamias("export", "--format", "warc", text=False).stdout)
    answers = [
        (headers["WARC-Target-URI"], headers["WARC-Date"], headers["WARC-Type"], body)
        for headers, _, body in found
        if headers["WARC-Type"] in ("response", "revisit")
    ]
    of_url = [answer[1:] for answer in answers if answer[0] == URL]
    bodies = {body for _, _, _, body in answers}
    assert [date for date, _, _ in of_url] == [f"2026-01-0{day}T00:00:00.000Z" for day in (1, 2, 3)]
    assert {VERSIONS[0], VERSIONS[1], LARGE} <= bodies
    assert sum(kind == "revisit" for _, _, kind, _ in answers) == 2


def test_a_warc_file_tells_the_redirects_and_the_version(tamias, kept):
    found = warc_records(tamias("export", "--format", "warc", "--url", OTHER, text=False).stdout)
    names = [headers["WARC-Target-URI"] for headers, _, _ in found if headers["WARC-Type"] == "resource"]
    assert names == ["dns:other.example"]
    found = [each for each in found if each[0]["WARC-Type"] != "resource"]
    kinds = [headers["WARC-Type"] for headers, _, _ in found]
    assert kinds == ["warcinfo", "response", "response", "metadata"]
    assert found[1][1].get_statuscode() == "302"
    assert found[1][1].get_header("Location") == "http://other.example/final.csv"
    assert found[2][0]["WARC-Target-URI"] == "http://other.example/final.csv"
    assert found[2][0]["WARC-Payload-Digest"] == f"sha256:{hashlib.sha256(VERSIONS[0]).hexdigest()}"
    assert b"versionNumber: 1\r\n" in found[3][2]


def test_what_the_crawl_wrote_to_its_warc_files_comes_once(tamias, kept):
    when = 1_767_225_600_000
    hop = Hop(url=URL, status=200, headers=(("Content-Type", "text/csv"),), address="192.0.2.1")
    body = Body(size=len(VERSIONS[0]), sha256=hashlib.sha256(VERSIONS[0]).hexdigest(), data=VERSIONS[0])
    with WarcWriter(kept.data / "warc", "w", agent="a", accept="b") as writer:
        writer.write(
            Capture(
                url=URL, started_at=when, ended_at=when, outcome=Outcome.OK, reason="", hops=(hop,), body=body
            )
        )
    found = warc_records(tamias("export", "--format", "warc", text=False).stdout)
    of_url = [
        headers["WARC-Date"][:10]
        for headers, _, _ in found
        if headers.get("WARC-Target-URI") == URL and headers["WARC-Type"] in ("response", "revisit")
    ]
    assert sorted(of_url) == ["2026-01-01", "2026-01-02", "2026-01-03"]


def test_a_wacz_leads_to_every_version(tamias, kept, tmp_path):
    assert tamias("export", "--format", "wacz", "-o", "kept.wacz").returncode == 0
    files = unzipped((tmp_path / "kept.wacz").read_bytes())
    entries = [json.loads(line.split(b" ", 2)[2]) for line in files["indexes/index.cdx"].splitlines()]
    assert sum(entry["url"] == URL for entry in entries) == 3
    for entry in entries:
        start = int(entry["offset"])
        member = files[f"archive/{entry['filename']}"][start : start + int(entry["length"])]
        ((headers, _, _),) = warc_records(member)
        assert headers["WARC-Target-URI"] == entry["url"]
