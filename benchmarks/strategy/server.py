"""Serves the web on loopback addresses, one for each host, and notes in which order pages were asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.strategy.web import TopicWeb, html, page_of
from benchmarks.webs import sites
from benchmarks.webs.wire import WireRequest

HTML = (("Content-Type", "text/html; charset=utf-8"),)

Visit = tuple[int, int]
"""Host and page."""


class Served:
    """A web that runs."""

    running: sites.LoopbackSites

    def __init__(self, web: TopicWeb) -> None:
        self.web = web
        self.visits: list[Visit] = []
        """In the order in which pages were asked for."""

    def url(self, host: int) -> str:
        """The address of a host."""
        return self.running.url(self.running.hosts[host], "")

    def answer(self, asked: WireRequest) -> sites.SiteAnswer:
        """The page, if there is one."""
        host, page = self.running.hosts.index(asked.host), page_of(asked.path)
        if page is None or page >= self.web.pages:
            return sites.NOTHING
        self.visits.append((host, page))
        return sites.SiteAnswer(headers=HTML, body=html(self.web, host, page, self.url))


@contextmanager
def serving(web: TopicWeb) -> Iterator[Served]:
    """The web in a thread of its own."""
    served = Served(web)
    with sites.serving(served.answer, web.hosts, network="127.9") as served.running:
        yield served
