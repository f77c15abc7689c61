"""What the paper on the YeSQL crawler (Jourlin et al., OSIR 2012) prints, run as it stands."""

import json
import xml.etree.ElementTree as ET
from contextlib import closing

import duckdb
import pytest

from tamias.database.connect import Database

FIGURE_2 = """
CREATE OR REPLACE FUNCTION
ScoreURL(url url) RETURNS bigint AS
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
"""
FIGURE_3 = """
CREATE OR REPLACE FUNCTION
ScoreLink(context text) RETURNS int AS
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
GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


def score(tamias, url, **link):
    words = [word for name, text in link.items() for word in (f"--{name}", text)]
    done = tamias.run("strategy test", url, *words, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return told["score_url"], told["score_link"], told["score"]


def test_figures_2_and_3_are_a_strategy_as_they_are_printed(tamias, tmp_path):
    (tmp_path / "figures.sql").write_text(FIGURE_2 + FIGURE_3)
    with closing(Database(tamias.data)):
        done = tamias.run("strategy apply", tmp_path / "figures.sql", "--json")
        assert json.loads(done.stdout)["tried"]["functions"] == ["score_link", "score_url"], done.stderr
        # Section 2: the scores are additive.
        assert score(tamias, "http://a.example.fr/") == (1, None, 1)
        assert score(tamias, "http://a.example.fr/keyword1/keyword2") == (4, None, 4)
        assert score(tamias, "http://fr.example/keyword2", anchor="see keyword1") == (1, 1, 2)
        found = score(tamias, "http://b.example/", left="keyword1 is", anchor="here", right="and keyword2")
        assert found == (0, 2, 2)


@pytest.fixture
def crawled(tamias, site, reply):
    """A crawl that keeps links, of three pages, a shortened URL and its effective one."""
    pages = {
        "/": '<p>see <a href="/a">page &lt;A&gt; "first"</a> now</p><a href="/short">short</a>',
        "/a": '<p>back <a href="/">home</a></p>',
        "/effective": "<p>nothing</p>",
    }
    for path, text in pages.items():
        body = f"<html lang=en><body>{text}</body></html>".encode()
        site.pages[path] = reply(200, body, Content_Type="text/html")
    site.pages["/short"] = reply(302, b"", Location="/effective")
    tamias.env["TAMIAS_STRATEGY__LINKS"] = "true"
    done = tamias.crawl("--no-robots", site.url("/"))
    assert done.returncode == 0, done.stderr
    return tamias


@pytest.fixture
def expected(site):
    """The links of the crawl: from, to, anchor, left, right."""
    return {
        (site.url("/"), site.url("/a"), 'page <A> "first"', "see", "now"),
        (site.url("/"), site.url("/short"), "short", "", ""),
        (site.url("/a"), site.url("/"), "home", "back", ""),
    }


def export(tamias, *words):
    done = tamias.run("export", "--graph", "links", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_link_graph_is_graphml(crawled, expected):
    """Section 3.1: network visualisation tools take it."""
    graph = ET.fromstring(export(crawled, "--format", "graphml")).find(f"{GRAPHML}graph")
    nodes = [node.get("id") for node in graph.iter(f"{GRAPHML}node")]
    edges = set()
    for edge in graph.iter(f"{GRAPHML}edge"):
        data = {each.get("key"): each.text or "" for each in edge}
        edges.add((edge.get("source"), edge.get("target"), data["anchor"], data["context_left"],
                   data["context_right"]))  # fmt: skip
        assert data["count"], data["crawl"] == ("1", "default")
    assert edges == expected
    assert nodes == sorted({url for source, target, *_ in expected for url in (source, target)})


def test_the_link_graph_is_parquet(crawled, expected, tmp_path):
    export(crawled, "--format", "parquet", "-o", tmp_path / "links", "--crawl", "default")
    columns = "from_url, to_url, anchor, context_left, context_right"
    rows = duckdb.sql(f"SELECT {columns} FROM '{tmp_path / 'links' / 'links.parquet'}'").fetchall()
    assert set(rows) == expected
    assert len(rows) == len(expected)


def test_the_link_graph_is_dot(crawled, expected, site):
    lines = export(crawled, "--format", "dot").splitlines()
    assert (lines[0], lines[-1]) == ("digraph links {", "}")
    data = 'label="page <A> \\"first\\"", weight=1, crawl="default"'
    assert f'  "{site.url("/")}" -> "{site.url("/a")}" [{data}];' in lines
    assert sum("->" in line for line in lines) == len(expected)


def test_effective_urls_are_covered(crawled, site, tmp_path):
    """Table 1: the URLs of the list are effective ones, which shortened URLs lead to."""
    (tmp_path / "list.txt").write_text(f"{site.url('/effective')}\n{site.url('/never')}\n")
    done = crawled.run("coverage", tmp_path / "list.txt", "--json")
    steps = json.loads(done.stdout)["by_url"]
    assert [(step["depth"], step["crawled"], step["covered"], step["share"]) for step in steps] == [
        (0, 1, 0, 0.0),
        (1, 3, 1, 0.5),
    ]
