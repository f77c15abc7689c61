"""What a column holds: datatypes in the forms that people write, and statistics."""

import pytest

CASES = {
    "whole numbers": (["1", "22", "333"], "integer", None, "1", "333"),
    "decimal point": (["1.5", "2", "-3.25"], "decimal", None, "-3.25", "2.0"),
    "decimal comma": (["1,5", "2", "-3,25"], "decimal", "###0,0", "-3.25", "2.0"),
    "exponents": (["1e3", "2.5E-2", "3"], "decimal", None, "0.025", "1000.0"),
    "groups of thousands": (["1.234.567", "285", "12.000"], "integer", "#.##0", "285", "1234567"),
    "groups and decimals": (["1.234,50", "12,25", "3.000,00"], "decimal", "#.##0,0", "12.25", "3000.0"),
    "English groups": (["1,234.50", "12.25", "3,000.00"], "decimal", "#,##0.0", "12.25", "3000.0"),
    "groups with spaces": (["1 234 567", "2 000", "30 000"], "integer", "# ##0", "2000", "1234567"),
    "Swiss groups": (["1'234.50", "2'000.00", "30.10"], "decimal", "#'##0.0", "30.1", "2000.0"),
    "accountants": (["(5)", "7", "-2"], "integer", None, "-5", "7"),
    "yes and no": (["ja", "nein", "Ja"], "boolean", "ja|nein", "false", "true"),
    "oui et non": (["oui", "non", "oui"], "boolean", "oui|non", "false", "true"),
    "ISO dates": (["2013-01-31", "2012-12-01", "2013-02-02"],
        "date", "yyyy-MM-dd", "2012-12-01", "2013-02-02"),
    "German dates": (["31.01.2013", "1.12.2012", "02.02.2013"],
        "date", "dd.MM.yyyy", "2012-12-01", "2013-02-02"),
    "American dates": (["01/31/2013", "12/01/2012", "2/2/2013"],
        "date", "MM/dd/yyyy", "2012-12-01", "2013-02-02"),
    "dates with names": (["31 Jan 2013", "1 Dec 2012", "2 Feb 2013"],
        "date", "d MMM yyyy", "2012-12-01", "2013-02-02"),
    "dates as numbers": (["20130131", "20121201", "20130202"],
        "date", "yyyyMMdd", "2012-12-01", "2013-02-02"),
    "times": (["2013-01-31T10:00:00", "2013-01-31T09:30:00", "2013-02-01T00:00:00"], "dateTime",
              "yyyy-MM-dd'T'HH:mm:ss", "2013-01-31T09:30:00", "2013-02-01T00:00:00"),
    "times with zones": (["2013-01-31T10:00:00Z", "2013-01-31T10:00:00+02:00", "2013-02-01T00:00:00Z"],
        "dateTime", "yyyy-MM-dd'T'HH:mm:ssX", "2013-01-31T08:00:00Z", "2013-02-01T00:00:00Z"),
    "hours": (["10:00", "9:30", "23:59"], "time", "HH:mm", "09:30:00", "23:59:00"),
    "months": (["2013-01", "2012-12", "2013-02"], "gYearMonth", None, "2012-12", "2013-02"),
    "seasons are no months": (["2010-11", "2011-12", "2009-10"], "string", None, "2009-10", "2011-12"),
    "codes with a leading zero": (["00601", "01202", "30303"], "string", None, "00601", "30303"),
    "words": (["b", "a", "c"], "string", None, "a", "c"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_datatype_and_its_form_are_found(columns, case):
    values, datatype, format_, least, most = CASES[case]
    column = columns("name\tvalue\n" + "".join(f"row\t{value}\n" for value in values * 3))["value"]
    assert (column.datatype, column.format, column.min, column.max) == (datatype, format_, least, most)


def test_the_sign_of_one_column_settles_that_of_another(columns):
    found = columns("a;b\n1.234;0,5\n5.678;0,25\n")
    assert (found["a"].datatype, found["a"].mean) == ("integer", 3456.0)


def test_a_comma_before_three_digits_is_decimal_where_semicolons_separate(columns):
    assert columns("a;b\n1,234;x\n5,678;y\n")["a"].mean == 3.456


def test_numbers_on_two_lines_of_a_cell_are_text(columns):
    rows = "".join(f'"{number}\n{number + 1}","{number}.5\n{number}.25"\n' for number in range(40, 52, 2))
    found = columns("one,other\n" + rows)
    assert {name: (column.datatype, column.distinct) for name, column in found.items()} == {
        "one": ("string", 6),
        "other": ("string", 6),
    }


def test_missing_values_are_counted(columns):
    column = columns("a,b\n1,x\n,y\nn/a,z\n-,z\n4,z\n")["a"]
    assert (column.datatype, column.nulls, column.mean) == ("integer", 3, 2.5)


def test_a_dash_is_a_value_among_texts(columns):
    assert columns("a,b\nx,1\n-,2\ny,3\n")["a"].nulls == 0


def test_a_few_remarks_among_numbers_are_invalid_not_a_new_type(columns):
    column = columns("a,b\n" + "".join(f"{n},x\n" for n in range(200)) + "see below,x\n")["a"]
    assert (column.datatype, column.invalid) == ("integer", 1)


def test_a_column_that_turns_into_text_later_is_text(columns):
    rows = "".join(f"{n},x\n" for n in range(3000)) + "".join(f"word{n},x\n" for n in range(3000))
    assert columns("a,b\n" + rows)["a"].datatype == "string"


def test_frequent_values_come_with_their_counts(columns):
    column = columns("a,b\n" + "Wien,1\n" * 5 + "Graz,2\n" * 3 + "Linz,3\n")["a"]
    assert [(top.value, top.count) for top in column.top] == [("Wien", 5), ("Graz", 3), ("Linz", 1)]


def test_long_values_are_cut(columns):
    column = columns("a,b\n" + f"{'x' * 5000},1\n" * 2, value=20)["a"]
    assert (column.top[0].value, column.max) == ("x" * 20, "x" * 20)


def test_different_values_are_counted(columns):
    column = columns("a,b\n" + "".join(f"{n % 7},{n}\n" for n in range(100)))
    assert (column["a"].distinct, column["b"].distinct, column["b"].unique) == (7, 100, True)


def test_many_different_values_are_estimated(columns):
    column = columns("a,b\nv,x\n" + "".join(f"v{n},x\n" for n in range(5000)), exact_rows=1000)["a"]
    assert 4000 < column.distinct < 6000


def test_the_usual_shape_is_told(columns):
    assert columns("a,b\nAT-123,1\nDE-456,2\nCH-789,3\n")["a"].pattern == "A{2}-9{3}"


def test_the_shape_of_four_in_five_is_told_wherever_the_fifth_stands(columns):
    others = ["a1", "b22", "cc3", "ddd444"]
    for place in range(5):
        values = [*others[:place], "x--", *others[place:]]
        rows = "".join(f"{value},{number}\n" for number, value in enumerate(values))
        assert columns("a,b\n" + rows)["a"].pattern == "a+9+"


def test_numbers_beyond_64_bits_keep_all_their_digits(columns):
    assert columns("a,b\n12345678901234567890123,x\n5,y\n")["a"].max == "12345678901234567890123"


def test_the_datatype_has_an_iri(columns):
    assert columns("a,b\n1,x\n2,y\n")["a"].datatype_iri == "http://www.w3.org/2001/XMLSchema#integer"
