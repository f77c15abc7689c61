"""People insert links with SQL: the target is put and scored by the link, and the link is stored."""

import pytest

BY_ANCHOR = """
CREATE FUNCTION score_link(link seen_link) RETURNS float8 LANGUAGE sql AS $$
    SELECT CASE WHEN strpos(link.anchor, 'river') > 0 THEN 0.9 ELSE 0.1 END
$$;
"""
LINKS = "SELECT from_url, to_url, anchor, context_left, context_right, count, language, crawl FROM links"


def insert(asked, **values):
    names = ", ".join(values)
    places = ", ".join(["%s"] * len(values))
    asked(f"INSERT INTO tamias.links ({names}) VALUES ({places})", *values.values())


def test_an_inserted_link_puts_its_target_below_its_page_with_its_score(
    strategy, frontier, admission, asked, tend
):
    strategy("apply", BY_ANCHOR)
    frontier.put([admission.item("http://a.example/page", 2, 1)])
    insert(asked, from_url="http://a.example/page", to_url="http://b.example/x", anchor="a river", count=3)
    insert(asked, from_url="http://c.example/unknown", to_url="http://b.example/y", language="en")
    tend()
    assert asked("SELECT url, depth, round(score::numeric, 3)::float8 FROM url ORDER BY url") == [
        ("http://a.example/page", 2, 0.25),
        ("http://b.example/x", 3, 0.9),
        ("http://b.example/y", 1, 0.1),
    ]
    assert sorted(asked(LINKS)) == [
        ("http://a.example/page", "http://b.example/x", "a river", None, None, 3, None, "default"),
        ("http://c.example/unknown", "http://b.example/y", None, None, None, 1, "en", "default"),
    ]
    assert asked("SELECT * FROM inbox") == []


def test_a_better_link_to_a_known_url_lifts_it(strategy, frontier, admission, asked, tend):
    strategy("apply", BY_ANCHOR)
    frontier.put([admission.item("http://b.example/x", 5, 1)])
    insert(asked, from_url="http://a.example/", to_url="http://b.example/x", anchor="the river")
    tend()
    assert asked("SELECT depth::int, round(score::numeric, 3)::float8 FROM url") == [(1, 0.9)]


def test_a_link_that_cannot_be_taken_stays_with_the_reason(asked, tend):
    insert(asked, from_url="http://a.example/", to_url="no url")
    insert(asked, from_url="no url", to_url="http://a.example/")
    tend()
    assert asked("SELECT url, problem IS NOT NULL FROM inbox ORDER BY entry") == [
        ("no url", True),
        ("http://a.example/", True),
    ]
    assert asked("SELECT * FROM url") == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"to_url": "http://a.example/"}, "from_url and to_url"),
        ({"from_url": "http://a.example/", "to_url": "x" * 9000}, "from_url and to_url"),
        ({"from_url": "http://a.example/", "to_url": "http://b.example/", "count": 0}, "count must be"),
        ({"from_url": "http://a.example/", "to_url": "http://b.example/", "crawl": "none"}, "no crawl"),
    ],
)
def test_what_is_no_link_is_refused_at_once(asked, values, reason):
    with pytest.raises(Exception, match=reason):
        insert(asked, **values)
