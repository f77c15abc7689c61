"""After a visit: the next one, by every rule and after every kind of end."""

from itertools import pairwise

import pytest

from tamias.crawl.revisit.timetable import policy_from
from tamias.model.errors import ConfigError
from tamias.schedule.rules import VisitRule, parse_rule, seed_interval_ms
from tamias.schedule.visit import (
    DAY_MS,
    TERMS,
    VisitHistory,
    VisitPolicy,
    VisitTerms,
    due_after,
    estimate,
    next_visit,
)
from tamias.settings import ScheduleSettings

NOW = 1_700_000_000_000
HOUR_MS = 3_600_000
SEEN_BEFORE = VisitHistory(visited_at=NOW - 4 * DAY_MS)
LIMITED = VisitPolicy(visits_a_change=0.0)


def waited(history, seen, policy=None, **more):
    policy = policy or VisitPolicy()
    return next_visit(history, seen, NOW, threshold=0.1, policy=policy, **more).due_ms - NOW


def test_the_value_rule_waits_until_the_visit_is_worth_the_threshold():
    after = next_visit(SEEN_BEFORE, "changed", NOW, threshold=0.1, importance=2.0, policy=LIMITED)
    assert after.due_ms - NOW == round(due_after(after.rate, 2.0, 0.1) * DAY_MS)


def test_the_rate_is_that_of_the_new_history():
    after = next_visit(SEEN_BEFORE, "changed", NOW, threshold=0.1)
    assert after.rate == estimate(after.history) > estimate(SEEN_BEFORE)


def test_a_change_brings_the_next_visit_nearer():
    assert waited(SEEN_BEFORE, "changed") < waited(SEEN_BEFORE, "unchanged")


def test_a_hint_is_reckoned_with_after_the_first_visit():
    expected = waited(VisitHistory(), "changed", LIMITED, expected_days=1.0)
    assert expected < waited(VisitHistory(), "changed", LIMITED)


def test_a_hint_is_remembered():
    first = next_visit(VisitHistory(), "changed", NOW, threshold=0.1, expected_days=1.0)
    second = next_visit(first.history, "unchanged", NOW + DAY_MS, threshold=0.1)
    assert second.rate == pytest.approx(0.35 / 1.35)


def test_the_fixed_rule_waits_its_seconds():
    assert waited(SEEN_BEFORE, "unchanged", VisitPolicy(rule=VisitRule("fixed", 7200))) == 2 * HOUR_MS


def test_the_seeds_rule_halves_the_mean_after_a_change():
    assert waited(SEEN_BEFORE, "changed", VisitPolicy(rule=VisitRule("seed"))) == 2 * DAY_MS


@pytest.mark.parametrize(
    ("hours", "interval"),
    [
        ([], 6),
        ([(50, False)], 50),
        ([(50, True)], 25),
        ([(50, False), (30, False)], 80),
        ([(50, False), (30, True)], 20),
        ([(10, True), (20, True), (30, False)], 30),
        ([(4, True)], 6),
        ([(2000, False)], 1460),
    ],
)
def test_the_seeds_rule_is_the_mean_time_between_changes_within_its_limits(hours, interval):
    assert seed_interval_ms([(each * HOUR_MS, changed) for each, changed in hours]) == interval * HOUR_MS


def test_a_failure_is_tried_again_after_an_hour_then_two():
    first = next_visit(SEEN_BEFORE, "failed", NOW, threshold=0.1)
    second = next_visit(first.history, "failed", NOW, threshold=0.1)
    assert (first.due_ms - NOW, second.due_ms - NOW) == (HOUR_MS, 2 * HOUR_MS)


def test_a_failure_tells_nothing_of_the_rate():
    assert next_visit(SEEN_BEFORE, "failed", NOW, threshold=0.1).rate == estimate(SEEN_BEFORE)


def test_chance_spreads_what_failed_together():
    assert waited(SEEN_BEFORE, "failed", chance=0.0) < waited(SEEN_BEFORE, "failed", chance=1.0)


def test_what_fails_for_ever_is_tried_after_the_longest_interval():
    assert waited(VisitHistory(fails=10_000), "failed") == TERMS.maximum * DAY_MS


def test_what_is_gone_is_looked_for_after_a_day():
    assert waited(SEEN_BEFORE, "gone") == DAY_MS


@pytest.mark.parametrize("rule", ["value", "seed", "fixed:60"])
def test_what_came_back_is_visited_by_the_rule_again(rule):
    history = VisitHistory(visited_at=NOW - 4 * DAY_MS, fails=9)
    policy = VisitPolicy(rule=parse_rule(rule))
    assert waited(history, "unchanged", policy) == waited(SEEN_BEFORE, "unchanged", policy)


@pytest.mark.parametrize("text", ["", "fixed", "fixed:", "fixed:-1", "fixed:1e3", "Value", "nutch"])
def test_a_rule_that_does_not_exist_is_refused_in_one_sentence(text):
    with pytest.raises(ConfigError, match=r"schedule\.rule"):
        parse_rule(text)


def test_the_defaults_of_the_settings_are_those_of_the_policy():
    assert policy_from(ScheduleSettings()) == VisitPolicy()


def test_a_longest_interval_below_the_shortest_is_taken_for_it():
    policy = policy_from(ScheduleSettings(knob=0.5, min_interval=7200, max_interval=60))
    assert policy.terms == VisitTerms(knob=0.5, minimum=1 / 12, maximum=1 / 12)


def watched(changes_at, days, **more):
    """The days of visits to a resource that changes at these times, where no visit is worth its cost."""
    history, now, seen_until, visits, missed = VisitHistory(), 0, -1.0, [], 0.0
    while now < days * DAY_MS:
        changed = any(seen_until < each <= now / DAY_MS for each in changes_at)
        after = next_visit(history, "changed" if changed else "unchanged", now, threshold=1e9, **more)
        seen_until, history = now / DAY_MS, after.history
        visits.append(now / DAY_MS)
        now, missed = after.due_ms, missed + after.missed
    return visits, missed


@pytest.mark.parametrize(("hours", "most_lost"), [(24, 0), (1, 8)])
def test_every_version_of_a_regular_file_is_seen(hours, most_lost):
    changes = [(each + 0.5) * hours / 24 for each in range(30 * 24 // hours)]
    visits, _ = watched(changes, 30)
    seen = {sum(change <= visit for change in changes) for visit in visits}
    assert len(changes) - len(seen - {0}) <= most_lost + 1


def test_what_changes_at_every_visit_is_visited_sooner_each_time():
    visits, missed = watched([each / 100 for each in range(300)], 3)
    gaps = [round(after - before, 6) for before, after in pairwise(visits)]
    assert gaps[:4] == sorted(gaps[:4], reverse=True)
    assert min(gaps) == round(TERMS.minimum, 6)
    assert missed > 3


def test_changes_that_come_one_at_a_time_get_three_visits_each_and_no_more():
    changes = [1.3, 3.1, 6.2, 7.9, 11.0, 13.4, 15.0, 18.7]
    visits, _ = watched(changes, 20)
    caught = {sum(change <= visit for change in changes) for visit in visits} - {0}
    assert (len(caught), len(visits) <= 3 * len(changes)) == (8, True)


def test_a_page_that_differs_at_every_request_is_visited_once_a_day():
    visits, _ = watched([each / 100 for each in range(1000)], 10, is_page=True)
    assert visits[-1] - visits[-2] == 1.0


def test_a_budget_is_not_overdrawn_for_changes():
    assert waited(SEEN_BEFORE, "changed", LIMITED) > waited(SEEN_BEFORE, "changed")
    held = waited(SEEN_BEFORE, "changed", is_limited=True)
    assert held == waited(SEEN_BEFORE, "changed", LIMITED)
