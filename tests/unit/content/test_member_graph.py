"""Members of an archive that are named after a URI belong to the graph of that URI."""

import hashlib
import io
import tarfile
import zipfile
from urllib.parse import quote

import py7zr
import pytest

from tamias.content.containers.documents import documents, member_graph
from tamias.model.capture import Body
from tamias.model.finding import Problem

TRIPLE = b"<http://a/s> <http://a/p> <http://a/o> .\n"
URL = "http://a.example/dump.zip"


@pytest.mark.parametrize(
    ("name", "graph"),
    [
        ("http%3A%2F%2Fa.example%2Fthing", "http://a.example/thing"),
        ("https%3a%2f%2fa.example%2fthing%3fx%3d1%23me", "https://a.example/thing?x=1#me"),
        ("http%3A%2F%2Fa.example%2Fthing.rdf", "http://a.example/thing.rdf"),
        ("dump/2024/http%3A%2F%2Fa.example%2Fthing", "http://a.example/thing"),
        ("http%3A%2F%2Fa.example%2Fgr%C3%BC%C3%9Fe", "http://a.example/grüße"),
        ("http%3A%2F%2Fa.example%2Fa%2520b", "http://a.example/a%20b"),
        ("HTTP%3A%2F%2FA.EXAMPLE%2F", "HTTP://A.EXAMPLE/"),
        ("http%3A%2F%2Fa.example%2Fa%20b", None),
        ("http%3A%2F%2Fa.example%2F%3E%0A", None),
        ("http%3A%2F%2Fa.example%2F%FF", None),
        ("http%3A%2F%2F", None),
        ("urn%3Aisbn%3A1", None),
        ("file%3A%2F%2F%2Fetc%2Fpasswd", None),
        ("thing.nt", None),
        ("a%20b.nt", None),
        ("http:/a.example/thing", None),
        ("", None),
    ],
)
def test_the_name_spells_the_graph(name, graph):
    assert member_graph(name) == graph


def parts(data):
    body = Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data)
    return list(documents(body, url=URL, declared_type=None))


def zipped(names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, TRIPLE)
    return file.getvalue()


def tarred(names):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = len(TRIPLE)
            archive.addfile(entry, io.BytesIO(TRIPLE))
    return file.getvalue()


def sevenzipped(names):
    file = io.BytesIO()
    with py7zr.SevenZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(TRIPLE, name)
    return file.getvalue()


@pytest.mark.parametrize("pack", [zipped, tarred, sevenzipped])
def test_each_member_of_an_archive_has_its_graph(pack):
    graphs = ["http://a.example/1", "http://b.example/2"]
    found = parts(pack([quote(graph, safe="") for graph in graphs]))
    assert [(part.graph, part.url, part.base) for part in found] == [(graph, URL, graph) for graph in graphs]


def test_an_ordinary_member_has_none():
    [document] = parts(zipped(["a.nt"]))
    assert (document.graph, document.base) == (None, URL)


def test_a_name_that_spells_another_kind_of_iri_gets_a_graph_of_the_dump_and_is_told():
    problem, document = parts(zipped(["urn%3Aisbn%3A1 <x>"]))
    assert isinstance(problem, Problem)
    assert "spells no http(s) IRI" in problem.what
    assert document.graph == URL + "#urn%3Aisbn%3A1%20%3Cx%3E"


@pytest.mark.nightly
def test_more_members_than_a_classic_zip_can_count_keep_their_graphs():
    count = 65_536
    data = zipped(f"http%3A%2F%2Fa.example%2F{i}" for i in range(count))
    body = Body(size=len(data), sha256="", data=data)
    graphs = {part.graph for part in documents(body, url=URL, declared_type=None)}
    assert len(graphs) == count
