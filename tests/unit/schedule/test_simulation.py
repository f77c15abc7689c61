"""The simulation on a few pages: what it counts is right, whatever the rules make of it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import command
from benchmarks.schedule import HABITS, TICK_MS, Nutch, PublishedPages, draw_pages, run, simulate
from tamias.schedule.history import DAY_MS
from tamias.schedule.value import TERMS


class EveryTick:
    def new_day(self):
        pass

    def visited(self, page, now_ms, changed):
        return now_ms + TICK_MS


@pytest.mark.parametrize("habit", HABITS)
def test_pages_change_as_often_as_their_rates_say(habit):
    drawn = draw_pages(habit, 400, 200, 1)
    assert drawn.changes.sum() == pytest.approx(drawn.rates.sum() * 200, rel=0.05)


@pytest.mark.parametrize("habit", HABITS)
def test_a_page_is_fresh_for_a_whole_tick_just_where_nothing_changes(habit):
    drawn = draw_pages(habit, 100, 50, 1)
    assert ((drawn.fresh_until == 1) == (drawn.changes == 0)).all()


def test_who_visits_all_pages_in_every_tick_misses_only_what_happens_within_one():
    changes = np.zeros((36, 2), dtype=np.int32)
    changes[20, 0] = 2
    fresh_until = np.where(changes > 0, 0.25, 1.0).astype(np.float32)
    score = simulate(PublishedPages(np.ones(2), changes, fresh_until), EveryTick(), visits_per_day=8)
    assert (score.caught, score.visits) == (0.5, 4.0)
    assert score.freshness == pytest.approx(1 - 0.75 / 48)


def test_no_rule_gets_more_visits_than_another():
    figures = run(60, 30, 1, out=lambda _line: None)["figures"]
    assert [each["visits"] for each in figures] == pytest.approx([0.25] * len(figures), rel=0.05)


def test_nutch_waits_longer_without_a_change_and_less_after_one():
    nutch = Nutch(1, 1.0)
    days = [nutch.visited(0, 0, changed) / DAY_MS for changed in (False, True)]
    assert days == pytest.approx([1.4, 1.12])


def test_the_command_gives_its_figures_as_json():
    result = CliRunner().invoke(command, ["schedule", "--pages", "40", "--days", "30", "--json"])
    rules = {each["rule"] for each in json.loads(result.output)["figures"]}
    knobs = {f"value, knob {knob:g}" for knob in (0, 0.5, 1, TERMS.knob)}
    assert rules == {"fixed", "seed", "Nutch", "oracle"} | knobs
