"""Columns that contain each other, found by their sketches."""

import random
import sys
import time
from hashlib import md5

import pytest

from tamias.features.tables.joins import ColumnSketch, Distinct, candidates, containment
from tamias.features.tables.sketches import SIZE, packed


def hash_of(value):
    """As the profile's SQL has it: the second half of MD5 of the value in lower case."""
    return int.from_bytes(md5(value.lower().encode(), usedforsecurity=False).digest()[8:], "little")


def column(table, values, name="c"):
    values = set(values)
    return ColumnSketch(
        table=table, column=name, distinct=len(values), sketch=packed(hash_of(value) for value in values)
    )


def words(prefix, start, end):
    return [f"{prefix}{n}" for n in range(start, end)]


@pytest.mark.parametrize(
    ("a", "b", "share"),
    [
        (words("x", 0, 50), words("x", 0, 200), 1.0),
        (words("x", 0, 50), words("y", 0, 200), 0.0),
        (words("x", 0, 100), words("x", 50, 500), 0.5),
    ],
)
def test_small_columns_are_compared_exactly(a, b, share):
    assert containment(column("a", a).sketch, column("b", b).sketch)[0] == share


def test_large_columns_are_compared_nearly():
    a, b = words("x", 0, 20_000), words("x", 4_000, 60_000)
    assert containment(column("a", a).sketch, column("b", b).sketch)[0] == pytest.approx(0.8, abs=0.12)


def test_a_column_within_another_is_a_candidate():
    small, large = column("facts", words("x", 0, 100)), column("reference", words("x", 0, 400))
    (join,) = candidates([large, small])
    assert (join.of, join.within, join.containment) == (small, large, 1.0)


def test_equal_columns_of_many_tables_are_joined_with_the_first():
    columns = [column(f"t{n}", words("x", 0, 40)) for n in range(100)]
    assert [(join.within.table, join.containment) for join in candidates(columns)] == [("t0", 1.0)] * 99


def test_columns_of_one_table_are_not_joined():
    assert candidates([column("t", words("x", 0, 40), "a"), column("t", words("x", 0, 80), "b")]) == []


def test_columns_of_few_values_are_not_joined():
    assert candidates([column("a", ["m", "f"]), column("b", ["m", "f", "d"])]) == []


def test_case_makes_no_difference():
    assert len(candidates([column("a", words("x", 0, 40)), column("b", words("X", 0, 60))])) == 1


@pytest.fixture(scope="module")
def corpus():
    """1500 columns, in which 100 are taken from one of 50 reference tables."""
    dice = random.Random(5)
    references = [column(f"reference{n}", words(f"r{n}-", 0, dice.randrange(100, 5000))) for n in range(50)]
    planted = []
    for n in range(100):
        reference = n % 50
        known = words(f"r{reference}-", 0, references[reference].distinct)
        planted.append(column(f"fact{n}", dice.sample(known, dice.randrange(60, 100))))
    noise = [
        column(f"noise{n}", [*words(f"n{n}-", 0, dice.randrange(5, 800)), *words("usual", 0, 3)])
        for n in range(1350)
    ]
    return references, planted, noise


def test_planted_containments_are_found_among_many_columns(corpus, capsys):
    references, planted, noise = corpus
    begun = time.perf_counter()
    joins = candidates([*noise, *references, *planted])
    with capsys.disabled():
        took = time.perf_counter() - begun
        sys.stdout.write(f" [{sum(map(len, corpus))} columns: {len(joins)} joins in {took:.2f} s] ")
    found = {(join.of.table, join.within.table) for join in joins}
    wanted = {(f"fact{n}", f"reference{n % 50}") for n in range(100)}
    assert len(wanted & found) >= 97


def test_nothing_else_is_found_among_them(corpus):
    references, planted, noise = corpus
    joins = candidates([*noise, *references, *planted])
    assert [join for join in joins if "noise" in join.of.table + join.within.table] == []


def test_the_profile_of_a_column_has_its_sketch(columns):
    found = columns("ort,n\n" + "".join(f"Ort {n % 40},{n}.5\n" for n in range(200)))
    assert found["ort"].sketch == column("x", words("ort ", 0, 40)).sketch


def test_measures_have_no_sketch(columns):
    assert columns("ort,n\n" + "".join(f"Ort {n % 40},{n}.5\n" for n in range(200)))["n"].sketch == b""


@pytest.mark.parametrize("count", [0, 10, SIZE - 1, 100_000])
def test_different_values_are_counted_in_bounded_memory(count):
    counter = Distinct()
    for n in range(count):
        counter.add(f"value {n}")
        counter.add(f"value {n // 2}")
    assert counter.count == pytest.approx(count, rel=0 if count < SIZE else 0.15)
