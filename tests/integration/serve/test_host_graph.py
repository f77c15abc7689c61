"""The graph of hosts, as a crawl without any strategy leaves it."""

import httpx

from tamias.archive.sources.host_links import MOST_OF_A_HOST, add_host_links

from .conftest import Running

PAGE = "<html><body>{}</body></html>"


def links(*urls):
    return PAGE.format("".join(f'<a href="{url}">x</a>' for url in urls)).encode()


def test_a_plain_crawl_leaves_the_links_between_hosts(tamias, site_at, reply):
    one, two = site_at("127.0.0.1"), site_at("127.0.0.2")
    html = "text/html"
    one.pages["/"] = reply(200, links("/a", two.url("/x"), two.url("/y")), content_type=html)
    one.pages["/a"] = reply(200, links(two.url("/x"), "http://elsewhere.example/"), content_type=html)
    two.pages["/x"] = reply(200, links(one.url("/a")), content_type=html)
    two.pages["/y"] = reply(200, links("/x"), content_type=html)
    tamias.crawl(one.url("/"), "--scope", "host")
    running = Running(tamias.data, "--no-crawl", TAMIAS_SECRET="open sesame")
    try:
        graph = httpx.get(f"{running.address}/graph.json", timeout=30).json()
    finally:
        running.stop()
    named = {(graph["hosts"][a], graph["hosts"][b]): n for a, b, n in graph["links"]}
    # Out of scope, not visited, and an edge nevertheless; links to known URLs count as well.
    assert named == {("127.0.0.1", "127.0.0.2"): 3, ("127.0.0.1", "elsewhere.example"): 1}


def test_a_host_keeps_so_many_and_goes_on_counting_them(filled):
    def kept():
        return dict(filled.rows("SELECT to_host, links FROM host_link WHERE from_host = 'hub.example'"))

    add_host_links(filled.session, {("hub.example", f"h{n}.example"): 1 for n in range(MOST_OF_A_HOST - 1)})
    add_host_links(filled.session, {("hub.example", "last.example"): 2, ("hub.example", "late.example"): 1})
    add_host_links(filled.session, {("hub.example", "later.example"): 9, ("hub.example", "h0.example"): 4})
    found = kept()
    assert len(found) == MOST_OF_A_HOST
    assert (found["last.example"], found["h0.example"]) == (2, 5)
    assert not {"late.example", "later.example"} & found.keys()
