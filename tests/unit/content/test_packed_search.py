"""Marks are found in whatever a stream unpacks to, also in small pieces and within each other."""

import bz2
import gzip
import io
import lzma
import os
import random
import tracemalloc
import zipfile

import pytest
import zstandard

from tamias.features.forgetting import marks
from tamias.features.forgetting.marks import MarkSearch, PackedSearch, make_marks

KEY = b"key"
BODY = " ".join(f"{random.Random(1).getrandbits(40):x}{n}" for n in range(300)).encode()


def zipped(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("first.txt", b"something else")
        archive.writestr("folder/second.txt", content)
    return out.getvalue()


FORMS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
}


def search(content, size=1 << 20):
    marks = MarkSearch(KEY, [(7, make_marks(KEY, BODY))])
    looking = PackedSearch(marks)
    for at in range(0, len(content), size):
        looking.feed(content[at : at + size])
    looking.close()
    return looking


@pytest.mark.parametrize("size", [7, 1000, 1 << 20])
@pytest.mark.parametrize("form", FORMS)
def test_it_is_found_in_every_form(form, size):
    before = random.Random(2).randbytes(5000)
    content = before + FORMS[form](b"head " + BODY) + before
    assert {number for number, _ in search(content, size).found} == {7}
    assert search(before + FORMS[form](before), size).found == set()


@pytest.mark.parametrize("outer", ["gzip", "zstd", "zip"])
@pytest.mark.parametrize("inner", ["gzip", "zstd", "xz"])
def test_it_is_found_when_it_is_packed_twice(outer, inner):
    content = FORMS[outer](b"first" + FORMS[inner](b"an answer\r\n\r\n" + BODY))
    assert search(content, 997).found


def test_what_only_looks_packed_hides_nothing():
    false = bytes.fromhex("28b52ffd") + b"no frame at all" + bytes.fromhex("1f8b08") + b"no member"
    assert search(false + b"PK\x03\x04" + false + gzip.compress(BODY)).found
    torn = zstandard.compress(os.urandom(5000) + BODY)[:-20]
    assert search(torn + zstandard.compress(BODY)).found


def test_many_members_one_after_another_are_all_looked_at():
    members = [gzip.compress(f"member {n}".encode()) for n in range(500)]
    assert search(b"".join([*members, gzip.compress(BODY)])).found


def test_a_bomb_takes_little_memory_and_is_said_to_be_unfinished(monkeypatch):
    monkeypatch.setattr(marks, "MOST_UNPACKED", 32 << 20)
    bomb = zstandard.compress(bytes(64 << 20))
    tracemalloc.start()
    looking = search(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not looking.is_complete
    assert peak < 48 << 20
    assert search(gzip.compress(BODY)).is_complete
