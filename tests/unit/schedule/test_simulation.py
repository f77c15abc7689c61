"""The simulation on a few pages: what it counts is right, whatever the rules make of it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import command
from benchmarks.schedule import MIXES, TICK_MS, TICKS_A_DAY, PublishedPages, draw_pages, run, simulate


class EveryTick:
    def new_day(self):
        pass

    def visited(self, page, now_ms, changed):
        return now_ms + TICK_MS


@pytest.mark.parametrize("mix", MIXES)
def test_pages_change_as_often_as_their_rates_say(mix):
    drawn = draw_pages(MIXES[mix], 400, 100, 1)
    assert drawn.changes.sum() == pytest.approx(drawn.rates.sum() * 100, rel=0.1)


@pytest.mark.parametrize("mix", MIXES)
def test_a_page_is_fresh_for_a_whole_tick_just_where_nothing_changes(mix):
    drawn = draw_pages(MIXES[mix], 100, 20, 1)
    assert ((drawn.fresh_until == 1) == (drawn.changes == 0)).all()


def test_who_visits_all_pages_in_every_tick_misses_only_what_happens_within_one():
    changes = np.zeros((9 * TICKS_A_DAY, 2), dtype=np.int32)
    changes[5 * TICKS_A_DAY, 0] = 2
    fresh_until = np.where(changes > 0, 0.25, 1.0).astype(np.float32)
    score = simulate(PublishedPages(np.ones(2), changes, fresh_until), EveryTick(), None)
    assert (score.caught, score.visits) == (0.5, float(TICKS_A_DAY))
    assert score.freshness == pytest.approx(1 - 0.75 / (12 * TICKS_A_DAY))


def test_the_default_is_never_behind_round_robin_or_the_thesis():
    report = run(240, 60, 1, out=lambda _line: None)
    by_mix = {}
    for each in report["figures"]:
        by_mix.setdefault(each["mix"], {})[each["rule"]] = each
    assert set(by_mix) == {"still", "lively", "bursty"}
    for rules in by_mix.values():
        assert set(rules) == {"ours", "round robin", "thesis", "oracle"}
        visits = [each["visits"] for each in rules.values()]
        assert visits == pytest.approx([rules["ours"]["visits"]] * 4, rel=0.05)
        for measure in ("caught", "freshness"):
            best = max(rules[rule][measure] for rule in ("round robin", "thesis"))
            assert rules["ours"][measure] >= best


def test_the_command_gives_its_figures_as_json():
    result = CliRunner().invoke(command, ["schedule", "--pages", "40", "--days", "30", "--json"])
    rules = {each["rule"] for each in json.loads(result.output)["figures"]}
    assert rules == {"ours", "round robin", "thesis", "oracle"}
