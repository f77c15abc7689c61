"""The statements about scores and links obey the rules that let them run on a cluster."""

import re

import pytest

from tamias.database.sql import statements

SQL = {
    **statements("tamias.features.strategy", "rescore.sql"),
    **statements("tamias.features.strategy", "strategy.sql"),
}
REFERENCE = re.compile(r"\b(FROM|JOIN|UPDATE)\s+(host|queue|url|link)\b")


@pytest.mark.parametrize("name", sorted(SQL))
def test_every_reference_to_the_frontier_names_the_bucket(name):
    text = SQL[name].text.decode()
    for _, table in REFERENCE.findall(text):
        wanted = len([each for _, each in REFERENCE.findall(text) if each == table])
        assert len(re.findall(rf"\b{table}\.bucket = %\(bucket\)b::int2", text)) >= wanted


@pytest.mark.parametrize("name", sorted(SQL))
def test_every_statement_says_what_it_is_for(name):
    assert len(SQL[name].purpose) > 20
