"""Each crawl has a strategy of its own: applied, used, rolled back and broken without the others noticing."""

import json

import pytest

from tamias.features.strategy.strategist import LOOK_SECONDS
from tamias.model.item import Item
from tests.messages import unsaid

ONE = "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS $$ SELECT {score}::float8 $$;"
NEWS, OTHER = "SELECT crawl FROM crawl WHERE name = 'news'", "default"


@pytest.fixture
def news(asked):
    """The number of a second crawl."""
    asked("INSERT INTO crawl (name) VALUES ('news')")
    return asked(NEWS)[0][0]


@pytest.fixture
def known(frontier, admission, asked):
    """`known(crawl, url, ...)` puts URLs; `known.scores()` are the scores of all by crawl and URL."""

    def put(crawl, *urls):
        frontier.put([admission.item(url, 1, crawl) for url in urls])

    put.scores = lambda: {
        (crawl, url): round(score, 3) for crawl, url, score in asked("SELECT crawl, url, score FROM url")
    }
    return put


def test_a_strategy_changes_the_urls_of_its_crawl_and_no_others(strategy, known, news, tend, asked):
    known(1, "http://a.example/")
    known(news, "http://a.example/")
    asked("UPDATE url SET score = 0.77 WHERE crawl = 1")
    assert strategy("apply", ONE.format(score=0.9), "--crawl", "news").out.startswith(
        "strategy 1 is active in the crawl 'news'"
    )
    tend()
    assert known.scores() == {(1, "http://a.example/"): 0.77, (news, "http://a.example/"): 0.9}
    strategy("apply", ONE.format(score=0.2))
    tend()
    assert known.scores() == {(1, "http://a.example/"): 0.2, (news, "http://a.example/"): 0.9}
    strategy("off", "--crawl", "news")
    tend()
    assert known.scores() == {(1, "http://a.example/"): 0.2, (news, "http://a.example/"): 0.5}


def test_new_urls_are_scored_by_the_strategy_of_their_crawl(strategy, strategist, news):
    strategy("apply", ONE.format(score=0.9), "--crawl", "news")
    strategy("apply", ONE.format(score=0.1))
    strategist._looked_at -= LOOK_SECONDS
    items = [Item(url="http://a.example/", key="http://a.example/", host="a.example", depth=1, crawl=crawl)
             for crawl in (1, news)]  # fmt: skip
    assert [(item.crawl, item.score) for item in strategist.score(items, [])] == [(1, 0.1), (news, 0.9)]


def test_versions_are_listed_shown_and_rolled_back_crawl_by_crawl(strategy, news):
    strategy("apply", ONE.format(score=0.1))
    strategy("apply", ONE.format(score=0.2), "--crawl", "news")
    strategy("apply", ONE.format(score=0.3), "--crawl", "news")
    listed = json.loads(strategy("list", "--json").out)
    assert [(each["number"], each["crawl"], each["state"]) for each in listed] == [
        (3, "news", "in force"),
        (2, "news", "replaced"),
        (1, "default", "in force"),
    ]
    assert json.loads(strategy("rollback", "--crawl", "news", "--json").out) == {"number": 2}
    assert json.loads(strategy("show", "--json").out)["number"] == 1
    assert json.loads(strategy("show", "--crawl", "news", "--json").out)["number"] == 2
    assert not unsaid(strategy("rollback", "1", "--crawl", "news").err, "1")
    assert strategy("rollback").code == 2  # the default crawl has no earlier one


def test_a_strategy_that_fails_is_out_of_force_in_its_crawl_alone(strategy, strategist, asked, news):
    strategy("apply", ONE.format(score=0.1))
    failing = ONE.replace("{score}::float8", "1.0 / (length(url) - 20)")
    assert strategy("apply", failing, "--crawl", "news").code == 0
    url = "http://a.example/123"
    items = [Item(url=url, key=url, host="a.example", depth=1, crawl=crawl) for crawl in (1, news)]
    assert len(url) == 20
    strategist.score(items, [])
    states = asked("SELECT crawl, state FROM strategy ORDER BY number")
    assert states == [(1, "in force"), (news, "failed")]


def test_a_crawl_must_exist_and_be_no_archive(strategy):
    assert "'nothing'" in strategy("off", "--crawl", "nothing").err
    assert not unsaid(strategy("apply", ONE.format(score=1), "--crawl", "watch").err)


CHANGES = {
    "its function": (
        "CREATE OR REPLACE FUNCTION strategy_1.score_url(url text) RETURNS float8 LANGUAGE sql AS"
        " $$ SELECT 0.0::float8 $$;",
        "it changes something of another strategy's",
    ),
    "its function in a block that catches errors": (
        "DO $do$ BEGIN ALTER FUNCTION strategy_1.score_url(text) COST 5;"
        " EXCEPTION WHEN OTHERS THEN NULL; END $do$;",
        "it changes something of another strategy's",
    ),
    "its rows": ("INSERT INTO strategy_1.words VALUES ('mine');", "it changes rows of strategy_1.words"),
    "all its rows": ("TRUNCATE strategy_1.words;", "it changes something of another strategy's"),
    "its schema": ("DROP SCHEMA strategy_1 CASCADE;", "it changes something of another strategy's"),
    "its columns": (
        "ALTER TABLE strategy_1.words ADD COLUMN more text;",
        "it changes something of another strategy's",
    ),
    "new things in its schema": (
        "CREATE FUNCTION strategy_1.lower(name) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$;",
        "it changes something of another strategy's",
    ),
    "all that the role owns": ("DROP OWNED BY tamias_strategy CASCADE;", ""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_strategy_cannot_change_that_of_another_crawl(strategy, asked, news, change):
    first = "CREATE TABLE words (word text); INSERT INTO words VALUES ('river');" + ONE.format(score=0.5)
    assert strategy("apply", first).code == 0
    text, reason = CHANGES[change]
    refused = strategy("apply", ONE.format(score=0.1) + text, "--crawl", "news")
    assert refused.code == 2
    assert reason in refused.err
    assert asked("SELECT strategy_1.score_url('http://a.example/')") == [(0.5,)]
    assert asked("SELECT * FROM strategy_1.words") == [("river",)]


def test_nothing_of_a_deleted_crawl_is_left(strategy, known, news, tamias, asked, frontier):
    for crawl in (1, news):
        known(crawl, "http://a.example/")
    strategy("apply", ONE.format(score=0.5))
    strategy("apply", ONE.format(score=0.9), "--crawl", "news")
    for table, columns in (
        ("revisit", "bucket, qid, crawl, uid"),
        ("link", "bucket, qid, crawl, uid, from_uid, first_seen, count, from_url, to_url"),
        ("tagged", "bucket, qid, crawl, uid, tag, set_by, set_at"),
    ):
        more = {"link": ", 1, 1, 1, 'http://b.example/', url", "tagged": ", 't', 'me', 1"}.get(table, "")
        asked(f"INSERT INTO {table} ({columns}) SELECT bucket, qid, crawl, uid{more} FROM url")
    asked("INSERT INTO visit_budget (crawl, at, balance, released_at) SELECT crawl, 0, 1, 0 FROM crawl")
    crawls = """
        SELECT crawl FROM url UNION ALL SELECT crawl FROM queue UNION ALL SELECT crawl FROM revisit UNION ALL
        SELECT crawl FROM link UNION ALL SELECT crawl FROM tagged UNION ALL SELECT crawl FROM visit_budget
        UNION ALL SELECT crawl FROM strategy UNION ALL SELECT of_crawl FROM rescoring"""
    before = [row[0] for row in asked(crawls)]
    assert before.count(news) == before.count(1) == 8
    done = tamias.run("crawls", "delete", "news")
    assert done.returncode == 0, done.stderr
    after = [row[0] for row in asked(crawls)]
    assert (after.count(news), after.count(1)) == (0, 8)
    assert asked("SELECT nspname FROM pg_namespace WHERE nspname ~ '^strategy_'") == [("strategy_1",)]
