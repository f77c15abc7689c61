"""Real tables of open data portals, as messy as they come."""

import csv
import os

import pytest

from tamias.features.tables.body import profile

PAGE = "060-3007.csv"
WITHOUT_HEADER = {"010-long.csv", "012-null.csv"}
DELIMITERS = {"008-example.tsv": "\t", **dict.fromkeys(
    ("006-characters.csv", "010-long.csv", "012-null.csv", "014-skip_initials.csv", "016-spanish_chars.csv",
     "018-utf-16le_encoded.csv"), ",")}  # fmt: skip
ENCODINGS = {"006-characters.csv": "cp950", "018-utf-16le_encoded.csv": "utf-16-le"}
EVERY = 1 if os.environ.get("TAMIAS_NIGHTLY") else 3
"""Of the samples that no test names."""
NAMED = {PAGE, *WITHOUT_HEADER, *DELIMITERS, *ENCODINGS, "036-1749.csv", "020-1003.csv"}


@pytest.fixture(scope="module")
def samples(suites):
    """Name, path and profile of each sample."""
    every = sorted(path for path in suites("real-csv-samples").rglob("*") if path.is_file())
    paths = {*every[::EVERY], *(path for path in every if path.name in NAMED)}
    return {
        path.name: (path, profile(path, media_type="text/csv", declared_type=None, name=path.name))
        for path in paths
    }


@pytest.fixture(scope="module")
def tables(samples):
    return {name: (path, found.tables[0]) for name, (path, found) in samples.items() if found.tables}


def text_of(path, encoding):
    return path.read_bytes().decode(encoding).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def test_all_are_tables_but_the_one_that_is_a_page(samples, tables):
    assert set(samples) - set(tables) == {PAGE}


def test_the_page_is_html(samples):
    assert samples[PAGE][1].types.found == "text/html"


def test_the_encoding_of_all_is_right(tables):
    def truth(path):
        try:
            path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            return ENCODINGS.get(path.name, "cp1252")
        return "utf-8"

    assert {name: table.encoding for name, (path, table) in tables.items()} == {
        name: truth(path) for name, (path, _) in tables.items()
    }


def test_the_delimiter_of_all_is_right(tables):
    assert {name: table.delimiter for name, (_, table) in tables.items()} == {
        name: DELIMITERS.get(name, ";") for name in tables
    }


def test_headers_are_seen_where_they_are(tables):
    assert {name for name, (_, table) in tables.items() if not table.header} == WITHOUT_HEADER


def test_title_lines_are_skipped_up_to_the_header(tables):
    """Most of them name their first column after the regions of the European Union."""
    wrong = {}
    for name, (path, table) in tables.items():
        lines = text_of(path, table.encoding).split("\n")
        first = next((place for place, line in enumerate(lines) if line.startswith("NUTS")), None)
        if first is not None and table.skipped != first:
            wrong[name] = (table.skipped, first)
    assert wrong == {}


def test_all_rows_are_counted(tables):
    wrong = {}
    for name, (path, table) in tables.items():
        lines = text_of(path, table.encoding).split("\n")[table.skipped :]
        rows = csv.reader([line + "\n" for line in lines], delimiter=table.delimiter)
        expected = sum(any(cell.strip() for cell in row) for row in rows) - table.header
        if table.rows != expected:
            wrong[name] = (table.rows, expected)
    assert wrong == {}


def test_nothing_had_to_be_left_out(samples):
    assert {name: found.problems for name, (_, found) in samples.items() if found.problems} == {}


def test_decimal_commas_and_groups_are_numbers(tables):
    _, table = tables["036-1749.csv"]
    found = {column.name: (column.datatype, column.max) for column in table.columns}
    assert (found["PAS"], found["PAG"]) == (("decimal", "167.1"), ("integer", "41228"))


def test_codes_names_and_dates_are_understood(tables):
    _, table = tables["020-1003.csv"]
    found = {column.name: column.meaning.type for column in table.columns if column.meaning}
    assert found == {
        "NUTS1": "region", "NUTS2": "region", "NUTS3": "region", "DISTRICT_CODE": "identifier",
        "DISTRICT_NAME": "place", "LAU_CODE": "identifier", "LAU_NAME": "place", "REF_DATE": "date",
    }  # fmt: skip
