"""The estimated rate, against bisection on the likelihood itself and against known rates."""

import random
from math import exp, expm1

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamias.schedule.visit import DAY_MS, MEMORY, PRIOR, Prior, VisitHistory, estimate

DAYS = st.floats(min_value=1 / 24, max_value=400)


def bisected(history, prior):
    def height(rate):
        terms = sum(
            count * rate * days / expm1(rate * days) for days, count in history.changed if rate * days < 700
        )
        return prior.shape - (prior.days + history.unchanged_days) * rate + terms

    low, high = 1e-9, 1e6
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if height(middle) > 0 else (low, middle)
    return low


@settings(deadline=None)
@given(st.lists(st.tuples(DAYS, st.booleans()), max_size=40))
def test_newton_finds_what_bisection_finds(observed):
    history = VisitHistory()
    for days, changed in observed:
        history = history.after(int(days * DAY_MS), changed)
    assert estimate(history) == pytest.approx(bisected(history, PRIOR), rel=1e-6)


def test_without_observations_it_is_the_priors():
    assert estimate(VisitHistory()) == PRIOR.rate == pytest.approx(0.05)


def test_a_page_that_never_changed_has_a_rate_above_zero():
    history = VisitHistory()
    for _ in range(50):
        history = history.after(10 * DAY_MS, False)
    assert 0 < estimate(history) < 0.002


def test_a_page_that_always_changed_has_a_finite_rate():
    history = VisitHistory()
    for _ in range(500):
        history = history.after(DAY_MS // 4, True)
    assert 4 < estimate(history) < 40


@pytest.mark.parametrize("rate", [0.02, 0.2, 1.0])
def test_the_rate_of_a_poisson_publisher_is_found_at_irregular_visits(rate):
    chance = random.Random(7)
    found = []
    for _ in range(40):
        history = VisitHistory()
        for _ in range(150):
            days = chance.uniform(0.2, 2) / rate
            history = history.after(int(days * DAY_MS), chance.random() < -expm1(-rate * days))
        found.append(estimate(history))
    assert sum(found) / len(found) == pytest.approx(rate, rel=0.15)


def test_several_changes_in_one_interval_are_not_taken_for_one():
    seen_half_the_time = VisitHistory()
    for number in range(40):
        seen_half_the_time = seen_half_the_time.after(10 * DAY_MS, number % 2 == 0)
    # Half of the intervals changed: 1 - e^-10λ = 1/2, where counting would say one change in twenty days.
    assert estimate(seen_half_the_time) == pytest.approx(0.0693, rel=0.05)


def test_the_word_of_others_is_believed_at_first():
    assert estimate(VisitHistory(expected_days=2.0)) == pytest.approx(0.5)


def test_what_is_seen_soon_outweighs_the_word_of_others():
    history = VisitHistory(expected_days=1.0)
    for _ in range(10):
        history = history.after(3 * DAY_MS, False)
    assert estimate(history) < 0.02


def test_intervals_that_were_put_together_hardly_move_the_estimate():
    chance = random.Random(3)
    spans = [exp(chance.uniform(-2, 3)) for _ in range(40)]
    observed = [(days, chance.random() < -expm1(-days / 4)) for days in spans]
    history = VisitHistory()
    for days, changed in observed:
        history = history.after(int(days * DAY_MS), changed)
    weighed = [
        (days, changed, (1 - 1 / MEMORY) ** age) for age, (days, changed) in enumerate(reversed(observed))
    ]
    whole = VisitHistory(
        unchanged_days=sum(days * weight for days, changed, weight in weighed if not changed),
        changed=tuple((days, weight) for days, changed, weight in weighed if changed),
    )
    assert len(history.changed) < len(whole.changed)
    assert estimate(history) == pytest.approx(estimate(whole), rel=0.01)


def test_a_strong_prior_holds_longer_than_a_weak_one():
    history = VisitHistory().after(DAY_MS, True)
    assert estimate(history, Prior(35.0, 700.0)) < estimate(history, Prior(0.35, 7.0))
