"""A crawl under a strategy, from the outside."""

import pytest

from tests.messages import unsaid

BAD = [f"/bad{number}" for number in range(30)]
GOOD = [f"/good{number}" for number in range(5)]
SLOW = """
CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN
    IF strpos(url, 'good3') > 0 THEN PERFORM pg_sleep(60); END IF;
    RETURN 0.05;
END $$;
"""


@pytest.fixture
def pages(site, reply):
    """A first page that names many bad pages before a few good ones."""
    words = "".join(f'<p>a link to <a href="{path}">{path[1:]}</a> is here</p>' for path in BAD + GOOD)
    site.pages["/"] = reply(200, f"<html lang=en><body>{words}</body>".encode(), Content_Type="text/html")
    for path in BAD + GOOD:
        site.pages[path] = reply(200, b"<html><body>nothing</body>", Content_Type="text/html")
    return site


def order(site):
    return [path for path, _ in site.log if path in BAD + GOOD]


def crawl(tamias, *words):
    done = tamias.crawl("--no-robots", *words)
    assert done.returncode == 0, done.stderr
    return done


def test_new_urls_are_visited_in_the_order_of_the_strategy(tamias, strategy, by_word, pages):
    strategy("apply", by_word)
    crawl(tamias, pages.url("/"))
    assert set(order(pages)[:5]) == set(GOOD)


def test_a_named_crawl_begins_with_the_strategy_that_was_applied_before_it_existed(
    tamias, strategy, by_word, pages
):
    assert strategy("apply", "no SQL", "--crawl", "focused").code == 2
    assert strategy("apply", by_word, "--crawl", "other", "--dry-run").code == 0
    assert "focused" not in tamias.run("crawls").stdout
    applied = strategy("apply", by_word, "--crawl", "focused")
    assert (applied.code, not unsaid(applied.out, "focused")) == (0, True), applied.err
    crawl(tamias, "--crawl", "focused", pages.url("/"))
    assert set(order(pages)[:5]) == set(GOOD)
    assert "other" not in tamias.run("crawls").stdout


def test_a_crawl_goes_on_without_a_strategy_that_does_not_end(tamias, strategy, pages):
    tamias.env["TAMIAS_STRATEGY__SECONDS"] = "1"
    strategy("apply", SLOW)
    done = crawl(tamias, pages.url("/"))
    assert sorted(order(pages)) == sorted(BAD + GOOD)
    assert not unsaid(done.stderr, "1", "strategy.seconds")


@pytest.mark.parametrize("kept", [True, False])
def test_links_are_kept_with_their_words_only_where_that_is_wanted(tamias, pages, asked, kept):
    tamias.env["TAMIAS_STRATEGY__LINKS"] = str(kept).lower()
    crawl(tamias, pages.url("/"))
    rows = asked("""
        SELECT replace(to_url, from_url, '/'), anchor, context_left, context_right, count, language,
               from_quads
        FROM links ORDER BY anchor
    """)
    wanted = [(path, path[1:], "a link to", "is here", 1, "en", 0) for path in sorted(BAD + GOOD)]
    assert rows == (wanted if kept else [])
