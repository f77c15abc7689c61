"""Tar archives are compared by their files: noise and diff agree, hostile ones end with one clear line."""

import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as some

from tamias.features.archive.canonical import directory
from tamias.features.archive.canonical.content_digest import (
    Stored,
    content_digest,
    fingerprint_of,
    noise_between,
)
from tamias.features.archive.canonical.directory import members
from tamias.features.diffs.compare import diff
from tamias.model.diff import Change, DiffKind, DiffLimits, What
from tamias.model.document import Unreadable
from tests.examples import examples
from tests.messages import saying, unsaid

TAR = "application/x-tar"
AGAIN = "packed again: times, owners or order of the files"
DIALECTS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
PACKINGS = {
    TAR: bytes,
    "application/gzip": gzip.compress,
    "application/x-bzip2": bz2.compress,
    "application/x-xz": lzma.compress,
    "application/zstd": zstandard.compress,
}


def file(name, content=b"", **words):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for key, value in words.items():
        setattr(entry, key, value)
    return entry, content


def special(name, kind, target="", **words):
    return file(name, type=kind, linkname=target, **words)


def tarred(*entries, dialect=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=dialect) as archive:
        for entry, content in entries:
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def judge(folder, old, new, media_type=TAR, old_type=None):
    """The reason why a new version is noise, and the diff; the two agree."""
    paths = folder / "old", folder / "new"
    for path, content in zip(paths, (old, new), strict=True):
        path.write_bytes(content)
    was = Stored(source=paths[0], media_type=old_type or media_type)
    now = Stored(source=paths[1], media_type=media_type)
    fingerprints = [fingerprint_of(content_digest(each)) for each in (was, now)]
    assert fingerprint_of(content_digest(Stored(source=new, media_type=media_type))) == fingerprints[1]
    noise = noise_between(was, now)
    found = diff(*paths, media_type, old_type=old_type)
    assert (noise is not None) is (fingerprints[0] is not None and fingerprints[0] == fingerprints[1])
    assert found.is_empty is (noise is not None or old == new), found
    return noise and noise.reason, found


@pytest.fixture
def judged(tmp_path):
    return lambda *contents, **words: judge(tmp_path, *contents, **words)


FILES = (file("a.csv", b"a,b\n1,2\n"), file("d/" + "long" * 60 + ".csv", b"x" * 3000), file("é.txt", b""))


@pytest.mark.parametrize("dialect", DIALECTS[1:])
@pytest.mark.parametrize("media_type", PACKINGS)
def test_an_archive_that_was_made_again_is_noise(judged, media_type, dialect):
    folder = special("d", tarfile.DIRTYPE, mode=0o700)
    turned = [file("./" + entry.name, content, mtime=5, uid=7, uname="z", mode=0) for entry, content in FILES]
    old, new = tarred(*FILES), tarred(folder, *turned[::-1], dialect=dialect)
    reason, found = judged(PACKINGS[media_type](old), PACKINGS[media_type](new), media_type)
    assert reason == AGAIN if media_type == TAR else f"in the compressed file: {AGAIN}"
    assert (found.kind, found.changes) == (DiffKind.MEMBERS, [])


@pytest.mark.parametrize("media_type", PACKINGS)
def test_files_that_came_went_and_changed_are_told(judged, media_type):
    new = tarred(FILES[0], file(FILES[1][0].name, b"x" * 2999 + b"y"), file("new", b"1"))
    reason, found = judged(PACKINGS[media_type](tarred(*FILES)), PACKINGS[media_type](new), media_type)
    assert (reason, found.kind, found.added, found.removed, found.changed) == (
        None,
        DiffKind.MEMBERS,
        1,
        1,
        1,
    )
    assert [(each.what, each.where) for each in found.changes] == [
        (What.CHANGED, FILES[1][0].name),
        (What.ADDED, "new"),
        (What.REMOVED, "é.txt"),
    ]
    assert found.changes[1] == Change(What.ADDED, "new", None, {"size": 1, "crc32": "83dcefb7"})


def test_an_archive_without_the_mark_of_later_dialects_is_read(judged):
    """As tar wrote them before 1988: there is only the checksum to know them by."""

    def old(*entries):
        content = bytearray(tarred(*entries, dialect=tarfile.USTAR_FORMAT))
        start = 0
        for _, body in entries:
            block = content[start : start + 512]
            block[257:512] = bytes(255)
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\0 " % sum(block)
            content[start : start + 512] = block
            start += 512 + len(body) + -len(body) % 512
        return bytes(content)

    one, two = file("a", b"1"), file("b", b"2")
    assert judged(old(one, two), old(two, one))[0] == AGAIN
    assert judged(gzip.compress(old(one, two)), gzip.compress(old(two, one)), "application/gzip")[0]


@pytest.mark.parametrize(
    ("old", "new", "was", "now"),
    [
        (
            special("l", tarfile.SYMTYPE, "/etc/passwd"), special("l", tarfile.SYMTYPE, "/etc/shadow"),
            "symbolic link to /etc/passwd", "symbolic link to /etc/shadow",
        ),
        (
            special("l", tarfile.LNKTYPE, "../x"), special("l", tarfile.LNKTYPE, "../y"),
            "link to ../x, which is not in the archive", "link to ../y, which is not in the archive",
        ),
        (
            special("l", tarfile.CHRTYPE, devmajor=1, devminor=3), special("l", tarfile.BLKTYPE, devmajor=8),
            "character device 1, 3", "block device 8, 0",
        ),
        (special("l", tarfile.FIFOTYPE), special("l", b"{"), "named pipe", "entry of the type b'{'"),
    ],
    ids=["symbolic", "hard", "devices", "other"],
)  # fmt: skip
def test_links_and_devices_are_told_and_never_followed(judged, old, new, was, now):
    reason, found = judged(tarred(old), tarred(new))
    assert (reason, found.changes) == (None, [Change(What.CHANGED, "l", {"special": was}, {"special": now})])


def test_a_symbolic_link_is_not_a_file_with_its_target_as_text(judged):
    assert judged(tarred(special("l", tarfile.SYMTYPE, "a")), tarred(file("l", b"a")))[0] is None


def test_a_hard_link_is_the_file_that_it_names_whichever_of_the_two_comes_first(judged):
    one = tarred(file("a", b"1"), special("b", tarfile.LNKTYPE, "a"))
    other = tarred(file("./b", b"1"), special("./a", tarfile.LNKTYPE, "./b"))
    assert judged(one, other)[0] == AGAIN
    assert judged(one, tarred(file("b", b"1"), file("a", b"1")))[0] == AGAIN
    assert judged(one, tarred(file("b", b"1"), file("a", b"2")))[0] is None


def test_of_files_with_one_name_the_last_counts_as_when_they_are_unpacked(judged):
    one, two = file("a", b"1"), file("./a", b"2")
    reason, found = judged(tarred(one, two), tarred(two, one))
    assert (reason, [each.where for each in found.changes]) == (None, ["a"])
    assert judged(tarred(one, two), tarred(two))[0] == AGAIN


def test_a_zip_that_becomes_a_tar_of_the_same_files_is_noise(judged, tmp_path):
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.csv", FILES[0][1])
    assert judged(out.getvalue(), tarred(FILES[0]), TAR, "application/zip")[0] == AGAIN


def damaged(content, place, value):
    return content[:place] + value + content[place + len(value) :]


def with_size(entry, field):
    """A header whose size is written so; its checksum is right."""
    block = bytearray(tarred(entry, dialect=tarfile.GNU_FORMAT)[:512])
    block[124:136] = field
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


GOOD = tarred(file("a", b"1" * 700))
SPARSE = special("sparse.img", tarfile.GNUTYPE_SPARSE)
HOSTILE = {
    "truncated in a file": (GOOD[:600], "tar archive ends early"),
    "truncated in a header": (GOOD[:1536] + GOOD[:100], "tar header is damaged"),
    "damaged header": (GOOD[:1536] + b"x" * 512, "tar header is damaged"),
    "negative size": (with_size(file("a"), b"\xff" * 11 + b"\x01"), "a size that no file has"),
    "huge size": (with_size(file("a"), b"\x80" + b"\x7f" * 11) + b"x" * 512, "a size that no file has"),
    "large size": (with_size(file("a"), b"7" * 11 + b"\0") + b"x" * 512, "tar archive ends early"),
    "sparse": (tarred(SPARSE, dialect=tarfile.GNU_FORMAT), "sparse.img is a sparse file"),
    "sparse by pax": (
        tarred(file("s", b"1", pax_headers={"GNU.sparse.major": "1"})), "s is a sparse file",
    ),
    "size by pax": (tarred(file("a", b"1", pax_headers={"size": "9" * 30})), "a size that no file has"),
    "long header": (
        tarred(file("a", pax_headers={"comment": "x" * (2 << 20)})), "tar header of more than 1048576 bytes",
    ),
    "something after its end": (tarred(file("a")) + GOOD, "something else comes after its end"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_hostile_archive_is_compared_as_bytes_with_one_line_that_says_why(judged, name, packed):
    content, why = HOSTILE[name]
    with pytest.raises(Unreadable, match=why):
        members(content)
    pack = gzip.compress if packed else bytes
    media_type = "application/gzip" if packed else TAR
    reason, found = judged(pack(GOOD), pack(content), media_type)
    assert (reason, found.kind) == (None, DiffKind.BYTES)
    [note] = [each for each in found.notes if each.startswith("not compared as members: ")]
    assert why in note
    assert "\n" not in note


def test_members_names_and_bytes_are_bounded(monkeypatch, judged):
    many = tarred(*(file(str(number)) for number in range(30)))
    monkeypatch.setattr(directory, "MAX_ENTRIES", 20)
    with pytest.raises(Unreadable, match="more than 20 entries"):
        members(many)
    monkeypatch.setattr(directory, "MAX_ENTRIES", 30)
    assert len(members(many)) == 30
    monkeypatch.setattr(directory, "MAX_DIRECTORY", 40)
    with pytest.raises(Unreadable, match="too long names"):
        members(many)
    with pytest.raises(Unreadable, check=saying("100")):
        members(many, 100)


def test_what_extended_headers_say_before_an_entry_is_not_gathered_in_memory(tmp_path):
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 18
    with (tmp_path / "old").open("wb") as written:
        for number in range(200):
            record = b"%d key%d=" % (header.size, number)
            written.write(header.tobuf() + record.ljust(header.size - 1, b"v") + b"\n")
        written.write(tarred(file("a", b"1")))
    tracemalloc.start()
    try:
        assert [each.name for each in members(tmp_path / "old", 1 << 30)] == ["a"]
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_bomb_of_zeros_is_not_unpacked(tmp_path):
    bomb = gzip.compress(tarred(file("zeros", bytes(300_000))))
    (tmp_path / "old").write_bytes(bomb)
    (tmp_path / "new").write_bytes(gzip.compress(GOOD))
    found = diff(
        tmp_path / "old", tmp_path / "new", "application/gzip", limits=DiffLimits(unpacked_bytes=10_000)
    )
    assert found.kind is DiffKind.BYTES
    assert not unsaid(found.notes[0], "10000")


NAMES = some.sampled_from(["a", "b", "./a", "d/c", "x" * 150, "é", "b\udcff"])
CONTENTS = some.sampled_from([b"", b"1", b"2", b"x" * 513])
ENTRIES = some.one_of(
    some.builds(file, NAMES, CONTENTS, mtime=some.integers(0, 3), uid=some.integers(0, 3)),
    some.builds(special, NAMES, some.sampled_from([tarfile.SYMTYPE, tarfile.LNKTYPE]), NAMES),
    some.builds(special, NAMES, some.sampled_from([tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])),
)
ARCHIVES = some.builds(
    lambda entries, dialect: tarred(*entries, dialect=dialect),
    some.lists(ENTRIES, max_size=4),
    some.sampled_from(DIALECTS[1:]),
)


@settings(max_examples=examples(150))
@given(old=ARCHIVES, new=ARCHIVES)
def test_noise_and_diff_agree_whatever_is_in_the_archives(tmp_path_factory, old, new):
    folder = tmp_path_factory.mktemp("tar")
    judge(folder, old, new)
    judge(folder, gzip.compress(old), gzip.compress(new), "application/gzip")


@settings(max_examples=examples(150))
@given(entries=some.lists(ENTRIES, max_size=5), data=some.data())
def test_files_in_another_order_are_noise_if_none_has_the_name_of_another(tmp_path_factory, entries, data):
    unique = {entry.name.removeprefix("./"): (entry, content) for entry, content in entries}
    plain = [each for each in unique.values() if each[0].type != tarfile.LNKTYPE]
    old, new = tarred(*plain), tarred(*data.draw(some.permutations(plain)))
    reason, _ = judge(tmp_path_factory.mktemp("tar"), old, new)
    assert reason == AGAIN or not content_digest(Stored(source=old, media_type=TAR))


@settings(max_examples=examples(300))
@given(place=some.integers(0, len(GOOD) - 1), value=some.binary(min_size=1, max_size=20))
def test_damage_anywhere_is_read_or_refused(tmp_path_factory, place, value):
    judge(tmp_path_factory.mktemp("tar"), GOOD, damaged(GOOD, place, value))
