"""Links between hosts are counted by pairs, without a bound that a site could push."""

from tamias.archive.sources import host_links
from tamias.archive.sources.host_links import HostLinks
from tamias.model.url import host_key


def test_links_count_by_the_pair_of_their_hosts():
    counted = HostLinks(host_key)
    counted.count("http://www.a.example/", ["http://b.example/", "https://x.b.example:8443/2", "urn:x:y"])
    counted.count(
        "http://www.a.example/", ["http://b.example/", "http://c.example/?q", "http://data.a.example/"]
    )
    assert counted.take() == {("a.example", "b.example"): 3, ("a.example", "c.example"): 1}
    assert counted.take() == {}


def test_a_page_that_leads_everywhere_counts_for_so_many_hosts():
    counted = HostLinks()
    counted.count("http://farm.example/", [f"http://h{n}.example/" for n in range(1000)])
    counted.count("http://farm.example/", ["http://another.example/"] + ["http://h1.example/"] * 2)
    pairs = counted.take()
    assert len(pairs) == host_links.MOST_OF_A_HOST
    assert pairs["farm.example", "h1.example"] == 3


def test_memory_has_a_bound(monkeypatch):
    monkeypatch.setattr(host_links, "MOST_PAIRS", 2)
    counted = HostLinks()
    for n in range(4):
        counted.count(f"http://a{n}.example/", ["http://b.example/"])
    counted.count("http://a0.example/", ["http://b.example/", "http://c.example/"])
    assert counted.take() == {("a0.example", "b.example"): 2, ("a1.example", "b.example"): 1}
