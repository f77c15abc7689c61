"""Dumps are known by content, in every RDF syntax and every usual packing."""

import bz2
import gzip
import hashlib
import io
import tarfile
import zipfile

import pytest

from tamias.content.containers.documents import documents
from tamias.model.capture import Body

RDF = b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
SYNTAXES = {
    "application/rdf+xml": b'<?xml version="1.0"?><rdf:RDF ' + RDF + b"></rdf:RDF>",
    "application/n-triples": b"<http://a/s> <http://a/p> <http://a/o> .\n" * 3,
    "text/turtle": b"@prefix a: <http://a/> .\na:s a:p a:o .\n",
    "application/trix": b'<TriX xmlns="http://www.w3.org/2004/03/trix/trix-1/"></TriX>',
    "application/trig": b"@prefix a: <http://a/> .\na:g { a:s a:p a:o . }\n",
    "application/n-quads": b"<http://a/s> <http://a/p> <http://a/o> <http://a/g> .\n" * 3,
}


def zipped(data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("dump", data)
    return file.getvalue()


def tarred(data):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("dump")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


PACKINGS = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zip": zipped,
    "tar": tarred,
    "tar.gz": lambda data: gzip.compress(tarred(data)),
}


def parts(data):
    body = Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data)
    return list(documents(body, url="http://a.example/dump", declared_type="application/octet-stream"))


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_dump_is_known_by_its_content(syntax, packing):
    [document] = parts(PACKINGS[packing](SYNTAXES[syntax]))
    assert document.media_type == syntax


def test_a_dump_in_two_archives_has_the_graphs_of_both():
    graphs = set()
    for half in (range(1000), range(1000, 2000)):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for number in half:
                archive.writestr(f"http%3A%2F%2Fa.example%2F{number}", SYNTAXES["application/n-triples"])
        graphs |= {part.graph for part in parts(file.getvalue())}
    assert graphs == {f"http://a.example/{number}" for number in range(2000)}
