"""What a visit is worth, when it is due, and the threshold that spends the budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamias.schedule.budget import intervals, threshold, thresholds, values
from tamias.schedule.visit import Thresholds, VisitTerms, due_after

RATES = st.floats(min_value=1e-5, max_value=50)
KNOBS = st.floats(min_value=0, max_value=1)
FREE = VisitTerms(knob=0.3, minimum=1e-6, maximum=1e6)


def value(rate, weight, days):
    return float(values(np.array([rate]), np.array([weight]), days)[0])


def drawn(number, seed=1):
    return np.exp(1.5 * np.random.default_rng(seed).standard_normal(number)) / 20


@given(RATES, st.floats(min_value=0.01, max_value=400))
def test_a_visit_is_worth_more_the_longer_it_is_ago(rate, days):
    assert value(rate, 1.0, days) <= value(rate, 1.0, days * 1.1)


@settings(deadline=None)
@given(RATES, KNOBS, st.floats(min_value=1e-3, max_value=1000))
def test_a_visit_is_due_when_its_value_reaches_the_threshold(rate, knob, days):
    terms = VisitTerms(knob=knob, minimum=1e-6, maximum=1e6)
    level = value(rate, rate**knob, days)
    if rate * days < 20:  # beyond, the value is flat to the last digit
        assert due_after(rate, 1.0, level, terms) == pytest.approx(days, rel=1e-4)


def test_the_small_and_the_large_formula_of_the_value_meet():
    assert value(1.0, 1.0, 0.99999e-4) == pytest.approx(value(1.0, 1.0, 1.00001e-4), rel=1e-4)


def test_the_interval_is_never_shorter_than_the_shortest():
    assert due_after(1.0, 1.0, 0.0, VisitTerms(minimum=0.5)) == 0.5


def test_what_never_reaches_the_threshold_is_visited_after_the_longest_time():
    assert due_after(50.0, 1.0, 0.9, VisitTerms(knob=0.0, maximum=90.0)) == 90.0


def test_what_has_no_importance_is_visited_after_the_longest_time():
    assert due_after(1.0, 0.0, 0.1, VisitTerms(maximum=90.0)) == 90.0


def test_the_more_important_of_two_is_due_sooner():
    assert due_after(0.1, 2.0, 0.3) < due_after(0.1, 1.0, 0.3)


def test_at_the_end_of_every_version_fast_pages_are_visited_most():
    keen = VisitTerms(knob=1.0)
    assert due_after(5.0, 1.0, 0.3, keen) < due_after(0.5, 1.0, 0.3, keen) < due_after(0.05, 1.0, 0.3, keen)


@settings(deadline=None)
@given(st.lists(RATES, min_size=1, max_size=20), KNOBS, st.floats(min_value=1e-6, max_value=10))
def test_many_at_once_are_due_as_each_by_itself(rates, knob, level):
    terms = VisitTerms(knob=knob)
    each = [due_after(rate, 1.0, level, terms) for rate in rates]
    assert intervals(np.array(rates), np.ones(len(rates)), level, terms) == pytest.approx(each, rel=1e-6)


@pytest.mark.parametrize("number", [1, 40, 3000, 200_000])
def test_the_threshold_spends_the_budget(number):
    rates, even = drawn(number), np.ones(number)
    level = threshold(rates, even, 0.25 * number, FREE)
    assert (1 / intervals(rates, even, level, FREE)).mean() == pytest.approx(0.25, rel=5e-3)


def test_the_limits_of_intervals_are_reckoned_with():
    rates, even = drawn(3000), np.ones(3000)
    terms = VisitTerms(knob=1.0, minimum=1.0, maximum=30.0)
    level = threshold(rates, even, 750.0, terms)
    assert (1 / intervals(rates, even, level, terms)).sum() == pytest.approx(750.0, rel=5e-3)


@pytest.mark.parametrize(("budget", "days"), [(0.0, 180.0), (1e9, 1 / 24)])
def test_a_budget_beyond_the_limits_gives_the_limit(budget, days):
    rates, even = drawn(100), np.ones(100)
    level = threshold(rates, even, budget)
    assert intervals(rates, even, level) == pytest.approx(np.full(100, days), rel=1e-3)


def test_without_resources_the_threshold_is_nothing():
    assert threshold(np.array([]), np.array([]), 10.0) == 0.0


def test_a_resource_without_importance_does_not_upset_the_threshold():
    level = threshold(np.array([0.1, 0.1]), np.array([0.0, 1.0]), 0.5, FREE)
    assert due_after(0.1, 1.0, level, FREE) == pytest.approx(2.0, rel=0.01)


def crowded():
    """One host with nine of ten pages, the fast ones, and nine small ones."""
    rates = np.concatenate([drawn(900) * 10, drawn(100, seed=2)])
    hosts = ["greedy.example"] * 900 + [f"h{number % 9}.example" for number in range(100)]
    return rates, np.ones(1000), hosts


def spent(host, rates, even, hosts, found):
    mine = np.array([each == host for each in hosts])
    return float((1 / intervals(rates[mine], even[mine], found.of(host), FREE)).sum())


def test_a_greedy_host_is_held_to_its_share():
    rates, even, hosts = crowded()
    found = thresholds(rates, even, hosts, 250.0, host_share=0.2, terms=FREE)
    assert spent("greedy.example", rates, even, hosts, found) == pytest.approx(50.0, rel=5e-3)


def test_what_a_greedy_host_leaves_is_spent_on_the_others():
    rates, even, hosts = crowded()
    found = thresholds(rates, even, hosts, 250.0, host_share=0.2, terms=FREE)
    assert sum(spent(host, rates, even, hosts, found) for host in set(hosts)) == pytest.approx(250, rel=5e-3)


def test_a_single_host_may_take_all():
    rates, even = drawn(100), np.ones(100)
    found = thresholds(rates, even, ["only.example"] * 100, 25.0, host_share=0.2)
    assert (found.common, found.hosts) == (threshold(rates, even, 25.0), {})


def test_a_budget_that_the_longest_intervals_overdraw_holds_nobody():
    rates, even = drawn(100), np.ones(100)
    hosts = [f"h{number % 2}.example" for number in range(100)]
    assert thresholds(rates, even, hosts, 0.001, host_share=0.2).hosts == {}


def test_no_hosts_are_no_trouble():
    assert thresholds(np.array([]), np.array([]), [], 10.0, host_share=0.2) == Thresholds(share=10.0)
