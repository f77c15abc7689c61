import gzip
from uuid import UUID

import pytest
from pyoxigraph import RdfFormat, parse

from tamias.features.graph_stores.document_files import TurtleFiles, read_index
from tamias.model.errors import DiskFull
from tamias.sinks.outbox import Edition
from tests.messages import saying

URL = "http://example.org/doc?a=[1]"
OWN = "http://example.org/doc?a=%5B1%5D"


def quads(*numbers, graph=OWN):
    return [f"<http://e/s> <http://e/p{number}> _:b{number} <{graph}> .\n".encode() for number in numbers]


def edition(url=URL):
    return Edition(url, UUID(int=1), None)


def deliver(sink, nquads, url=URL):
    sink.deliver(edition(url), nquads, lambda: None)
    sink.sync()


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "index.jsonl")


@pytest.fixture
def sink(tmp_path):
    sink = TurtleFiles(tmp_path / "turtle")
    yield sink
    sink.close()


@pytest.fixture
def folder(sink, tmp_path):
    return tmp_path / "turtle"


def test_a_document_in_its_own_graph_is_a_turtle_file(sink, folder):
    deliver(sink, quads(1, 2))
    (file,) = files(folder)
    assert file.suffix == ".ttl"
    assert len(list(parse(file.read_bytes(), format=RdfFormat.TURTLE))) == 2


@pytest.mark.parametrize("graph", ["http://example.org/other", "http://example.org/doc?a=%5B1%5D#graph=x"])
def test_a_document_with_another_graph_is_a_trig_file(sink, folder, graph):
    deliver(sink, quads(1) + quads(2, graph=graph))
    (file,) = files(folder)
    assert file.suffix == ".trig"
    names = {str(quad.graph_name) for quad in parse(file.read_bytes(), format=RdfFormat.TRIG)}
    assert names == {f"<{OWN}>", f"<{graph}>"}


def test_the_same_delivery_twice_leaves_the_same_files(sink, folder):
    deliver(sink, quads(1, 2))
    before = {file: file.read_bytes() for file in files(folder)}
    deliver(sink, quads(1, 2))
    assert {file: file.read_bytes() for file in files(folder)} == before


def test_a_document_that_changes_its_form_has_one_file(sink, folder):
    deliver(sink, quads(1))
    deliver(sink, quads(1, graph="http://example.org/other"))
    assert [file.suffix for file in files(folder)] == [".trig"]
    assert read_index(folder) == {URL: str(files(folder)[0].relative_to(folder))}


def test_a_document_without_quads_is_taken_away(sink, folder):
    deliver(sink, quads(1))
    deliver(sink, [])
    assert (files(folder), read_index(folder)) == ([], {})


def test_the_index_says_which_file_is_which(sink, folder):
    urls = [f"http://example.org/{number}" for number in range(5)]
    for url in urls:
        deliver(sink, quads(1), url)
    index = read_index(folder)
    assert sorted(index) == urls
    assert sorted(folder / file for file in index.values()) == files(folder)


def test_a_torn_line_of_the_index_harms_no_other(sink, folder):
    deliver(sink, quads(1), "http://example.org/1")
    with (folder / "index.jsonl").open("ab") as index:
        index.write(b'{"url":"http://exa')
    again = TurtleFiles(folder)
    deliver(again, quads(1), "http://example.org/2")
    again.close()
    assert sorted(read_index(folder)) == ["http://example.org/1", "http://example.org/2"]


@pytest.mark.parametrize("url", ["http://e/../../../etc/passwd", "http://e/" + "x" * 5000, "http://e/a%00b"])
def test_no_url_becomes_a_path(sink, folder, url):
    deliver(sink, quads(1), url)
    (file,) = files(folder)
    assert file.parent.parent == folder
    assert len(file.name) < 80


@pytest.mark.parametrize("packed_first", [True, False])
def test_a_file_that_is_packed_from_now_on_or_no_more_stands_there_once(tmp_path, packed_first):
    for compress in (packed_first, not packed_first):
        sink = TurtleFiles(tmp_path, compress=compress)
        deliver(sink, quads(1, 2))
        sink.close()
    (file,) = files(tmp_path)
    assert file.name.endswith(".ttl" if packed_first else ".ttl.gz")
    assert read_index(tmp_path) == {URL: str(file.relative_to(tmp_path))}


def test_a_file_may_be_compressed(tmp_path):
    sink = TurtleFiles(tmp_path, compress=True)
    deliver(sink, quads(1, 2))
    sink.close()
    (file,) = files(tmp_path)
    assert file.name.endswith(".ttl.gz")
    assert len(list(parse(gzip.decompress(file.read_bytes()), format=RdfFormat.TURTLE))) == 2


def test_a_delivery_that_is_cut_short_leaves_the_file_as_it_was(sink, folder):
    def torn():
        yield quads(1)[0]
        raise ZeroDivisionError

    deliver(sink, quads(7))
    before = files(folder)[0].read_bytes()
    with pytest.raises(ZeroDivisionError):
        sink.deliver(edition(), torn(), lambda: None)
    assert [file.read_bytes() for file in files(folder)] == [before]


def test_a_full_disk_is_told(sink, folder, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fdatasync", full)
    with pytest.raises(DiskFull, check=saying()):
        deliver(sink, quads(1))
    assert files(folder) == []
