"""One crawl of good sites among all attacks: the record of each shows the limit that stopped it.

What an attack does, what stops it and which record proves it stand in `tests.hostile.web.attacks`.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.hostile.web.attack import AttackEvidence
from tests.hostile.web.attacks import ATTACKS
from tests.hostile.web.run import MOST_MEMORY, NUMBERS

NIGHTLY = bool(os.environ.get("TAMIAS_NIGHTLY"))
LONG = () if NIGHTLY else ("H12", "H14", "H15")
"""Answers that never end, and traps: `make nightly` waits for them."""
TRIED = [attack for attack in ATTACKS if attack.number not in LONG]
NAMES = [f"{attack.number}-{attack.name}" for attack in TRIED]
PATIENCE = 400.0
GOOD = ("--sites", "6", "--pages", "15") if NIGHTLY else ("--sites", "2", "--pages", "5")
ENDPOINTS = "122"


def told_by_bench(*words, **environment):
    """What `python -m benchmarks hostile` tells."""
    command = [sys.executable, "-m", "benchmarks", "hostile", "--no-control", "--json", *words]
    env = {**os.environ, **environment}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE, env=env)
    if "no network of its own" in done.stderr or "openssl" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def report():
    return told_by_bench(*GOOD, *(f"--attack={number}" for number in {each.number for each in TRIED}))


@pytest.mark.parametrize("name", NAMES)
def test_the_attack_is_stopped_by_its_limit_and_the_record_says_so(report, name):
    (verdict,) = [each for each in report["verdicts"] if f"{each['number']}-{each['name']}" == name]
    told = "\n".join(" ".join(each) for each in verdict["captures"])
    stands = f"{verdict['what']}\nto be stopped by: {verdict['limit']}\nbut {verdict['wrong']}\n{told}"
    assert verdict["contained"], stands


def test_the_good_sites_are_complete(report):
    assert report["good_missing"] == []


def test_nobody_connects_to_a_private_address(report):
    assert report["canary_connections"] == 0


@pytest.mark.nightly
def test_the_listeners_notice_a_crawler_without_a_guard():
    words = ("--sites", "1", "--pages", "1", "--attack", "H1", "--attack", "H3")
    told = told_by_bench(*words, TAMIAS_PERMIT__ALLOW_PRIVATE="true")
    assert told["canary_connections"] > 0
    assert told["not_contained"] == ["H1", "H3"]


@pytest.fixture(scope="module")
def crowd():
    """Good hosts in a crowd of bombs and traps; slow answers are given up sooner than usual."""
    sooner = {"RETRIES": "0", "RETRY_WAIT": "0.1"}
    soon = {"TIMEOUT": "4", "FIRST_BYTE_TIMEOUT": "2", "MIN_RATE_WINDOW": "2"}
    return told_by_bench(
        "--crowd",
        "--endpoints",
        ENDPOINTS,
        **{f"TAMIAS_CRAWL__{name}": value for name, value in sooner.items()},
        **{f"TAMIAS_FETCH__{name}": value for name, value in soon.items()},
    )


@pytest.mark.nightly
def test_a_bomb_costs_its_neighbours_no_document(crowd):
    assert crowd["good_missing"] == []


@pytest.mark.nightly
def test_traps_are_left_alone_when_their_budget_is_used_up(crowd):
    assert {name: count for name, count in crowd["trap_requests"].items() if not 0 < count <= 400} == {}


def test_all_processes_together_stay_within_their_memory(report):
    assert report["peak_bytes"] <= MOST_MEMORY


def test_the_crawl_comes_to_its_end_by_itself(report):
    assert report["fault"] == ""


def test_every_attack_of_the_list_has_an_endpoint():
    assert {attack.number for attack in ATTACKS} == set(NUMBERS)


@pytest.mark.parametrize("attack", TRIED, ids=NAMES)
def test_a_crawl_that_saw_nothing_proves_nothing(attack):
    assert attack.holds(AttackEvidence()) is not None
