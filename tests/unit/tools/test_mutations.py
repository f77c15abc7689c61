"""The table of mutations: each finds its defence and its test, and the documentation lists it."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MUTATIONS = runpy.run_path(str(ROOT / "tools" / "mutations.py"))["MUTATIONS"]
DOCUMENTED = (ROOT / "docs" / "benchmarks" / "fuzzing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[each.defence for each in MUTATIONS])
def test_a_mutation_is_up_to_date(mutation):
    code = (ROOT / "src" / "tamias" / mutation.file).read_text(encoding="utf-8")
    assert code.count(mutation.stands) == 1
    for test in mutation.tests:
        file, _, name = test.partition("::")
        if file.endswith(".py"):
            assert name.rpartition("::")[2] in (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert f"| {mutation.defence} |" in DOCUMENTED


def test_the_number_that_is_documented_is_theirs():
    assert f"All {len(MUTATIONS)} are noticed" in DOCUMENTED
