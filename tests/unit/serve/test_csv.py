"""Tables for spreadsheets."""

import csv
import io

from tamias.features.pages.html.page import CsvTable, csv_answer


def test_neither_a_cell_nor_the_name_of_a_column_is_a_formula():
    body = csv_answer(CsvTable(["=1+1", "plain"], [["@SUM(A1)", -2]])).body.decode()
    assert list(csv.reader(io.StringIO(body))) == [["'=1+1", "plain"], ["'@SUM(A1)", "-2"]]
