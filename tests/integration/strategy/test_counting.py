"""Strategies that count: a score may be any number, and the order of scores is the order of visits."""

import pytest

from tests.messages import unsaid

FIGURES = """
CREATE OR REPLACE FUNCTION
score_url(url text) RETURNS bigint AS
$$
DECLARE
score INT;
normurl TEXT;
BEGIN
normurl=normalize(CAST(url AS text));
IF CAST(url_top(url) AS TEXT) = 'fr' THEN
score=1;
ELSE
score=0;
END IF;
IF substring(normurl, 'keyword1') IS NOT NULL THEN
score=score+2;
END IF;
IF substring(normurl, 'keyword2') IS NOT NULL THEN
score=score+1;
END IF;
RETURN score;
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION
score_link(context text) RETURNS int AS
$$
DECLARE
score INT;
normcontext TEXT;
BEGIN
normcontext=normalize(context);
score=0;
IF (substring(normcontext, 'keyword1') IS NOT NULL) THEN
score = score + 1;
END IF;
IF (substring(normcontext, 'keyword2') IS NOT NULL) THEN
score = score + 1;
END IF;
RETURN score;
END;
$$ LANGUAGE plpgsql;
"""
"""The YeSQL paper's Figures 2 and 3 with our names; papers/test_yesql.py has them as printed."""

BY_NUMBER = """CREATE FUNCTION score_url(url text) RETURNS int LANGUAGE sql AS $$
    SELECT coalesce(substring(url from '[0-9]+')::int, 0)
$$;"""

PAGES = {
    "/plain": (0, "words"),
    "/linked": (1, "about keyword2"),
    "/keyword2": (1, "words"),
    "/twice": (2, "keyword1 and keyword2"),
    "/keyword1": (2, "words"),
    "/keyword1/keyword2": (3, "words"),
    "/keyword2/keyword1": (5, "keyword1 keyword2"),
}
"""Paths with the sum of both scores and the text of the link; the best stand last."""


@pytest.fixture
def pages(site, reply):
    for path in PAGES:
        site.pages[path] = reply(200, b"<html><body>nothing</body>", Content_Type="text/html")
    links = "".join(f'<p><a href="{path}">{anchor}</a></p>' for path, (_, anchor) in PAGES.items())
    site.pages["/"] = reply(200, f"<html><body>{links}</body>".encode(), Content_Type="text/html")
    return site


def test_the_figures_of_the_paper_apply_and_order_a_crawl(tamias, strategy, pages):
    tamias.env["TAMIAS_STRATEGY__LINKS"] = "true"
    applied = strategy("apply", FIGURES)
    assert (applied.code, "strategy 1 is active" in applied.out) == (0, True), applied.err
    done = tamias.crawl("--no-robots", pages.url("/"))
    assert done.returncode == 0, done.stderr
    visited = [PAGES[path][0] for path, _ in pages.log if path in PAGES]
    assert visited == sorted(visited, reverse=True)
    assert len(visited) == len(PAGES)


def test_hosts_with_different_sums_above_one_are_in_different_classes(
    strategy, strategist, frontier, admission, asked
):
    assert strategy("apply", BY_NUMBER).code == 0
    items = [admission.item(f"http://h{number}.example/", 1, 1) for number in (2, 5, 3, 6)]
    frontier.put(strategist.score(items, []))
    rows = asked("SELECT hkey, class FROM host ORDER BY class DESC")
    assert rows == [("h6.example", 6), ("h5.example", 5), ("h3.example", 3), ("h2.example", 2)]


def test_a_higher_score_widens_the_scale_and_known_urls_keep_their_place(
    strategy, strategist, frontier, admission, tend, asked
):
    assert strategy("apply", BY_NUMBER).code == 0
    for number in (1, 3, 100, 6, 2):
        item = admission.item(f"http://h{number}.example/", 1, 1)
        frontier.put(strategist.score([item], []))
        strategist.keep()
    tend()
    ordered = asked("SELECT url, score FROM frontier_urls ORDER BY score DESC")
    assert [url for url, _ in ordered] == [f"http://h{number}.example/" for number in (100, 6, 3, 2, 1)]
    assert [round(score * 128) for _, score in ordered] == [100, 6, 3, 2, 1]


def test_apply_says_when_scores_cluster(strategy, frontier, admission):
    frontier.put([admission.item(f"http://h{number}.example/", 1, 1) for number in range(20)])
    same = "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS $$ SELECT 0.3 $$;"
    said = strategy("apply", same, "--dry-run")
    assert not unsaid(said.out, "20", "0.25", "0.375", "8")
    assert "scores lie between" not in strategy("apply", BY_NUMBER, "--dry-run").out
