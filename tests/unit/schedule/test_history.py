"""What visits have seen: counted, faded, bounded."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tamias.schedule.visit import DAY_MS, MEMORY, WINDOW, VisitHistory, pack, unpack

NOW = 1_700_000_000_000
VISITS = st.lists(
    st.tuples(
        st.integers(min_value=1, max_value=200 * DAY_MS),
        st.sampled_from(["changed", "unchanged", "noise", "failed", "gone"]),
    ),
    max_size=120,
)


def lived(*visits, start=NOW):
    history = VisitHistory().seeing("changed", start)
    for days, seen in visits:
        start += int(days * DAY_MS)
        history = history.seeing(seen, start)
    return history


def test_the_first_visit_observes_no_interval():
    assert VisitHistory().seeing("changed", NOW) == VisitHistory(visited_at=NOW)


def test_an_unchanged_interval_adds_to_the_quiet_time():
    assert lived((3, "unchanged")).unchanged_days == 3.0


def test_a_changed_interval_is_kept_by_itself():
    assert lived((3, "changed")).changed == ((3.0, 1.0),)


def test_noise_counts_as_unchanged():
    assert lived((3, "noise")) == lived((3, "unchanged"))


def test_a_failure_leaves_the_interval_open_until_a_visit_tells():
    assert lived((1, "failed"), (1, "failed"), (2, "changed")).changed == ((4.0, 1.0),)


def test_what_is_gone_is_no_observation_of_the_content():
    gone = lived((1, "gone"))
    assert (gone.unchanged_days, gone.changed, gone.fails) == (0.0, (), 1)


def test_a_visit_that_tells_ends_the_count_of_failures():
    assert lived((1, "failed"), (1, "unchanged")).fails == 0


def test_a_clock_that_went_back_observes_nothing():
    assert lived((1, "unchanged"), (-2, "changed")) == lived((1, "unchanged"))


def test_an_old_observation_fades():
    assert 0.3 < lived((5, "changed"), *[(1, "unchanged")] * MEMORY).changed[0][1] < 0.4


def test_the_last_ten_intervals_stay_as_they_were():
    history = lived(*[(day, "unchanged") for day in range(1, 15)], (1, "changed"))
    assert history.recent[-2:] == ((14 * DAY_MS, False), (DAY_MS, True))
    assert len(history.recent) == WINDOW


@settings(deadline=None)
@given(VISITS)
def test_a_history_is_small_and_survives_its_keeping(visits):
    history, now = VisitHistory(), NOW
    for interval_ms, seen in visits:
        now += interval_ms
        history = history.seeing(seen, now)
    packed = pack(history)
    assert len(packed) < 350
    assert unpack(packed) == history


def test_no_kept_history_is_an_empty_one():
    assert unpack(None) == VisitHistory()
