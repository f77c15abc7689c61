import hashlib
import io
import json
import os
import zipfile
from functools import partial

import pytest
from warcio.archiveiterator import ArchiveIterator

from tamias.features.warc.warc_writer import WarcWriter
from tamias.features.warc_exports import wacz
from tamias.features.warc_exports.wacz import export_wacz
from tamias.model.capture import Body, Capture, Hop, Outcome
from tamias.model.errors import TamiasError


def capture(url, media_type, status=200, data=None):
    data = os.urandom(500) if data is None else data
    return Capture(
        url=url,
        started_at=1_700_000_000_000,
        ended_at=1_700_000_000_100,
        outcome=Outcome.OK,
        reason="",
        hops=(Hop(url=url, status=status, headers=(("Content-Type", media_type),), address="192.0.2.1"),),
        body=Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data),
    )


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Twenty pages and twenty documents, in several files."""
    monkeypatch.setattr(wacz, "LineSorter", partial(wacz.LineSorter, run_bytes=2000))
    with WarcWriter(tmp_path, "p", agent="a", accept="b", max_bytes=10_000) as writer:
        for number in range(20):
            writer.write(capture(f"http://z{number}.example/", "text/html; charset=utf-8"))
            writer.write(capture(f"http://a{number}.example/", "text/turtle"))
        writer.write(capture("http://gone.example/", "text/html", status=404))
    out = io.BytesIO()
    export_wacz(tmp_path, out, title="A crawl")
    return zipfile.ZipFile(out)


def index_lines(package):
    return package.read("indexes/index.cdx").splitlines()


def test_the_description_names_every_file_with_its_digest(package):
    described = {each["path"]: each for each in json.loads(package.read("datapackage.json"))["resources"]}
    named = set(package.namelist()) - {"datapackage.json", "datapackage-digest.json"}
    assert described.keys() == named
    for path, resource in described.items():
        content = package.read(path)
        assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert resource["bytes"] == len(content)


def test_the_description_has_a_digest_of_its_own(package):
    told = json.loads(package.read("datapackage-digest.json"))
    assert told["hash"] == f"sha256:{hashlib.sha256(package.read('datapackage.json')).hexdigest()}"


def test_archives_are_stored_as_they_are(package):
    archives = [info for info in package.infolist() if info.filename.startswith("archive/")]
    assert len(archives) > 1
    assert {info.compress_type for info in archives} == {zipfile.ZIP_STORED}


def test_the_index_is_sorted_and_has_every_answer(package):
    lines = index_lines(package)
    assert lines == sorted(lines)
    assert len(lines) == 41


def test_every_line_of_the_index_leads_to_its_record(package):
    for text in index_lines(package):
        entry = json.loads(text.split(b" ", 2)[2])
        content = package.read(f"archive/{entry['filename']}")
        record = next(iter(ArchiveIterator(io.BytesIO(content[int(entry["offset"]) :]))))
        assert record.rec_headers["WARC-Target-URI"] == entry["url"]


def test_the_pages_are_the_html_that_was_there(package):
    head, *pages = map(json.loads, package.read("pages/pages.jsonl").splitlines())
    assert head["format"] == "json-pages-1.0"
    assert sorted(page["url"] for page in pages) == sorted(f"http://z{n}.example/" for n in range(20))
    assert {page["ts"] for page in pages} == {"2023-11-14T22:13:20Z"}


def test_it_can_be_written_to_a_pipe(tmp_path):
    with WarcWriter(tmp_path, "p", agent="a", accept="b") as writer:
        writer.write(capture("http://e.example/", "text/html"))

    class Pipe(io.RawIOBase):
        content = b""

        def writable(self):
            return True

        def write(self, content):
            self.content += bytes(content)
            return len(content)

    pipe = Pipe()
    export_wacz(tmp_path, pipe, title="A crawl")
    assert zipfile.ZipFile(io.BytesIO(pipe.content)).testzip() is None


def test_without_files_there_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(TamiasError, match="--sink warc"):
        export_wacz(tmp_path, io.BytesIO(), title="A crawl")
