"""The path of a document: which files it enters, what is made for it, and that this does not grow."""

import runpy
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOL = runpy.run_path(str(ROOT / "tools" / "trace_visit.py"))
BUDGET = runpy.run_path(str(ROOT / "tools" / "budget.py"))
ONCE = ("Task", "Lease", "HeldLease", "Request", "Visit", "Reference", "Done", "CaptureRecord", "Return")
FILES = (
    "crawl/worker/worker.py",
    "crawl/visit/visitor.py",
    "crawl/visit/stages.py",
    "crawl/request/gate.py",
    "fetch/http.py",
    "crawl/visit/reader.py",
    "crawl/analysis/extractor.py",
    "crawl/commit/settlement.py",
    "crawl/commit/committer.py",
    "crawl/commit/link_put.py",
    "frontier/put.py",
)


@pytest.fixture(scope="module", params=TOOL["WALKS"])
def walk(request):
    return request.param, TOOL["trace"](request.param)


def test_the_path_of_a_document_stays_within_its_budget(walk):
    name, found = walk
    # The calls of a hundred documents depend on how many of them happen to be committed together.
    now = {f"{name}.{each}": number for each, number in found["numbers"].items() if each != "calls_of_100"}
    tables = BUDGET["read_tables"]((ROOT / "budget.toml").read_text())
    budget = {each: number for each, number in tables["budget"].items() if each in now}
    assert list(BUDGET["find_problems"](now, budget, {})) == []


@pytest.mark.parametrize("walk", ["turtle"], indirect=True)
def test_a_document_takes_one_object_of_each_kind_from_its_lease_to_its_commit(walk):
    _, found = walk
    made = Counter()
    for kind, _, count in found["made"]:
        made[kind] += count
    assert {kind: made[kind] for kind in ONCE} == dict.fromkeys(ONCE, 1)
    assert set(FILES) <= set(found["calls"])
