"""Bodies are peeled down to their documents, and nothing gets past the limits."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import struct
import tarfile
import zipfile
import zlib

import pytest
import zstandard

from tamias.content.containers.documents import documents
from tamias.content.containers.limits import OpenLimits
from tamias.model.capture import Body
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Problem
from tests.messages import saying, unnamed, unsaid

TRIPLE = b"<http://a/s> <http://a/p> <http://a/o> .\n"
MIB = 1 << 20
URL = "http://a.example/data"


def body_of(data):
    return Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data)


def opened(data, *, url=URL, told=None, **limits):
    """(type, member, content) of each document, and the text of each problem, in order."""
    parts = []
    for part in documents(body_of(data), url=url, declared_type=told, limits=OpenLimits(**limits)):
        if isinstance(part, Problem):
            parts.append(part.what)
        else:
            parts.append((part.media_type, part.member, part.stream.read()))
    return parts


def zipped(members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def tarred(members, dialect=tarfile.PAX_FORMAT):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=dialect) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def noise(size):
    return bytes(random.Random(1).choices(b"abcdefghij ", k=size))


def test_a_plain_body_is_one_document_with_its_url():
    [document] = documents(body_of(TRIPLE), url=URL, declared_type="text/plain; charset=utf-8")
    assert (document.url, document.media_type, document.declared_type) == (
        URL,
        "application/n-triples",
        "text/plain; charset=utf-8",
    )


def test_a_body_in_a_spool_file_is_read_from_there(tmp_path):
    spool = tmp_path / "spool"
    spool.write_bytes(gzip.compress(TRIPLE))
    body = Body(size=spool.stat().st_size, sha256="", path=str(spool))
    [content] = [part.stream.read() for part in documents(body, url=URL, declared_type=None)]
    assert content == TRIPLE


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_every_codec_gives_back_what_was_packed(pack):
    content = TRIPLE + b"# " + noise(300_000)
    assert opened(pack(content)) == [("application/n-triples", None, content)]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_frames_that_follow_each_other_are_one_document(pack):
    assert opened(pack(TRIPLE) + pack(TRIPLE)) == [("application/n-triples", None, TRIPLE * 2)]


def test_the_name_without_its_suffix_is_evidence_for_what_is_inside():
    assert opened(gzip.compress(b"# nothing yet\n"), url="http://a/x.ttl.gz?v=1")[0][0] == "text/turtle"


def test_the_told_type_is_evidence_for_what_is_inside():
    assert opened(gzip.compress(TRIPLE), told="text/turtle")[0][0] == "text/turtle"


@pytest.mark.parametrize(
    "method",
    [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2],
    ids=["stored", "deflated", "bzip2"],
)
def test_zip_members_come_in_order_and_directories_do_not(method):
    packed = zipped({"d/": b"", "d/a.nt": TRIPLE, "b.ttl": b"@prefix a: <b> ."}, method)
    assert opened(packed) == [
        ("application/n-triples", "d/a.nt", TRIPLE),
        ("text/turtle", "b.ttl", b"@prefix a: <b> ."),
    ]


def test_zip64_is_read():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, archive.open("a.nt", "w", force_zip64=True) as member:
        member.write(TRIPLE)
    assert opened(file.getvalue()) == [("application/n-triples", "a.nt", TRIPLE)]


def test_a_zip_after_something_else_is_found_by_its_directory():
    inner = b"PK\x03\x04" + b"\0" * 60 + zipped({"a.nt": TRIPLE})
    assert opened(inner) == [("application/n-triples", "a.nt", TRIPLE)]


@pytest.mark.parametrize("dialect", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_tar_members_come_in_order_with_their_long_names(dialect, pack):
    long_name = "d" * 90 + "/" + "n" * 90 + ".nt"
    members = {"a.nt": TRIPLE * 100, long_name: TRIPLE, "c.nt": b""}
    assert opened(pack(tarred(members, dialect))) == [
        ("application/n-triples", name, content) for name, content in members.items()
    ]


def test_links_and_devices_of_a_tar_are_passed_over():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE):
            entry = tarfile.TarInfo("evil")
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
        entry = tarfile.TarInfo("../../a.nt")
        entry.size = len(TRIPLE)
        archive.addfile(entry, io.BytesIO(TRIPLE))
    assert opened(file.getvalue()) == [("application/n-triples", "../../a.nt", TRIPLE)]


def test_a_tar_member_that_was_not_read_does_not_disturb_the_next():
    packed = gzip.compress(tarred({"a.nt": TRIPLE * 5000, "b.nt": TRIPLE}))
    parts = documents(body_of(packed), url=URL, declared_type=None)
    assert [part.member for part in parts] == ["a.nt", "b.nt"]


def test_an_archive_in_an_archive_is_opened():
    packed = gzip.compress(tarred({"inner.zip": zipped({"a.nt": TRIPLE})}))
    assert opened(packed) == [("application/n-triples", "inner.zip!/a.nt", TRIPLE)]


def test_a_third_archive_inside_is_skipped_with_its_limit_named():
    packed = zipped({"1.zip": zipped({"2.zip": zipped({"a.nt": TRIPLE})}), "b.nt": TRIPLE})
    problem, rest = opened(packed)
    assert "1.zip!/2.zip" in problem
    assert "open.max_archives" in problem
    assert rest == ("application/n-triples", "b.nt", TRIPLE)


def test_too_many_codecs_inside_each_other_are_skipped_with_their_limit_named():
    packed = TRIPLE
    for _ in range(5):
        packed = gzip.compress(packed)
    [problem] = opened(packed)
    assert "open.max_layers" in problem


def test_office_files_are_one_document():
    packed = zipped({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<w/>"})
    assert [content for _, _, content in opened(packed)] == [packed]


# What is damaged


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_a_truncated_stream_delivers_what_it_has_and_then_a_problem(pack):
    content = TRIPLE + b"# " + noise(MIB)
    packed = pack(content)
    (_, _, got), problem = opened(packed[: len(packed) // 2])
    assert content.startswith(got)
    assert "ends early" in problem


def test_a_truncated_gzip_loses_nothing_that_was_there():
    content = TRIPLE + b"# " + noise(300_000)
    (_, _, got), _ = opened(gzip.compress(content)[:-8])
    assert got == content


@pytest.mark.parametrize(
    "tail", [struct.pack("<II", 1, len(TRIPLE)), struct.pack("<II", zlib.crc32(TRIPLE), 7)]
)
def test_a_lying_gzip_tail_costs_nothing_of_the_content(tail):
    (_, _, got), problem = opened(gzip.compress(TRIPLE)[:-8] + tail)
    assert got == TRIPLE
    assert not unsaid(problem)


def test_corrupt_gzip_delivers_what_stands_before_the_fault():
    content = TRIPLE + b"# " + noise(400_000)
    packed = bytearray(gzip.compress(content))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    (_, _, got), _ = opened(bytes(packed))
    assert got[:150_000] == content[:150_000]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_garbage_after_the_end_is_left_out_and_told(pack):
    (_, _, got), problem = opened(pack(TRIPLE) + b"garbage" * 9)
    assert got == TRIPLE
    assert not unsaid(problem)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_zeros_after_the_end_are_padding(pack):
    assert opened(pack(TRIPLE) + b"\0" * 100_000) == [("application/n-triples", None, TRIPLE)]


def test_a_damaged_zip_member_does_not_hide_the_others():
    packed = bytearray(zipped({"a.nt": TRIPLE, "b.nt": TRIPLE}, zipfile.ZIP_STORED))
    packed[packed.index(b"http://a/s")] ^= 1
    (_, _, got), problem, other = opened(bytes(packed))
    assert len(got) == len(TRIPLE)
    assert not unsaid(problem, "a.nt")
    assert other == ("application/n-triples", "b.nt", TRIPLE)


def test_a_zip_without_a_directory_is_a_problem():
    [problem] = opened(zipped({"a.nt": TRIPLE})[:-30])
    assert "zip directory" in problem


def test_encrypted_members_are_skipped_with_the_reason():
    packed = bytearray(zipped({"a.nt": TRIPLE}))
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    assert opened(bytes(packed)) == ["a.nt: encrypted, skipped"]


def test_unknown_zip_methods_are_skipped_with_the_reason():
    packed = bytearray(zipped({"a.nt": TRIPLE}))
    packed[packed.index(b"PK\x01\x02") + 10] = 9
    [problem] = opened(bytes(packed))
    assert "zip method 9" in problem


def test_a_truncated_tar_delivers_what_it_has_and_then_a_problem():
    packed = tarred({"a.nt": TRIPLE, "b.nt": TRIPLE * 1000})
    first, (_, _, got), problem = opened(packed[:20_000])
    assert first == ("application/n-triples", "a.nt", TRIPLE)
    assert (TRIPLE * 1000).startswith(got)
    assert not unsaid(problem, "b.nt")


@pytest.mark.parametrize("size", [-1, 1 << 62, 1 << 80])
def test_a_tar_entry_of_a_size_that_no_file_has_is_a_problem(size, tmp_path):
    """In a file on disk too, which has no such place to go to."""
    entry = tarfile.TarInfo("pipe")
    entry.type, entry.size = tarfile.FIFOTYPE, size
    packed = tarred({"a.nt": TRIPLE})[:1024] + entry.tobuf(tarfile.GNU_FORMAT) + b"x" * 512
    (tmp_path / "x.tar").write_bytes(packed)
    body = Body(size=len(packed), sha256="", path=str(tmp_path / "x.tar"))
    document, problem = (
        part.what if isinstance(part, Problem) else part.stream.read()
        for part in documents(body, url="http://a/x.tar", declared_type=None)
    )
    assert (document, unnamed(problem, "tar header", "size")) == (TRIPLE, [])


def test_a_broken_tar_header_is_a_problem_after_the_good_members():
    packed = tarred({"a.nt": TRIPLE})[:1024] + b"x" * 1024
    first, problem = opened(packed, url="http://a/x.tar")
    assert first == ("application/n-triples", "a.nt", TRIPLE)
    assert not unsaid(problem)


# What is hostile


def gzip_bomb(size):
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([packer.compress(b"\0" * MIB) for _ in range(size // MIB)]) + packer.flush()


def consume(data, **limits):
    for part in documents(body_of(data), url=URL, declared_type=None, limits=OpenLimits(**limits)):
        while isinstance(part, Document) and part.stream.read(MIB):
            pass


@pytest.mark.parametrize(
    "bomb",
    [
        lambda: gzip_bomb(100 * MIB),
        lambda: gzip.compress(gzip_bomb(100 * MIB)),
        lambda: bz2.compress(b"\0" * 100 * MIB),
        lambda: lzma.compress(b"\0" * 100 * MIB, preset=0),
        lambda: zstandard.compress(b"\0" * 100 * MIB),
        lambda: zipped({"a": b"\0" * 100 * MIB}),
    ],
    ids=["gzip", "gzip twice", "bzip2", "xz", "zstd", "zip"],
)
def test_a_bomb_stops_at_the_ratio(bomb):
    with pytest.raises(LimitExceeded, check=saying("100", "open.max_ratio")):
        consume(bomb())


def test_unpacking_stops_at_the_byte_limit():
    with pytest.raises(LimitExceeded, match=r"1000 bytes \(limit open.max_unpacked\)"):
        consume(gzip.compress(TRIPLE * 100), max_bytes=1000)


def test_the_byte_limit_counts_all_members_together():
    with pytest.raises(LimitExceeded, match=r"open.max_unpacked"):
        consume(zipped({str(i): TRIPLE for i in range(100)}), max_bytes=1000)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_members_are_counted(pack):
    with pytest.raises(LimitExceeded, match=r"10 members \(limit open.max_members\)"):
        consume(pack({str(i): b"x" for i in range(11)}), max_members=10)


def test_members_that_share_their_bytes_are_refused():
    packed = zipped({"a.nt": TRIPLE})
    start, end = packed.index(b"PK\x01\x02"), packed.index(b"PK\x05\x06")
    entry, tail = packed[start:end], bytearray(packed[end:])
    tail[8:10] = tail[10:12] = struct.pack("<H", 50)
    tail[12:16] = struct.pack("<I", 50 * len(entry))
    [problem] = opened(packed[:start] + entry * 50 + bytes(tail))
    assert "overlaps" in problem


def test_an_xz_that_asks_for_too_much_memory_is_a_problem():
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 64 * MIB}]
    packed = lzma.compress(TRIPLE, filters=filters)
    (_, _, got), problem = opened(packed, max_memory=MIB)
    assert got == b""
    assert "Memory usage limit" in problem


def test_a_tar_header_of_any_size_is_not_read_into_memory():
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = tarfile.XHDTYPE, 1 << 33
    [problem] = opened(entry.tobuf(tarfile.GNU_FORMAT) + b"x" * 5000)
    assert "tar header" in problem


def test_random_bytes_behind_any_signature_never_raise():
    source = random.Random(7)
    for start in (b"\x1f\x8b\x08", b"BZh91AY&SY", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"):
        for _ in range(20):
            opened(start + source.randbytes(500))


def test_temporary_files_are_gone_when_the_reading_is_abandoned(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    inner = zipped({"a.nt": os.urandom(9 * MIB)}, zipfile.ZIP_STORED)
    packed = gzip.compress(tarred({"inner.zip": inner}), 1)
    parts = documents(body_of(packed), url=URL, declared_type=None)
    next(parts)
    parts.close()
    assert (os.listdir(tmp_path), len(os.listdir("/proc/self/fd"))) == ([], before)
