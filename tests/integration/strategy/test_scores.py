"""What a strategy does to scores: of new URLs, of known ones, and when it fails in use."""

import json

import msgspec
import pytest

from tamias.crawl.commit.link_put import LinkSource
from tamias.crawl.plan.admit import Reference
from tamias.model.finding import Worded, Words

PAGE = "http://a.example/page"
BY_ANCHOR = """
CREATE FUNCTION score_link(link seen_link) RETURNS float8 LANGUAGE sql AS $$
    SELECT CASE link.anchor WHEN 'a gem' THEN 0.9 ELSE 0.1 END
$$;
"""
CHANGES_ITS_SESSION = """
CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN
    PERFORM set_config('search_path', 'pg_catalog', false);
    PERFORM set_config('default_transaction_read_only', 'on', false);
    RETURN 0.75;
END $$;
"""


def failing_on(word, how):
    return f"""
        CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN
            IF strpos(url, '{word}') > 0 THEN {how}; END IF;
            RETURN 0.25;
        END $$;
    """


@pytest.fixture
def find(strategist, frontier, admission):
    """`find(page, {url: anchor})`: a visit found links; returns the scores with which new URLs were put."""

    def find(page, links):
        words = {url: Words(anchor=anchor, left="left of", right="right of") for url, anchor in links.items()}
        found = [LinkSource(Reference(Worded(links, words), page, 1, 1), page, 0.5, 3)]
        items = [item for each in found for item in admission.items(each.reference)]
        scored = strategist.score(items, found)
        frontier.put(scored)
        admission.remember(scored)
        strategist.keep()
        return {item.url: item.score for item in scored}

    return find


@pytest.fixture
def put(frontier, admission):
    """`put(url, ...)`: known before, one step deep."""
    return lambda *urls: frontier.put([admission.item(url, 1, 1) for url in urls])


def first_of(frontier, count):
    """The URLs that are lent first, in their order."""
    return [task.url for lease in frontier.lease(1, count) for task in lease.tasks]


def state(strategy):
    return {each["number"]: each["state"] for each in json.loads(strategy("list", "--json").out)}


def test_without_a_strategy_new_urls_have_the_usual_score(find):
    assert find(PAGE, {"http://a.example/good": "good"}) == {"http://a.example/good": 0.5}


def test_a_known_url_is_lifted_by_a_better_link(strategy, find, asked):
    strategy("apply", BY_ANCHOR)
    find(PAGE, {"http://b.example/": "dull"})
    find("http://a.example/other", {"http://b.example/": "a gem"})
    find("http://a.example/third", {"http://b.example/": "dull"})
    assert asked("SELECT round(score::numeric, 2)::float8 FROM frontier_urls") == [(0.9,)]
    assert asked("SELECT class FROM host") == [(7,)]


def test_known_urls_are_scored_anew_and_the_best_of_a_host_is_lent_first(
    strategy, by_word, frontier, put, tend
):
    put(*(f"http://a.example/bad{number}" for number in range(60)), "http://a.example/good")
    strategy("apply", by_word)
    tend()
    assert first_of(frontier, 1) == ["http://a.example/good"]


def test_rescoring_chooses_between_hosts(strategy, by_word, frontier, put, tend):
    put(*(f"http://h{number}.example/bad" for number in range(20)), "http://h7.example/good")
    strategy("apply", by_word)
    tend()
    two = [task.url for lease in frontier.lease(2, 1) for task in lease.tasks]
    assert "http://h7.example/good" in two  # of two hosts, one may have been chosen so that nothing starves


def test_rescoring_sees_the_links_that_are_kept(strategy, find, asked, tend):
    find(PAGE, {"http://b.example/": "a gem", "http://c.example/": "dull"})
    strategy("apply", BY_ANCHOR)
    tend()
    rows = asked("SELECT host, round(score::numeric, 2)::float8 FROM frontier_urls ORDER BY host")
    assert rows == [("b.example", 0.9), ("c.example", 0.1)]


def test_scores_are_the_usual_ones_again_without_a_strategy(strategy, by_word, put, tend, asked):
    put("http://a.example/good", "http://a.example/bad")
    strategy("apply", by_word)
    tend()
    strategy("off")
    tend()
    assert asked("SELECT DISTINCT score, due = first_seen FROM frontier_urls") == [(0.5, True)]


def test_what_was_visited_or_comes_first_keeps_its_score(strategy, by_word, frontier, admission, tend, asked):
    first = msgspec.structs.replace(admission.item("http://a.example/good", 1, 1, score=2.0), due=1)
    seed = admission.item("http://a.example/seed", 0, 1)
    watched = admission.item("http://a.example/watched", 1, 2)
    frontier.put([first, seed, watched])
    strategy("apply", by_word)
    tend()
    assert asked("SELECT score FROM url ORDER BY score") == [(0.5,), (1.0,), (2.0,)]


def test_keeping_a_link_again_changes_its_words_and_nothing_else(find, asked):
    find(PAGE, {"http://b.example/": "old"})
    before = asked("SELECT first_seen FROM links")
    find(PAGE, {"http://b.example/": "new"})
    assert asked("SELECT first_seen, anchor, count FROM links") == [(*before[0], "new", 1)]


def test_a_strategy_that_fails_in_use_gives_way_to_the_one_before(strategy, by_word, find):
    strategy("apply", by_word)
    strategy("apply", failing_on("poison", "RETURN 1 / 0"))
    scores = find(PAGE, {"http://b.example/poison": "", "http://b.example/good": ""})
    assert scores == {"http://b.example/poison": 0.05, "http://b.example/good": 0.95}
    assert state(strategy) == {1: "in force", 2: "failed"}
    assert "division by zero" in strategy("list").out


def test_a_strategy_that_fails_while_known_urls_are_scored_gives_way_too(strategy, by_word, put, tend, asked):
    strategy("apply", by_word)
    strategy("apply", failing_on("poison", "RETURN 1 / 0"))
    put("http://a.example/poison")
    tend()
    assert state(strategy) == {1: "in force", 2: "failed"}
    assert asked("SELECT round(score::numeric, 2)::float8 FROM url") == [(0.05,)]


@pytest.mark.parametrize("seconds", [1.0])
def test_a_batch_that_takes_too_long_keeps_the_usual_scores_and_the_third_in_a_row_is_enough(
    strategy, find, asked
):
    strategy("apply", failing_on("slow", "PERFORM pg_sleep(60)"))
    scores = [find(PAGE, {f"http://b.example/slow{turn}": ""}) for turn in range(2)]
    assert [list(each.values()) for each in scores] == [[0.5], [0.5]]
    assert asked("SELECT state, slow FROM strategy") == [("in force", 2)]
    find(PAGE, {"http://b.example/slow2": ""})
    assert state(strategy) == {1: "failed"}


@pytest.mark.parametrize("seconds", [1.0])
def test_a_quick_batch_makes_up_for_a_slow_one(strategy, find, asked):
    strategy("apply", failing_on("slow", "PERFORM pg_sleep(60)"))
    find(PAGE, {"http://b.example/slow": ""})
    find(PAGE, {"http://b.example/quick": ""})
    assert asked("SELECT slow FROM strategy") == [(0,)]


def test_what_a_strategy_does_to_its_session_is_undone(strategy, find):
    strategy("apply", CHANGES_ITS_SESSION)
    assert [find(PAGE, {url: ""}) for url in ("http://b.example/1", "http://b.example/2")] == [
        {"http://b.example/1": 0.75},
        {"http://b.example/2": 0.75},
    ]


def test_what_people_insert_into_the_view_gets_into_the_frontier(frontier, tend, asked):
    asked(
        "INSERT INTO frontier_urls (url, score, depth, tags)"
        " VALUES ('http://A.example:80/x', 0.7, 3, '{mine}')"
    )
    tend()
    assert asked("SELECT url, host, crawl, depth, tags FROM frontier_urls") == [
        ("http://a.example/x", "a.example", "default", 3, ["mine"])
    ]
    assert asked("SELECT count(*) FROM inbox") == [(0,)]
    assert first_of(frontier, 1) == ["http://a.example/x"]


def test_what_people_insert_and_is_no_url_stays_with_the_reason(tend, asked):
    asked("INSERT INTO frontier_urls (url) VALUES ('nonsense'), ('gopher://example.org/')")
    tend()
    rows = asked("SELECT url, problem IS NOT NULL FROM inbox ORDER BY entry")
    assert rows == [("nonsense", True), ("gopher://example.org/", True)]
