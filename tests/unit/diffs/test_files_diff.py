"""Archives, packed files, bytes, and what is not what it says: always an answer, never an error."""

import gzip
import io
import zipfile

import pytest

from tamias.model.diff import Change, Diff, DiffKind, What
from tests.messages import unsaid

ZIP = "application/zip"


def zipped(members, year=2020):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), text)
    return file.getvalue()


def test_members_of_an_archive_are_compared_by_name_and_checksum(compared):
    found = compared(
        zipped({"a": "1", "b": "2", "c": "3"}), zipped({"c": "4", "b": "2", "d/e": "5"}, 2024), ZIP
    )
    assert (found.kind, found.added, found.removed, found.changed) == (DiffKind.MEMBERS, 1, 1, 1)
    assert found.changes == [
        Change(What.REMOVED, "a", {"size": 1, "crc32": "83dcefb7"}, None),
        Change(What.CHANGED, "c", {"size": 1, "crc32": "6dd28e9b"}, {"size": 1, "crc32": "f3b61b38"}),
        Change(What.ADDED, "d/e", None, {"size": 1, "crc32": "84b12bae"}),
    ]


def test_an_archive_packed_again_has_no_difference(counts):
    assert counts(zipped({"a": "1"}, 2020), zipped({"a": "1"}, 2024), ZIP) == (DiffKind.MEMBERS, 0, 0, 0)


def test_an_encrypted_archive_is_compared_and_told(compared):
    content = bytearray(zipped({"a": "1"}))
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    found = compared(bytes(content), zipped({"b": "1"}), ZIP)
    assert (found.kind, found.added, found.removed) == (DiffKind.MEMBERS, 1, 1)
    [problem] = found.notes
    assert not unsaid(problem)


def test_a_broken_archive_is_compared_as_bytes(compared):
    found = compared(zipped({"a": "1"}), b"PK\x03\x04 broken", ZIP)
    assert found.kind is DiffKind.BYTES
    assert not unsaid(found.notes[0], "zip")


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("id,a\n1,x\n2,y\n", "id,a\n1,x\n2,z\n", DiffKind.ROWS),
        ('{"a": 1}', '{"a": 2}', DiffKind.JSON),
        ('{"a": 1}\n{"a": 3}\n', '{"a": 2}\n{"a": 3}\n', DiffKind.JSON),
        ("<e:a> <e:b> <e:c> .\n", "<e:a> <e:b> <e:d> .\n", DiffKind.TRIPLES),
        ("@prefix e: <e:> . e:a e:b 1 .", "@prefix e: <e:> . e:a e:b 2 .", DiffKind.TRIPLES),
        ("<a>1</a>", "<a>2</a>", DiffKind.LINES),
    ],
)
def test_what_is_packed_is_compared_as_what_it_looks_like(compared, old, new, kind):
    packed = gzip.compress(old.encode(), mtime=1), gzip.compress(new.encode(), mtime=2)
    found = compared(*packed, "application/gzip")
    assert found.kind is kind
    assert not found.is_empty
    [problem] = found.notes
    assert not unsaid(problem)


def test_what_is_packed_again_has_no_difference(compared):
    packed = (gzip.compress(b"id,a\n1,x\n", mtime=time) for time in (1, 2))
    assert compared(*packed, "application/gzip").is_empty


def test_a_bomb_is_not_unpacked(compared):
    bomb = gzip.compress(b"x" * 100_000)
    found = compared(bomb, b"other", "application/gzip", unpacked_bytes=1000)
    assert found.kind is DiffKind.BYTES
    assert not unsaid(found.notes[0], "1000")


@pytest.mark.parametrize(
    ("old", "new", "added", "removed"),
    [
        (b"\x00abcd", b"\x00abXcd", 1, 0),
        (b"\x00abcd", b"\x00ad", 0, 2),
        (b"\x00aaa", b"\x00aa", 0, 1),
        (b"", b"\x00\x01", 2, 0),
        (b"\x00" * 9_000_000 + b"a", b"\x00" * 9_000_000 + b"bc", 2, 1),
    ],
)
def test_bytes_are_counted_between_the_common_ends(counts, old, new, added, removed):
    assert counts(old, new, "image/png") == (DiffKind.BYTES, added, removed, 0)


def test_the_same_bytes_are_no_difference_of_any_kind(compared):
    assert compared("a,b\n", "a,b\n", "text/csv") == Diff(kind=DiffKind.ROWS)


def test_a_type_that_is_not_told_is_looked_for(counts):
    assert counts("id,a\n1,x\n2,y\n", "id,a\n1,x\n2,z\n", None) == (DiffKind.ROWS, 0, 0, 1)


@pytest.mark.parametrize(
    "media_type", ["text/csv", "text/turtle", "application/json", "text/plain", "application/rdf+xml"]
)
@pytest.mark.parametrize(
    "new", [b"\x89PNG\r\n\x00\x1a" * 99, b"", b"\xff\xfe\x00\xd8", b"\xff" * 50, b'"' * 999]
)
def test_any_content_under_any_type_has_an_answer(compared, media_type, new):
    found = compared(b"id,a\n1,x\n", new, media_type)
    assert not found.is_empty


def test_a_hundred_megabytes_in_one_line_are_told(compared):
    found = compared(b"x" * 100_000_000, b"x" * 50_000_000 + b"y" * 50_000_000, "text/csv")
    assert (found.kind, found.added, found.removed) == (DiffKind.BYTES, 50_000_000, 50_000_000)
    assert not unsaid(found.notes[0], "rows", 8388608)
    assert not unsaid(found.notes[1], "lines", 8388608, part=2)


def test_what_is_too_large_is_told_with_the_limit(compared):
    found = compared("a,b\n" * 500, "a,c\n" * 500, "text/csv", read_bytes=1000)
    assert found.kind is DiffKind.BYTES
    assert not unsaid(found.notes[0], "2000", "1000")


def test_statements_that_are_too_many_are_compared_as_lines(compared):
    found = compared("<e:a> <e:b> 1 .\n" * 99, "<e:a> <e:b> 2 .\n" * 99, "text/turtle", held_bytes=1000)
    assert found.kind is DiffKind.LINES
    assert found.notes[0].startswith("not compared as triples: 1584 bytes of RDF, more than the 1000")


def test_a_page_in_place_of_a_table_is_told_in_lines_or_rows(compared):
    found = compared("id,a\n1,x\n", "<!doctype html>\n<h1>Not found</h1>\n", "text/csv")
    assert found.removed >= 1
