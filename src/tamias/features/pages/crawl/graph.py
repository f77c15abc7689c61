"""The crawl as a graph of hosts: how much each has, and which led to which."""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.requests import Request

from tamias.features.pages.html.page import CsvTable, page
from tamias.features.pages.queries import Record, rows, rows_of_buckets
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.url import host_key

MOST_HOSTS = 10_000
MOST_LINKS = 8_000
_MOST_READ = 200_000
"""Rows of each kind that are looked at."""
_SECONDS = 60.0


def _table(view: Record) -> CsvTable:
    columns = (view[name] for name in ("hosts", "datasets", "urls"))
    return CsvTable(("host", "datasets", "urls"), list(zip(*columns, strict=True)))


@page("/graph", "graph.html", table=_table)
async def graph(_: Request, service: Service) -> Record:
    """Return the graph of hosts, at most a minute old."""
    return await service.lately("graph", _SECONDS, _graph)


def arranged(datasets: dict[str, int], urls: dict[str, int], links: Counter[tuple[str, str]]) -> Record:
    """Arrange the largest hosts, and those that lead to most, with the strongest links between them.

    Hosts are columns, and links name them by place, so that it is small to send. A link says from where, to
    where and how often: a catalogue names a file, a redirect or a link of a page leads there.
    """
    leads = Counter(source for source, _ in links)
    ends = {name for pair in links for name in pair}
    known = sorted(
        ends | datasets.keys() | urls.keys(),
        key=lambda name: (-datasets.get(name, 0) - leads[name], -urls.get(name, 0), name),
    )
    shown = known[:MOST_HOSTS]
    places = {name: place for place, name in enumerate(shown)}
    drawn = [(pair, n) for pair, n in links.most_common() if pair[0] in places and pair[1] in places]
    return {
        "hosts": shown,
        "datasets": [datasets.get(name, 0) for name in shown],
        "urls": [urls.get(name, 0) for name in shown],
        "links": [(places[a], places[b], n) for (a, b), n in drawn[:MOST_LINKS]],
        "left_out": len(known) - len(shown),
    }


def _graph(db: ServiceSession) -> Record:
    datasets = dict(rows(db, "graph_datasets", most=_MOST_READ))
    shown_as = _shown_as(db, datasets)
    urls = {shown_as(key): known for key, known in rows_of_buckets(db, "graph_hosts", most=_MOST_READ)}
    return arranged(datasets, urls, _links(db, shown_as))


def _shown_as(db: ServiceSession, datasets: dict[str, int]) -> Callable[[str], str]:
    """Show figures of a shared queue at its largest host."""
    if db.settings.frontier.queue != "domain":
        return lambda key: key
    largest: dict[str, str] = {}
    for name in datasets:  # the largest come first
        largest.setdefault(host_key(f"http://{name}/"), name)
    return lambda key: largest.get(key, key)


def _links(db: ServiceSession, shown_as: Callable[[str], str]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for source, to, n in rows(db, "graph_sources", most=_MOST_READ, links=MOST_LINKS):
        found[_host(source), to] += n
    pairs = rows_of_buckets(db, "graph_redirects", most=_MOST_READ // 10)
    for source, to, n in rows(db, "graph_links", most=_MOST_READ, links=MOST_LINKS):
        found[shown_as(source), shown_as(to)] += n
    found.update((_host(one), _host(other)) for one, other in pairs)
    return Counter({pair: n for pair, n in found.items() if pair[0] and pair[1] and pair[0] != pair[1]})


@lru_cache(maxsize=10_000)
def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
