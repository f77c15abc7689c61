"""7z archives are read member by member, within the same limits as the others."""

import hashlib
import io
import lzma
import random
import struct
import subprocess
import sys
import zlib

import py7zr
import pytest

from tamias.content.containers.documents import documents
from tamias.content.containers.limits import MAX_DIRECTORY, MAX_ENTRIES, OpenLimits
from tamias.features.tables.body import profile
from tamias.model.capture import Body
from tamias.model.document import LimitExceeded
from tamias.model.finding import Problem
from tests.messages import saying, unnamed, unsaid

TRIPLE = b"<http://a/s> <http://a/p> <http://a/o> .\n"
NT = "application/n-triples"
MIB = 1 << 20


def body_of(data):
    return Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data)


def opened(data, **limits):
    """(type, member, content) of each document, and the text of each problem, in order."""
    parts = []
    for part in documents(body_of(data), url="http://a/d", declared_type=None, limits=OpenLimits(**limits)):
        if isinstance(part, Problem):
            parts.append(part.what)
        else:
            parts.append((part.media_type, part.member, part.stream.read()))
    return parts


def packed(members, **options):
    file = io.BytesIO()
    with py7zr.SevenZipFile(file, "w", **options) as archive:
        for name, content in members.items():
            archive._writef(io.BytesIO(content), name)  # which lets bad names through
    return file.getvalue()


def noise(size):
    return bytes(random.Random(1).choices(b"abcdefghij ", k=size))


METHODS = {
    "LZMA2": [{"id": py7zr.FILTER_LZMA2, "preset": 1}],
    "LZMA": [{"id": py7zr.FILTER_LZMA, "preset": 1}],
    "BZip2": [{"id": py7zr.FILTER_BZIP2}],
    "Deflate": [{"id": py7zr.FILTER_DEFLATE}],
    "PPMd": [{"id": py7zr.FILTER_PPMD, "order": 6, "mem": 24}],
    "copy": [{"id": py7zr.FILTER_COPY}],
    "x86 and LZMA2": [{"id": py7zr.FILTER_X86}, {"id": py7zr.FILTER_LZMA2, "preset": 1}],
    "x86 and LZMA": [{"id": py7zr.FILTER_X86}, {"id": py7zr.FILTER_LZMA, "preset": 1}],
    "delta and LZMA2": [{"id": py7zr.FILTER_DELTA}, {"id": py7zr.FILTER_LZMA2, "preset": 1}],
}


@pytest.mark.parametrize("filters", METHODS.values(), ids=METHODS)
def test_every_method_gives_back_what_was_packed_together(filters):
    members = {"a.nt": TRIPLE + b"# " + noise(300_000), "d/b.nt": TRIPLE * 5000, "c.nt": TRIPLE}
    assert opened(packed(members, filters=filters)) == [
        (NT, name, content) for name, content in members.items()
    ]


def test_members_packed_apart_come_in_order(tmp_path):
    path = tmp_path / "apart.7z"
    path.write_bytes(packed({"a.nt": TRIPLE}))
    with py7zr.SevenZipFile(path, "a") as archive:
        archive.writestr(TRIPLE * 2, "b.nt")
    assert opened(path.read_bytes()) == [(NT, "a.nt", TRIPLE), (NT, "b.nt", TRIPLE * 2)]


def test_empty_members_and_empty_archives_are_read():
    assert opened(packed({"a.nt": TRIPLE, "empty.nt": b"", "b.nt": TRIPLE})) == [
        (NT, "a.nt", TRIPLE),
        (NT, "empty.nt", b""),
        (NT, "b.nt", TRIPLE),
    ]
    assert opened(packed({})) == []


def test_directories_and_links_are_passed_over(tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.nt").write_bytes(TRIPLE)
    (folder / "b.nt").symlink_to("a.nt")
    (folder / "c.nt").write_bytes(TRIPLE * 2)
    with py7zr.SevenZipFile(tmp_path / "x.7z", "w") as archive:
        archive.writeall(folder, "d")
    assert sorted(opened((tmp_path / "x.7z").read_bytes())) == [
        (NT, "d/a.nt", TRIPLE),
        (NT, "d/c.nt", TRIPLE * 2),
    ]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../../b", "C:/x", "CON"])
def test_names_are_no_paths(name):
    assert opened(packed({name: TRIPLE})) == [(NT, name, TRIPLE)]


def test_two_members_may_have_the_same_name():
    file = io.BytesIO()
    with py7zr.SevenZipFile(file, "w") as archive:
        archive.writestr(TRIPLE, "a.nt")
        archive.writestr(TRIPLE * 2, "a.nt")
    assert opened(file.getvalue()) == [(NT, "a.nt", TRIPLE), (NT, "a.nt", TRIPLE * 2)]


def test_a_member_that_was_not_read_does_not_disturb_the_next():
    data = packed({"a.nt": TRIPLE * 9000, "b.nt": TRIPLE})
    parts = list(documents(body_of(data), url="http://a/d", declared_type=None))
    assert [part.member for part in parts] == ["a.nt", "b.nt"]


def test_a_7z_in_a_7z_is_opened_and_a_third_is_not():
    inner = packed({"a.nt": TRIPLE})
    assert opened(packed({"i.7z": inner})) == [(NT, "i.7z!/a.nt", TRIPLE)]
    [problem] = opened(packed({"o.7z": packed({"i.7z": inner})}))
    assert "open.max_archives" in problem


# What cannot be read


def test_encrypted_members_are_skipped_with_the_reason():
    assert opened(packed({"a.nt": TRIPLE}, password="x")) == ["a.nt: encrypted, skipped"]


def test_an_encrypted_directory_is_a_problem():
    assert opened(packed({"a.nt": TRIPLE}, password="x", header_encryption=True)) == [
        "7z directory is encrypted"
    ]


def test_unknown_methods_are_skipped_with_the_reason():
    [problem] = opened(packed({"a.nt": TRIPLE}, filters=[{"id": py7zr.FILTER_ZSTD, "level": 3}]))
    assert unnamed(problem, "7z", "04f71101") == []


def test_a_changed_byte_costs_the_members_behind_it():
    data = bytearray(packed({"a.nt": TRIPLE + noise(50_000), "b.nt": TRIPLE}, filters=METHODS["copy"]))
    data[1000] ^= 1
    first, problem, second = opened(bytes(data))
    assert len(first[2]) == len(TRIPLE) + 50_000
    assert not unsaid(problem, "a.nt")
    assert second == (NT, "b.nt", TRIPLE)


def test_damaged_data_delivers_what_stands_before_it():
    content = TRIPLE + b"# " + noise(400_000)
    data = bytearray(packed({"a.nt": content, "b.nt": TRIPLE}, filters=METHODS["LZMA2"]))
    data[len(data) // 2 : len(data) // 2 + 40] = b"\xff" * 40
    (_, _, got), problem, *rest = opened(bytes(data))
    assert content[:100_000] == got[:100_000]
    assert problem.startswith("a.nt: 7z ")
    assert all(isinstance(part, str) or part[1] == "b.nt" for part in rest)


@pytest.mark.parametrize("end", [6, 20, 31, 32, 60, -30, -1])
def test_an_archive_that_ends_early_is_a_problem(end):
    [problem] = opened(packed({"a.nt": TRIPLE})[:end])
    assert not unnamed(problem, "7z directory")


def test_changed_directories_never_raise():
    whole = packed({"a.nt": TRIPLE, "b.nt": TRIPLE * 50})
    source = random.Random(3)
    for _ in range(150):
        changed = bytearray(whole)
        start = 32 + struct.unpack_from("<Q", whole, 12)[0]
        changed[source.randrange(start, len(whole))] = source.randrange(256)
        # With the checksums set right, so that the directory is believed.
        changed[28:32] = struct.pack("<I", zlib.crc32(changed[start:]))
        changed[8:12] = struct.pack("<I", zlib.crc32(changed[12:32]))
        opened(bytes(changed))


# What is hostile


def plain_header(header, packed_data=b""):
    """An archive with this directory."""
    start = struct.pack("<QQI", len(packed_data), len(header), zlib.crc32(header))
    return b"7z\xbc\xaf\x27\x1c\0\4" + struct.pack("<I", zlib.crc32(start)) + start + packed_data + header


def test_a_terabyte_in_a_header_costs_nothing():
    count = b"\xff" + struct.pack("<Q", 1 << 40)
    for header in (b"\1\5" + count, b"\1\4\6\0" + count, b"\1\4\6\0\1\t\1\0\7\x0b" + count):
        [problem] = opened(plain_header(header))
        assert not unnamed(problem, "7z directory")


def test_a_bomb_stops_at_the_ratio():
    data = packed({"a": bytes(100 * MIB)}, filters=METHODS["LZMA2"])
    with pytest.raises(LimitExceeded, check=saying("100", "open.max_ratio")):
        opened(data)


def test_a_bomb_that_nobody_reads_stops_at_the_ratio():
    data = packed({"a": bytes(100 * MIB), "b": TRIPLE}, filters=METHODS["LZMA2"])
    with pytest.raises(LimitExceeded, match=r"open\.max_ratio"):
        list(documents(body_of(data), url="http://a/d", declared_type=None))


def test_members_are_counted():
    with pytest.raises(LimitExceeded, match=r"10 members \(limit open.max_members\)"):
        opened(packed({str(i): b"x" for i in range(11)}), max_members=10)


def test_a_window_larger_than_the_limit_is_skipped_with_its_name():
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 64 * MIB}]
    [problem] = opened(packed({"a.nt": TRIPLE}, filters=filters), max_memory=MIB)
    assert not unsaid(problem, "a.nt", MIB, "open.max_memory")


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["LZMA2", "Deflate", "BZip2"])
def test_a_member_of_any_size_takes_little_memory(method, tmp_path):
    program = (
        "import resource, sys; from tamias.content.containers.archives import sevenzip_members\n"
        "from tamias.content.containers.limits import Meter, OpenLimits\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "def read(path):\n"
        "    with open(path, 'rb') as file:\n"
        "        for member in sevenzip_members(file, Meter(OpenLimits(), lambda: 1 << 30), 1 << 27):\n"
        "            for _ in member.chunks: pass\n"
        "read(sys.argv[1]); before = peak(); read(sys.argv[2]); print(peak() - before)"
    )
    for name, size in (("small", MIB), ("large", 200 * MIB)):
        (tmp_path / name).write_bytes(packed({"a": bytes(size)}, filters=METHODS[method]))
    command = [sys.executable, "-c", program, tmp_path / "small", tmp_path / "large"]
    assert int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout) < 40_000


def test_the_bounds_of_py7zr_are_the_same_for_whoever_opens_an_archive(tmp_path):
    """They are py7zr's own globals: two readers with values of their own would change each other's."""
    path = tmp_path / "x.7z"
    with py7zr.SevenZipFile(path, "w") as archive:
        archive.writestr(b"1", "a.csv")
    bounds = []
    for read in (
        lambda: list(documents(body_of(path.read_bytes()), url="http://e.org/x.7z", declared_type=None)),
        lambda: profile(path, media_type="application/x-7z-compressed", declared_type=None, name="x.7z"),
    ):
        py7zr.archiveinfo.MAX_HEADER_SIZE = py7zr.archiveinfo.MAX_NUMFILES = 0
        read()
        bounds.append((py7zr.archiveinfo.MAX_HEADER_SIZE, py7zr.archiveinfo.MAX_NUMFILES))
    assert bounds == [(MAX_DIRECTORY, MAX_ENTRIES)] * 2
