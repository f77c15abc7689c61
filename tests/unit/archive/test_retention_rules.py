"""Which versions the retention rules keep, as a table."""

from datetime import UTC, datetime

import pytest

from tamias.features.forgetting.retention import DatedVersion, RetentionRules, parse_rule
from tamias.model.errors import ConfigError

NOW = "2026-11-16"
DAYS = ["2026-08-30", "2026-09-01", "2026-09-30", "2026-10-05", "2026-11-01", "2026-11-02", "2026-11-15"]


def milliseconds(day):
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)


VERSIONS = [DatedVersion(number, milliseconds(day), 100) for number, day in enumerate(DAYS, 1)]


@pytest.mark.parametrize(
    ("rule", "dropped"),
    [
        ("all", []),
        ("last:1", [1, 2, 3, 4, 5, 6]),
        ("last:3", [1, 2, 3, 4]),
        ("last:100", []),
        ("thin", [2]),
        ("days:2", [1, 2, 3, 4, 5]),
        ("days:1", [1, 2, 3, 4, 5, 6]),
        ("days:16", [1, 2, 3]),
        ("last:2,thin", [2]),
        ("last:2, days:16", [1, 2, 3]),
    ],
)
def test_what_a_rule_does_not_keep(rule, dropped):
    found = parse_rule(rule).drops(VERSIONS, milliseconds(NOW))
    assert [each.number for each in found] == dropped


@pytest.mark.parametrize("rule", ["all", "last:1", "days:1", "thin"])
def test_the_current_version_is_always_kept(rule):
    old = [DatedVersion(1, 0, 1)]
    assert parse_rule(rule).drops(old, milliseconds(NOW)) == []
    assert parse_rule(rule).drops([], milliseconds(NOW)) == []


@pytest.mark.parametrize("rule", ["", "none", "last:0", "last:", "days:x", "thin;all", "last:3,,"])
def test_what_is_no_rule_is_said(rule):
    with pytest.raises(ConfigError, match="last:N"):
        parse_rule(rule)


def test_a_host_comes_before_a_portal_and_that_before_all():
    rules = RetentionRules("all", ["data.example=last:2", "http://portal.example/=thin"])
    portals = ["http://portal.example/"]
    assert rules.rule_for("http://data.example/a", portals).text == "last:2"
    assert rules.rule_for("http://other.example/a", portals).text == "thin"
    assert rules.rule_for("http://other.example/a", []).text == "all"
    assert not rules.keeps_everything
    assert RetentionRules("all", []).keeps_everything
