"""Brotli has no signature: it is unpacked where the type or the name says so and the bytes do not deny it."""

import hashlib
import io
import random
import tarfile

import brotli
import pytest

from tamias.content.containers.documents import documents
from tamias.model.capture import Body
from tamias.model.document import LimitExceeded
from tamias.model.finding import Problem
from tests.messages import unsaid

TRIPLE = b"<http://a/s> <http://a/p> <http://a/o> .\n"
NT = "application/n-triples"


def opened(data, *, url="http://a/d.nt.br", told=None):
    """(type, content) of each document, and the text of each problem, in order."""
    body = Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data)
    parts = documents(body, url=url, declared_type=told)
    return [
        part.what if isinstance(part, Problem) else (part.media_type, part.stream.read()) for part in parts
    ]


def noise(size):
    return bytes(random.Random(1).choices(b"abcdefghij ", k=size))


@pytest.mark.parametrize("quality", [0, 5, 11])
@pytest.mark.parametrize("content", [TRIPLE, TRIPLE + b"# " + noise(300_000)])
def test_it_gives_back_what_was_packed(quality, content):
    assert opened(brotli.compress(content, quality=quality)) == [(NT, content)]


def test_the_told_type_is_enough():
    packed = brotli.compress(TRIPLE)
    assert opened(packed, url="http://a/d", told="application/x-brotli") == [(NT, TRIPLE)]


def test_without_a_word_for_it_nothing_is_tried():
    packed = brotli.compress(TRIPLE + noise(9000))
    assert opened(packed, url="http://a/d") == [("application/octet-stream", packed)]


def test_text_that_is_only_named_so_is_read_as_it_is():
    assert opened(TRIPLE) == [(NT, TRIPLE)]


def test_a_tar_in_it_is_opened():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("a.nt")
        entry.size = len(TRIPLE)
        archive.addfile(entry, io.BytesIO(TRIPLE))
    assert opened(brotli.compress(file.getvalue()), url="http://a/d.tar.br") == [(NT, TRIPLE)]


def test_a_truncated_stream_delivers_what_it_has_and_then_a_problem():
    content = TRIPLE + b"# " + noise(300_000)
    packed = brotli.compress(content, quality=1)
    (_, got), problem = opened(packed[: len(packed) // 2])
    assert content.startswith(got)
    assert len(got) > 100_000
    assert not unsaid(problem)


def test_noise_is_a_problem():
    [(_, got), problem] = opened(random.Random(2).randbytes(5000))
    assert len(got) < 5000
    assert not unsaid(problem)


def test_something_after_the_end_is_told():
    content = TRIPLE + b"# " + noise(300_000)
    (_, got), problem = opened(brotli.compress(content) + b"garbage" * 1000)
    assert content.startswith(got)
    assert "brotli data" in problem


def test_a_bomb_stops_at_the_ratio():
    with pytest.raises(LimitExceeded, match=r"open\.max_ratio"):
        opened(brotli.compress(bytes(100 << 20), quality=5))


@pytest.mark.parametrize("quality", [1, 5, 11])
def test_a_few_bytes_that_are_many_steps_of_output_are_read_to_their_end(quality):
    content = TRIPLE * 20_000
    assert opened(brotli.compress(content, quality=quality)) == [(NT, content)]
