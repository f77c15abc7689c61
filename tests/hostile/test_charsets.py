"""Character encodings that only Python knows are not believed, whoever names them."""

import pytest

import tamias
from tamias.content.charsets import believed_charset, encoding_of

REFUSED = ["utf-7", "punycode", "idna", "undefined", "unicode_escape", "raw_unicode_escape", "hz", "rot13"]


@pytest.mark.parametrize("name", [*REFUSED, "x-evil", "a\0b", "", "../utf-8"])
def test_an_encoding_that_no_browser_knows_is_not_believed(name):
    assert believed_charset(name) is None


@pytest.mark.parametrize(
    "name", ["utf-8", "latin-1", "windows-1252", "shift_jis", "gb18030", "koi8-r", "utf-16"]
)
def test_the_usual_encodings_are_believed(name):
    assert believed_charset(name) is not None


@pytest.mark.parametrize("name", REFUSED)
def test_a_page_in_such_an_encoding_is_read_as_if_nothing_was_said(name):
    page = b"<html><a href='http://e.test/x'>x</a>+ADw-a href='http://e.test/hidden'+AD4-"
    reading = tamias.read(page, base="http://e.test/", media_type=f"text/html; charset={name}")
    assert reading.links == ["http://e.test/x"]


@pytest.mark.parametrize("name", REFUSED)
def test_an_archived_table_in_such_an_encoding_is_read_as_if_nothing_was_said(name):
    for table in (b"a,b\n1,2\n", "Ort,Größe\nKöln,2\n".encode("cp1252"), b"a,b\n\xff\xfe\x80,+ADw-\n"):
        assert encoding_of(table, f"text/csv; charset={name}") == encoding_of(table, None)
    assert encoding_of(b"a,b\n1,2\n", f"text/csv; charset={name}") == "utf-8"


GIANT_TERM, GIANT_LINE = (
    "a term of more than 16 MiB, the rest was not read",
    "line of more than 4194304 bytes, left out",
)


@pytest.mark.parametrize(
    ("media_type", "problem"),
    [
        ("application/n-triples", GIANT_LINE),
        ("application/n-quads", GIANT_LINE),
        ("text/turtle", GIANT_TERM),
        ("application/trig", GIANT_TERM),
        ("text/n3", GIANT_TERM),
    ],
)
def test_a_term_larger_than_the_parsers_buffer_is_a_problem_and_never_raises(media_type, problem):
    data = b'<http://e.test/s> <http://e.test/p> "' + b"x" * (17 << 20) + b'" .\n'
    reading = tamias.read(data, base="http://e.test/", media_type=media_type)
    assert [each.what for each in reading.problems] == [problem]
