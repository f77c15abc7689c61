"""Bodies that lie, or that would cost too much: never an error, always told."""

import random
import sys

import msgspec
import pytest

from tamias.features.tables import body
from tamias.features.tables.body import small_profile
from tamias.features.tables.meaning.meanings import country_codes
from tamias.model.errors import ConfigError
from tamias.model.profile import Profile
from tests.messages import unnamed

MIB = 1 << 20


def test_an_empty_body_has_a_profile(profiled):
    found = profiled(b"")
    assert (found.size, found.tables, found.problems) == (0, (), ())


@pytest.mark.parametrize("data", [b"\n\n\n", b"   ", b",,,\n,,,\n"])
def test_a_table_without_a_value_is_none(profiled, data):
    assert profiled(data).tables == ()


def test_one_line_of_100_mb_is_told_and_not_read_as_a_table(profiled):
    found = profiled(b"abcdefghij" * (10 * MIB))
    assert (found.tables, found.lines) == ((), 1)
    assert "limit profile.line" in found.problems[0]


def test_a_table_of_10000_columns_is_profiled_up_to_the_limit(profiled):
    lines = [",".join(f"{word}{n}" for n in range(10_000)) for word in ("c", "", "1", "2")]
    found = profiled("\n".join(lines), columns=50)
    (table,) = found.tables
    assert (table.width, len(table.columns), table.rows, table.columns[49].name) == (10_000, 50, 3, "c49")
    assert "10000 columns" in found.problems[0]


def test_a_wide_table_keeps_its_delimiter(profiled):
    lines = ["Titel", *(";".join(f"{word}{n}" for n in range(3000)) for word in ("c", "", "1"))]
    (table,) = profiled("\n".join(lines), columns=50).tables
    assert (table.delimiter, table.skipped, table.rows) == (";", 1, 2)


def test_a_quote_that_is_never_closed_costs_one_cell_not_the_table(profiled):
    (table,) = profiled('a,b\n1,"x\n' + "2,y\n" * 100_000).tables
    assert (table.rows, table.width) == (100_001, 2)


def test_bytes_that_are_no_text_are_no_table(profiled):
    found = profiled(random.Random(1).randbytes(100_000), declared_type="text/csv")
    assert (found.types.found, found.types.agree, found.tables) == ("application/octet-stream", False, ())


@pytest.mark.parametrize("media_type", ["application/zip", "text/html", "application/pdf"])
def test_a_table_by_name_only_is_none(profiled, media_type):
    found = profiled(b"\x00\x01", declared_type="text/csv", media_type=media_type)
    assert (found.tables, found.types.agree) == ((), False)


def test_a_table_that_takes_too_long_is_told(profiled):
    found = profiled("a,b\n" + "1,x\n" * 2_000_000, seconds=0.3)
    assert any("limit profile.seconds" in problem for problem in found.problems)


def test_a_reader_that_breaks_costs_only_its_own_part(profiled, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("by a body")

    monkeypatch.setattr(body, "table_profile", broken)
    [problem] = profiled("a,b\n1,2\n").problems
    assert unnamed(problem, "ZeroDivisionError: by a body") == []


def test_text_beyond_the_limit_is_not_read_and_told(profiled):
    found = profiled("a,b\n" + "1,x\n" * 10_000, bytes=4004)
    (table,) = found.tables
    assert (table.rows, table.complete, "limit profile.bytes" in found.problems[0]) == (1000, False, True)


def test_rows_beyond_the_limit_are_not_read(profiled):
    (table,) = profiled("a,b\n" + "1,x\n" * 1000, rows=100).tables
    assert (table.rows, table.complete) == (100, False)


def test_a_name_from_outside_is_only_a_name(profiled):
    (table,) = profiled('"c0"); DROP TABLE t; --,b\n1,2\n3,4\n', "../../x'.csv").tables
    assert (table.rows, table.columns[0].name) == (2, "c0); DROP TABLE t; --")


def test_no_copy_stays_behind(profiled, tmp_path):
    profiled("a,b\n1,2\n")
    assert [path.name for path in tmp_path.iterdir()] == ["body"]


@pytest.mark.parametrize("seed", range(12))
def test_any_bytes_under_any_type_have_a_profile_that_becomes_json(profiled, seed):
    dice = random.Random(seed)
    text = "".join(dice.choice(",;\t\"\n'ab1.5ä<{[]}>:") for _ in range(dice.randrange(2000)))
    kinds = ["text/csv", "application/json", "application/xml", "text/turtle", "application/zip",
             "application/vnd.apache.parquet", "application/vnd.ms-excel"]  # fmt: skip
    found = profiled(text, media_type=dice.choice(kinds))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Profile) == found


@pytest.mark.parametrize("name", ["small", "whole"])
def test_a_library_that_is_missing_is_told_and_no_profile_goes_missing(profiled, monkeypatch, name):
    """An installation without it gave no profile of a small table, and said nothing."""
    monkeypatch.setitem(sys.modules, "iso3166", None)
    country_codes.cache_clear()
    rows = b"country,born\n" + b"AT,1990\nDE,1991\nFR,1992\nIT,1993\n" * 5
    with pytest.raises(ConfigError, match="iso3166"):
        small_profile(rows, media_type="text/csv", name="a.csv") if name == "small" else profiled(rows)
