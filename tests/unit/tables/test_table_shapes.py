"""Tables in the shapes that portals really serve them."""

import pytest

from tamias.features.tables import tables
from tamias.features.tables.body import profile
from tests.messages import unnamed, unsaid

HEADER = ["id", "Ort", "Wert", "Datum"]
ROWS = [[str(n), f"Gänserndorf {n}", f"{n}.5", f"2013-01-{n % 28 + 1:02}"] for n in range(1, 2001)]


def text(delimiter=",", rows=ROWS, header=HEADER, end="\n"):
    lines = ([header] if header else []) + rows
    return end.join(delimiter.join(row) for row in lines) + end


def german():
    return [
        [n, ort, wert.replace(".", ","), ".".join(reversed(tag.split("-")))] for n, ort, wert, tag in ROWS
    ]


SHAPES = {
    "comma": (text().encode(), "utf-8", ",", True, 0, 2000),
    "semicolon, decimal comma, Latin-1": (
        text(";", german()).encode("latin-1"), "cp1252", ";", True, 0, 2000),
    "tab in UTF-16": (text("\t").encode("utf-16"), "utf-16-le", "\t", True, 0, 2000),
    "tab in UTF-16 without a mark": (text("\t").encode("utf-16-be"), "utf-16-be", "\t", True, 0, 2000),
    "pipe without header": (text("|", header=None).encode(), "utf-8", "|", False, 0, 2000),
    "three lines before the header": (
        f"Liste der Orte\nStand: 2013\n\n{text()}".encode(), "utf-8", ",", True, 3, 2000,
    ),
    "title lines filled up with delimiters": (
        f"Liste der Orte;;;\nList of places;;;\n{text(';')}".encode(), "utf-8", ";", True, 2, 2000,
    ),
    "newlines in quotes": (
        text(rows=[[n, f'"{ort}\nPostfach, hinten"', w, d] for n, ort, w, d in ROWS]).encode(),
        "utf-8", ",", True, 0, 2000,
    ),
    "ragged": (
        text(rows=[row[: 2 + n % 3] for n, row in enumerate(ROWS)]).encode(), "utf-8", ",", True, 0, 2000,
    ),
    "byte order mark": (b"\xef\xbb\xbf" + text().encode(), "utf-8", ",", True, 0, 2000),
    "single column": ("\n".join(["Name", *(row[1] for row in ROWS)]).encode(), "utf-8", ",", True, 0, 2000),
    "cp1252 with thousands": (
        text(";", [[n, f"{ort} \u2013 Straße", f"{n}.000", d] for n, ort, _, d in ROWS[:999]])
        .encode("cp1252"), "cp1252", ";", True, 0, 999,
    ),
    "three rows": (text(rows=ROWS[:3]).encode(), "utf-8", ",", True, 0, 3),
    "old Mac line ends": (text(end="\r").encode(), "utf-8", ",", True, 0, 2000),
    "Windows line ends": (text(end="\r\n").encode(), "utf-8", ",", True, 0, 2000),
    "trailing delimiters": (
        text(";", [[*row, ""] for row in ROWS], [*HEADER, ""]).encode(), "utf-8", ";", True, 0, 2000),
}  # fmt: skip


@pytest.fixture(scope="module", params=SHAPES, name="shape")
def _shape(request, tmp_path_factory):
    """A table, profiled once for all tests, and what is expected of it."""
    data, *expected = SHAPES[request.param]
    path = tmp_path_factory.mktemp("shape") / "body"
    path.write_bytes(data)
    (table,) = profile(path, media_type="text/csv", declared_type=None, name="table.csv").tables
    return table, expected


def test_the_encoding_is_found(shape):
    table, (encoding, *_) = shape
    assert table.encoding == encoding


def test_the_delimiter_is_found(shape):
    table, (_, delimiter, *_) = shape
    assert table.delimiter == delimiter


def test_the_header_is_found(shape):
    table, (_, _, header, *_) = shape
    assert table.header is header


def test_the_lines_before_the_header_are_counted(shape):
    table, (_, _, _, skipped, _) = shape
    assert table.skipped == skipped


def test_the_rows_are_counted(shape):
    table, (*_, rows) = shape
    assert table.rows == rows


def test_a_page_in_place_of_a_table_is_html_and_no_table(profiled):
    page = profiled("<html><body><h1>Error, 404; not found</h1></body></html>", declared_type="text/csv")
    assert (page.types.found, page.types.agree, page.tables) == ("text/html", False, ())


def test_trailing_delimiters_make_no_column(columns):
    assert list(columns("a;b;\n1;x;\n2;y;\n3;z;\n")) == ["a", "b"]


def test_columns_without_a_name_are_named_by_their_number(columns):
    assert list(columns("1,a\n2,b\n3,c\n4,d\n")) == ["column_1", "column_2"]


def test_two_columns_of_one_name_are_told_apart(columns):
    assert list(columns("x,x\n1,a\n2,b\n")) == ["x", "x_2"]


def test_what_a_row_has_too_much_stays_in_its_last_cell(profiled):
    rows = "".join(f"{n},2\n" for n in range(1000))
    [table] = profiled(f"x,y\n{rows}1,2,3,4\n{rows}").tables
    assert (table.rows, [(each.value, each.count) for each in table.columns[1].top]) == (
        2001, [("2", 2000), ("2,3,4", 1)],
    )  # fmt: skip


def test_years_can_be_the_names_of_columns(columns):
    assert list(columns("Land;2010;2011;2012\nAT;1,5;2,5;3,5\nDE;4,5;5,5;6,5\n")) == [
        "Land",
        "2010",
        "2011",
        "2012",
    ]


def test_the_server_is_believed_about_an_old_code_page(profiled):
    data = "miasto,liczba\nŁódź,1\nGdańsk,2\n".encode("iso8859-2")
    found = profiled(data, declared_type="text/csv; charset=iso-8859-2")
    assert (found.encoding, found.tables[0].columns[0].max) == ("iso8859-2", "Łódź")


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp1250", "województwo małopolskie;Świętochłowice;książka"),
        ("cp1251", "население города;Москва;улица Ленина"),
        ("cp950", "臺灣的公園;市區道路地址;電話號碼"),
        ("cp932", "これは日本の市です;東京都の町;データである"),
    ],
)
def test_code_pages_of_other_scripts_are_told_by_their_words(profiled, encoding, words):
    assert profiled(("x;y;z\n" + f"{words}\n" * 50).encode(encoding)).encoding == encoding


def test_a_broken_byte_does_not_change_the_encoding(profiled):
    data = ("name,n\n" + "Übergänge,1\n" * 500).encode() + b"\xff\xfe,2\n"
    found = profiled(data)
    [problem] = found.problems
    assert (found.encoding, unnamed(problem, "bytes", "encoding")) == ("utf-8", [])


def test_a_table_with_more_columns_than_fit_into_the_usual_memory_is_read_in_all_that_is_allowed(
    profiled, monkeypatch
):
    header = [f"c{place}" for place in range(200)]
    ragged = [[f"{row * place:x}" for place in range(200 + (row == 7))] for row in range(500)]
    wide = text(rows=ragged, header=header)
    ample = profiled(wide)
    monkeypatch.setattr(tables, "_USUAL_MEMORY", 10_000_000)
    assert profiled(wide) == ample
    assert not unsaid(" ".join(profiled(wide, memory=10_000_000).problems), "10000000")
