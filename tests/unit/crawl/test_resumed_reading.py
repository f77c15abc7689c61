"""A body whose reading is interrupted again and again gives the same bytes as one that is read at once."""

import io
import tarfile
from contextlib import contextmanager
from hashlib import sha256

import pytest
import zstandard

from tamias.crawl.analysis.extractor import Extractor
from tamias.model.capture import Body, Capture, Extent, Hop, Outcome
from tamias.settings import Settings

URL = "http://dumps.example/dump"
NODE = "_:b4f1e2d3c4b5a69788"
"""A label that looks like the name which the parser gives to a node without one."""


class Killed(Exception):
    """The process is no more."""


class Store:
    """Has what a process leaves behind when it dies: the file up to a position, and the position."""

    def __init__(self, lives):
        self.start = None
        self.durable = b""
        self.links = []
        self._lives = lives
        self._written, self._found = bytearray(), []

    @property
    def extent(self):
        return Extent(0, 0, 0, 0)

    @contextmanager
    def document(self):
        self._written, self._found = bytearray(self.durable), [*self.links]
        yield self

    def write(self, chunk):
        self._written += chunk

    def take_links(self, references, _base, _kind):
        self._found += references

    def save(self, reading):
        self.durable, self.links, self.start = bytes(self._written), self._found, reading
        self._lives -= 1
        if self._lives >= 0:
            raise Killed

    def end(self):
        self.durable, self.links = bytes(self._written), self._found


def lines(count, begin=0):
    return "".join(
        f'<http://dumps.example/{number}> <urn:p> "{number} words" .\n'
        f"{NODE}{number % 7} <urn:of> <http://dumps.example/{number}> .\n"
        for number in range(begin, begin + count)
    )


def turtle(count, label=""):
    yield "@prefix a: <http://a.example/> .\n@base <http://base.example/> .\n"
    for number in range(count):
        yield f'<r{number}> a:p [ a:q "{number}" ] ; a:r _:n{number % 5}{label} .\n'
        if number == count // 2:
            yield "@prefix a: <http://later.example/> .\n"


def tar_of_three():
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for number in range(3):
            member = tarfile.TarInfo(f"part{number}.nt")
            content = lines(120, 1000 * number).encode()
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


DUMPS = {
    "N-Triples": (lines(400).encode(), "application/n-triples"),
    "N-Triples with faults": ("<urn:a> <urn:b> .\n".join(lines(40) for _ in range(9)).encode(), "text/plain"),
    "N-Quads in zstd": (
        zstandard.compress(lines(400).replace(" .\n", " <http://dumps.example/g> .\n").encode()),
        "application/zstd",
    ),
    "Turtle": ("".join(turtle(600)).encode(), "text/turtle"),
    "Turtle with labels like no label": ("".join(turtle(600, "f1e2d3c4b5a69788")).encode(), "text/turtle"),
    "UTF-16": ("".join(turtle(600)).encode("utf-16"), "text/turtle; charset=utf-16"),
    "tar in gzip": (tar_of_three(), "application/gzip"),
    "RDF/XML, which has no positions": (
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="urn:a:">'
        + b"".join(
            b'<rdf:Description rdf:about="urn:%d"><a:p>v</a:p></rdf:Description>' % n for n in range(900)
        )
        + b"</rdf:RDF>",
        "application/rdf+xml",
    ),
}


@pytest.mark.parametrize("name", DUMPS)
def test_what_is_read_is_the_same_however_often_it_is_interrupted(monkeypatch, name):
    monkeypatch.setattr("tamias.crawl.analysis.extractor.STORED_BYTES", 5000)
    monkeypatch.setattr("tamias.analyse.rdf.turtle.POSITION_BYTES", 1500)
    monkeypatch.setattr("tamias.analyse.rdf.turtle.BLOCK", 1000)
    data, media_type = DUMPS[name]
    suffix = ".nt" if media_type == "text/plain" else ".nq.zst" if "zstd" in media_type else ""
    hop = Hop(url=URL + suffix, status=200, headers=(("content-type", media_type),), address="")
    body = Body(size=len(data), sha256=sha256(data).hexdigest(), data=data)
    capture = Capture(
        url=URL + suffix, started_at=0, ended_at=0, outcome=Outcome.OK, reason="", hops=(hop,), body=body
    )

    def read(lives):
        store, deaths = Store(lives), 0
        while True:
            extractor = Extractor(Settings())
            try:
                found = extractor.extract(capture, body, store.document, store.take_links, "dump", store)
            except Killed:
                deaths += 1
                continue
            store.end()
            return store, found, deaths

    calm, whole, _ = read(0)
    disturbed, found, deaths = read(1000)
    assert calm.durable
    assert disturbed.durable == calm.durable
    assert set(disturbed.links) == set(calm.links)
    assert (found.quads, found.media_type, found.problems) == (whole.quads, whole.media_type, whole.problems)
    assert deaths >= (0 if "no positions" in name or "like no label" in name else 3)
