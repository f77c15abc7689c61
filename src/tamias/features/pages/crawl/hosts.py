"""The hosts of the archive, by name, and those where something is wrong."""

import msgspec
from starlette.requests import Request

from tamias.features.pages.crawl.activity import HostTrouble, troubles
from tamias.features.pages.html.page import CsvTable, HtmlPage, table_of
from tamias.features.service.http.params import parameter
from tamias.features.service.queries.lately import lately
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service

MOST_HOSTS = 200
_SECONDS = 3.0


class HostRow(msgspec.Struct, frozen=True):
    """A host, and how many datasets it has."""

    host: str
    datasets: int


class Hosts(msgspec.Struct, frozen=True):
    """A page of hosts."""

    hosts: list[HostRow]
    next: str | None
    """The host after which the next page begins."""
    troubles: list[HostTrouble]
    """On the first page only."""


async def hosts(request: Request, service: Service) -> Hosts:
    """List the hosts after the one that `after` names."""
    after = parameter(request, "after") or ""
    found = await service.pool.run(lambda db: _hosts(db, after))
    wrong = [] if after else await lately(service, "troubles", _SECONDS, troubles)
    return Hosts(found, found[-1].host if len(found) == MOST_HOSTS else None, wrong)


def _hosts(db: ServiceSession, after: str) -> list[HostRow]:
    return [HostRow(*row) for row in db.rows("hosts", {"after": after, "limit": MOST_HOSTS})]


def _table(view: Hosts) -> CsvTable:
    return table_of(view.hosts, "host", "datasets")


PAGE = HtmlPage(path="/hosts", template="hosts.html", view=hosts, data="/hosts.json", table=_table)
