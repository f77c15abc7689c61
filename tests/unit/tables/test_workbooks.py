"""Workbooks: each sheet is a table; what cannot be read is told."""

import pytest

from tests.messages import unnamed

SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODS = "application/vnd.oasis.opendocument.spreadsheet"

PLACES = [["Gemeinde", "Einwohner", "Stand", "aktiv"]] + [
    [f"Ort {n}", n * 10, ("date", 41275 + n), n % 2 == 0] for n in range(50)
]


@pytest.fixture
def book(profiled):
    return lambda data, media_type=SHEET, **limits: profiled(data, "book.xlsx", media_type, **limits)


def test_each_sheet_with_rows_is_a_table(book, workbooks):
    found = book(workbooks.xlsx({"Orte": PLACES, "leer": [], "zwei": [["a", "b"], [1, 2], [3, 4]]}))
    assert [(table.name, table.rows, table.width) for table in found.tables] == [
        ("Orte", 50, 4),
        ("zwei", 2, 2),
    ]


def test_cells_keep_their_datatypes(book, workbooks):
    (table,) = book(workbooks.xlsx({"Orte": PLACES})).tables
    assert [column.datatype for column in table.columns] == ["string", "integer", "date", "boolean"]


def test_dates_are_dates_not_the_numbers_they_are_kept_as(book, workbooks):
    (table,) = book(workbooks.xlsx({"Orte": PLACES})).tables
    assert (table.columns[2].min, table.columns[2].max) == ("2013-01-01", "2013-02-19")


def test_a_title_above_the_table_is_skipped(book, workbooks):
    (table,) = book(workbooks.xlsx({"Orte": [["Liste der Orte"], [], *PLACES]})).tables
    assert (table.header, table.rows, table.columns[0].name) == (True, 50, "Gemeinde")


def test_an_open_document_is_read_as_well(book, workbooks):
    found = book(
        workbooks.ods({"Orte": [["Gemeinde", "Einwohner"], *([f"Ort {n}", n] for n in range(30))]}), ODS
    )
    assert [(table.name, table.rows, table.columns[1].datatype) for table in found.tables] == [
        ("Orte", 30, "integer")
    ]


def test_a_workbook_that_was_taken_for_an_archive_is_a_workbook(book, workbooks):
    found = book(workbooks.xlsx({"Orte": PLACES}), "application/zip")
    assert (found.types.found, len(found.tables)) == (SHEET, 1)


def test_an_encrypted_workbook_is_told(book, workbooks):
    found = book(workbooks.encrypted(), "application/x-ole-storage")
    [problem] = found.problems
    assert (found.tables, unnamed(problem, "encrypted", "password")) == ((), [])


def test_an_old_letter_is_not_read_as_a_workbook(profiled, workbooks):
    found = profiled(workbooks.encrypted(), "letter.doc", "application/x-ole-storage")
    assert (found.types.found, found.problems) == ("application/msword", ())


def test_a_sheet_that_would_fill_the_memory_costs_only_its_own_profile(book, workbooks):
    found = book(workbooks.huge())
    assert found.tables == ()
    assert "memory" in found.problems[0]


def test_columns_beyond_the_limit_are_counted_and_told(book, workbooks):
    found = book(
        workbooks.xlsx({"x": [[f"c{n}" for n in range(60)], list(range(60)), list(range(60))]}), columns=20
    )
    assert (found.tables[0].width, len(found.tables[0].columns)) == (60, 20)
    assert "limit profile.columns" in found.problems[0]


def test_sheets_beyond_the_limit_are_told(book, workbooks):
    found = book(workbooks.xlsx({f"sheet {n}": [["a", "b"], [1, 2]] for n in range(5)}), sheets=2)
    assert (len(found.tables), "limit profile.sheets" in found.problems[0]) == (2, True)


def test_a_broken_workbook_is_a_problem(book, workbooks):
    found = book(workbooks.xlsx({"Orte": PLACES})[:-100])
    assert (found.tables, len(found.problems)) == ((), 1)


def test_a_table_that_is_called_a_workbook_is_a_table(profiled):
    found = profiled("a,b\n1,2\n3,4\n", "book.xlsx", "text/csv", declared_type=SHEET)
    assert (found.types.found, found.types.agree, found.tables[0].rows) == ("text/csv", False, 2)
