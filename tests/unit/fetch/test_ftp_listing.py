"""Lists of directories as servers write them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamias.features.ftp.fetcher import DirectoryEntry, TooLong, bare_line, listing, machine_line, plain_line

FORMS = [machine_line, plain_line, bare_line]


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("-rw-r--r--   1 ftp      ftp          1024 Nov 15 12:07 a.nt", DirectoryEntry("a.nt", "file", 1024)),
        (
            "-rw-r--r--   1 1000     1000           52 Jan  3  2019 a b.nt",
            DirectoryEntry("a b.nt", "file", 52),
        ),
        (
            "-rw-r--r--   1 ftp      ftp             7 Nov 15 12:07  led.nt",
            DirectoryEntry(" led.nt", "file", 7),
        ),
        ("drwxr-xr-x+  3 ftp      ftp          4096 Nov 15 12:07 dumps", DirectoryEntry("dumps", "dir")),
        ("drwxr-xr-x.  3 root 4096 Nov 15 12:07 no group", DirectoryEntry("no group", "dir")),
        ("-rwxrwxrwx 1 owner Domain Users 12 Feb 29 2020 x", DirectoryEntry("x", "file", 12)),
        ("-rw-r--r-- 1 ftp ftp 5 2024-02-29 12:07 iso.nt", DirectoryEntry("iso.nt", "file", 5)),
        ("-rw-r--r-- 1 ftp ftp 5 15. Okt 2023 deutsch.nt", DirectoryEntry("deutsch.nt", "file", 5)),
        ("lrwxrwxrwx 1 ftp ftp 9 Nov 15 12:07 latest -> dumps/2024", DirectoryEntry("latest", "file")),
        (
            "-rw-r--r-- 1 ftp ftp 5 Nov 15 12:07 12:07 Nov 16 2020 x",
            DirectoryEntry("12:07 Nov 16 2020 x", "file", 5),
        ),
        ("09-21-04  02:06PM       <DIR>          dumps", DirectoryEntry("dumps", "dir")),
        ("09-21-2004  02:06PM               12345 a b.nt", DirectoryEntry("a b.nt", "file", 12345)),
        ("2004-09-21  14:06               12345 a.nt", DirectoryEntry("a.nt", "file", 12345)),
        ("09-21-04  02:06PM       <JUNCTION>     there", DirectoryEntry("there", "file")),
    ],
)
def test_a_plain_line_is_understood(line, entry):
    assert plain_line(line) == entry


@pytest.mark.parametrize(
    "line",
    [
        "total 12",
        "drwxr-xr-x 3 ftp ftp 4096 Nov 15 12:07 .",
        "drwxr-xr-x 3 ftp ftp 4096 Nov 15 12:07 ..",
        "brw-rw---- 1 root disk 8, 0 Nov 15 12:07 sda",
        "09-21-04  02:06PM       <DIR>          ..",
    ],
)
def test_a_line_that_names_nothing_to_fetch_is_passed_over(line):
    assert plain_line(line) == "nothing"


@pytest.mark.parametrize(
    "line", ["a.nt", "-rw-r--r-- a.nt", "-rw-r--r-- 1 ftp ftp x Nov 15 12:07 a", "+i8,r,\ta"]
)
def test_a_line_of_another_form_cannot_be_read(line):
    assert plain_line(line) is None


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("type=dir;modify=20240203040506.789; d", DirectoryEntry("d", "dir", None, "2024-02-03T04:05:06Z")),
        ("Type=File;Size=12;UNIX.mode=0644; a b", DirectoryEntry("a b", "file", 12)),
        ("type=OS.unix=slink:/x;size=3; link", DirectoryEntry("link", "file", 3)),
        ("size=12;  led", DirectoryEntry(" led", "file", 12)),
        (" bare", DirectoryEntry("bare", "file")),
        ("type=file;size=-1;modify=soon; a", DirectoryEntry("a", "file")),
        ("type=cdir; .", "nothing"),
        ("type=pdir; ..", "nothing"),
        ("type=file; ..", DirectoryEntry("..", "file")),
        ("type=file;a", None),
        ("drwxr-xr-x 3 ftp ftp 4096 Nov 15 12:07 d", None),
    ],
)
def test_a_line_for_machines_is_understood(line, entry):
    assert machine_line(line) == entry


def test_a_list_is_told_by_name_whatever_its_order():
    lines = [b"b", b"a", b"", b"c"]
    told = [list(listing(b"\r\n".join(order), bare_line, 9).lines()) for order in (lines, lines[::-1])]
    assert (
        told[0]
        == told[1]
        == [
            b'{"name": "%s", "type": "file", "size": null, "modified": null}\n' % name
            for name in (b"a", b"b", b"c")
        ]
    )


def test_entries_of_one_name_and_unlike_facts_can_be_told():
    raw = b"type=file;size=1; a\ntype=file; a\n"
    assert len(list(listing(raw, machine_line, 9).lines())) == 2


def test_a_list_of_exactly_the_limit_is_read():
    assert len(listing(b"a\nb\n", bare_line, 2).entries) == 2


@pytest.mark.parametrize("form", FORMS)
def test_a_list_over_the_limit_is_not_read_on(form):
    with pytest.raises(TooLong):
        listing(b"x\n" * 11, form, 10)


def test_a_line_of_endless_length_cannot_be_read():
    assert listing(b"a" * 10_000, bare_line, 2).entries == []


@pytest.mark.parametrize("form", FORMS)
@given(raw=st.binary(max_size=300))
def test_any_bytes_make_lines_of_ascii_json(form, raw):
    told = b"".join(listing(raw, form, 1000).lines())
    assert told.isascii()
    assert all(isinstance(json.loads(line), dict) for line in told.splitlines())
