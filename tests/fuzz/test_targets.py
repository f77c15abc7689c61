"""A short run of every fuzz target: its seeds, what once broke it, and some mutations of the seeds."""

from pathlib import Path

import pytest
from fuzzing import TARGETS
from fuzzing.mutation import mutated
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples

HERE = Path(__file__).parent
EXAMPLES = examples(120)


def inputs(folder, name):
    return sorted((HERE / folder / name).glob("*"))


def test_every_target_has_seeds():
    assert [name for name in TARGETS if not inputs("corpus", name)] == []


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_what_once_broke_it(name):
    for file in inputs("regressions", name):
        TARGETS[name](file.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_its_seeds_and_anything_like_them(name):
    seeds = [file.read_bytes() for file in inputs("corpus", name)]
    for seed in seeds:
        TARGETS[name](seed)

    @settings(max_examples=EXAMPLES, derandomize=True, database=None)
    @given(st.one_of(st.binary(max_size=200), mutated(seeds)))
    def takes(data):
        TARGETS[name](data)

    takes()
