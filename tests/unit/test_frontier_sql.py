"""The statements obey the rules that let them run on a cluster."""

import re

import pytest

from tamias.database.sql import statements

FILES = (
    ("frontier", "due"),
    ("frontier", "frontier"),
    ("features.urlfrontier", "held"),
    ("frontier", "service"),
    ("frontier", "tags"),
)
SQL = {
    name: block for room, file in FILES for name, block in statements(f"tamias.{room}", f"{file}.sql").items()
}


@pytest.mark.parametrize("name", sorted(SQL))
def test_no_statement_joins_buckets_of_two_tables(name):
    assert not re.search(r"\w+\.bucket = \w+\.bucket", SQL[name].text.decode())


@pytest.mark.parametrize("name", [name for name, block in SQL.items() if b"ORDER BY url.due" in block.text])
def test_a_search_by_due_time_repeats_the_condition_of_the_partial_index(name):
    assert b"url.due < 9223372036854775807" in SQL[name].text


@pytest.mark.parametrize("name", sorted(SQL))
def test_every_statement_says_what_it_is_for(name):
    assert len(SQL[name].purpose) > 20


@pytest.mark.parametrize("name", sorted(SQL))
def test_times_are_parameters(name):
    assert not re.search(rb"\b(now|clock_timestamp|random)\(\)", SQL[name].text)
