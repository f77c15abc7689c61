"""WARC files as others write and damage them: read as far as they go, within bounds, without surprise."""

import gzip
import io
import random

import pytest
from warcio.archiveiterator import ArchiveIterator

from tamias.features.warc.messages import BadMessage, MessageBody, read_head
from tamias.features.warc.records import DamagedRecord, warc_blocks

HEAD = "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://e/{}\r\nContent-Length: {}\r\n\r\n"


def record(name, body=b"body", head=b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"):
    block = head + body
    return HEAD.format(name, len(block)).encode() + block + b"\r\n\r\n"


def read(content):
    """The target and the body of every record that can be read, and the problems."""
    problems, found = [], []
    for block in warc_blocks(io.BytesIO(content), lambda offset, what: problems.append((offset, what))):
        try:
            head = read_head(block)
            found.append((block.fields.get("warc-target-uri"), b"".join(MessageBody(block, head).pieces())))
        except (BadMessage, DamagedRecord):
            continue
    return found, problems


RECORDS = [record(number, b"body %d" % number * 50) for number in range(5)]
EXPECTED = [(f"http://e/{number}", b"body %d" % number * 50) for number in range(5)]


@pytest.mark.parametrize(
    "content",
    [
        b"".join(RECORDS),
        b"".join(map(gzip.compress, RECORDS)),
        gzip.compress(b"".join(RECORDS)),
        gzip.compress(b"".join(RECORDS)[:700]) + gzip.compress(b"".join(RECORDS)[700:]),
        b"".join(RECORDS).replace(b"\r\n\r\nWARC", b"\r\n\r\n\r\n\nWARC"),
    ],
    ids=["plain", "a member for each", "one member", "members anywhere", "more empty lines"],
)
def test_every_record_is_read_however_the_file_is_packed(content):
    assert read(content) == (EXPECTED, [])


def test_another_reader_finds_the_same_records():
    content = b"".join(map(gzip.compress, RECORDS))
    theirs = [
        (each.rec_headers.get_header("WARC-Target-URI"), each.content_stream().read())
        for each in ArchiveIterator(io.BytesIO(content))
    ]
    assert read(content)[0] == theirs


def test_a_cut_record_ends_where_the_next_begins():
    long = RECORDS[1].replace(b"Content-Length: ", b"Content-Length: 9")
    content = b"".join(map(gzip.compress, [RECORDS[0], long, *RECORDS[2:]]))
    found, problems = read(content)
    assert [target for target, _ in found] == [target for target, _ in EXPECTED]
    assert [found[place] for place in (0, 2, 3, 4)] == [EXPECTED[place] for place in (0, 2, 3, 4)]
    assert ["ends before its length" in what for _, what in problems] == [True]


def test_what_is_no_record_is_passed_over():
    members = list(map(gzip.compress, RECORDS))
    found, problems = read(b"".join([members[0], b"garbage", members[1], members[2][:-9], *members[3:]]))
    assert EXPECTED[0] in found
    assert EXPECTED[1] in found
    assert EXPECTED[3:] == found[-2:]
    assert problems


def test_a_bomb_is_not_unpacked_to_be_passed_over():
    """Half a gigabyte in half a megabyte: its beginning is read, and the record behind it is found."""
    packing = io.BytesIO()
    with gzip.GzipFile(fileobj=packing, mode="wb", compresslevel=1) as out:
        out.write(HEAD.format("bomb", 500_000_000).encode() + b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(100):
            out.write(bytes(5_000_000))
    problems = []
    blocks = warc_blocks(
        io.BytesIO(packing.getvalue() + gzip.compress(RECORDS[0])), lambda *each: problems.append(each)
    )
    targets = []
    for block in blocks:
        targets.append(block.fields["warc-target-uri"])
        block.read(1000)
    assert targets == ["http://e/bomb", "http://e/0"]
    assert "not unpacked" in problems[0][1]


@pytest.mark.parametrize("packed", [True, False])
def test_whatever_is_changed_in_a_file_reading_ends_and_says_what_is_wrong(packed):
    chance = random.Random(5)
    content = b"".join(map(gzip.compress, RECORDS)) if packed else b"".join(RECORDS)
    for _ in range(400):
        changed = bytearray(content)
        for _ in range(chance.randint(1, 6)):
            place = chance.randrange(len(changed))
            if chance.random() < 0.3:
                del changed[place : place + chance.randint(1, 200)]
            else:
                changed[place] = chance.randrange(256)
        found, problems = read(bytes(changed))
        assert len(found) <= 6
        assert problems or len(found) == len(EXPECTED) or not packed or changed == content


def test_folded_and_too_many_headers():
    folded = record("f", b"x", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain;\r\n charset=utf-8\r\n\r\n")
    (block,) = [next(warc_blocks(io.BytesIO(folded), lambda *_: None))]
    assert read_head(block).header("content-type") == "text/plain; charset=utf-8"
    many = record("m", b"", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 2000 + b"\r\n")
    with pytest.raises(BadMessage):
        read_head(next(warc_blocks(io.BytesIO(many), lambda *_: None)))
