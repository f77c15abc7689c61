"""Importance by tag, score, portal and quality measure."""

import pytest

from tamias.model.errors import ConfigError
from tamias.schedule.rules import parse_importance


@pytest.mark.parametrize(
    ("tags", "score", "importance"),
    [((), 0.5, 1.0), (("person",), 0.5, 3.0), (("person", "old"), 0.5, 1.5), ((), 1.0, 2.0), ((), 0.0, 0.5)],
)
def test_factors_of_tags_and_scores_are_multiplied(tags, score, importance):
    rules = parse_importance(["tag=person 3", "tag=old 0.5", "score 2"])
    assert rules.of_url(tags, score) == pytest.approx(importance)


def test_factors_of_portals_and_measures_are_known_by_name():
    rules = parse_importance(["portal=https://data.example/ 2", "quality=opfo 1.5"])
    assert rules.named("portal") == {"https://data.example/": 2.0}
    assert rules.named("quality") == {"opfo": 1.5}


@pytest.mark.parametrize("text", ["", "tag=a", "tag=a 0", "host=a 2", "score", "tag=a b 2"])
def test_what_is_no_rule_is_an_error_that_says_what_is(text):
    with pytest.raises(ConfigError, match="tag=NAME FACTOR"):
        parse_importance([text])
