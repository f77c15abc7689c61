"""Which hosts and links the graph of a crawl shows."""

from collections import Counter

from tamias.features.pages.crawl import graph
from tamias.features.pages.crawl.graph import arranged


def test_links_are_told_by_the_places_of_their_hosts():
    found = arranged({"files.example": 3}, {}, Counter({("portal.example", "files.example"): 7}))
    assert (found["hosts"], found["links"]) == (["files.example", "portal.example"], [(1, 0, 7)])


def test_the_strongest_links_come_first():
    links = Counter({("a", "b"): 1, ("a", "c"): 5})
    assert [times for _, _, times in arranged({}, {}, links)["links"]] == [5, 1]


def test_a_host_that_leads_to_many_is_shown_before_those_that_only_have_a_few(monkeypatch):
    monkeypatch.setattr(graph, "MOST_HOSTS", 2)
    links = Counter({("portal", name): 1 for name in ("a", "b", "c")})
    found = arranged({"a": 2, "b": 1, "c": 1}, {}, links)
    assert (found["hosts"], found["left_out"]) == (["portal", "a"], 2)
