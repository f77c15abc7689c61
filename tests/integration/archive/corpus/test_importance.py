"""What a resource counts: by the portal that names it, by measures of its quality, and by the user's word."""

import pytest

from tamias.crawl.revisit.timetable import set_thresholds
from tamias.model.resource import Source
from tamias.settings import ScheduleSettings

PORTAL, OTHER = "https://portal.example.org/", "https://other.example.org/"
RULES = (f"portal={PORTAL} 3", f"portal={OTHER} 2", "quality=opfo 5", "quality=exda 0.5")


@pytest.fixture
def resources(corpus):
    """Resources of a portal, of two portals, of none; one of them has been measured."""
    found = {
        "named": corpus.watch("http://a.example/1.csv", Source(source="s", portal=PORTAL)),
        "named twice": corpus.watch(
            "http://a.example/2.csv", Source(source="s", portal=OTHER), Source(source="t", portal=PORTAL)
        ),
        "measured": corpus.watch("http://a.example/3.csv"),
        "both": corpus.watch("http://a.example/4.csv", Source(source="s", portal=OTHER)),
        "neither": corpus.watch("http://a.example/5.csv"),
    }
    for name, metric, value in (("measured", "opfo", 0.5), ("both", "opfo", 1.0), ("both", "exda", 1.0)):
        corpus.execute("INSERT INTO measure VALUES (%s, %s, %s, 0)", [found[name], metric, value])
    return found


def importances(corpus, resources):
    rows = dict(corpus.execute("SELECT resource, importance FROM resource"))
    return {name: pytest.approx(rows[each]) for name, each in resources.items()}


def test_factors_of_portals_and_measures_make_the_importance(corpus, resources):
    set_thresholds(corpus.session, ScheduleSettings(importance=RULES))
    assert importances(corpus, resources) == {
        "named": 3.0,
        "named twice": 3.0,
        "measured": 1 + 4 * 0.5,
        "both": 2 * 5 * 0.5,
        "neither": 1.0,
    }


def test_the_user_s_word_is_multiplied_and_rules_that_are_gone_count_no_more(corpus, resources):
    corpus.execute("UPDATE resource SET priority = 10 WHERE resource = %s", [resources["named"]])
    set_thresholds(corpus.session, ScheduleSettings(importance=RULES))
    assert importances(corpus, resources)["named"] == 30.0
    set_thresholds(corpus.session, ScheduleSettings())
    assert set(corpus.execute("SELECT importance FROM resource")) == {(1.0,), (10.0,)}
