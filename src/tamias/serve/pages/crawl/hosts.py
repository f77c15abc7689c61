"""The hosts of the archive, by name."""

import msgspec
from starlette.requests import Request

from tamias.serve.http.params import parameter
from tamias.serve.pages.html.page import HtmlPage
from tamias.serve.pages.html.tables import CsvTable, table_of
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.service import Service

MOST_HOSTS = 200


class HostRow(msgspec.Struct, frozen=True):
    """A host, and how many datasets it has."""

    host: str
    datasets: int


class Hosts(msgspec.Struct, frozen=True):
    """What the page shows."""

    hosts: list[HostRow]
    next: str | None
    """The host after which the next page begins."""


async def hosts(request: Request, service: Service) -> Hosts:
    """So many hosts after one."""
    after = parameter(request, "after") or ""
    return await service.pool.run(lambda db: _hosts(db, after))


def _hosts(db: ServiceSession, after: str) -> Hosts:
    found = [HostRow(*row) for row in db.rows("hosts", {"after": after, "limit": MOST_HOSTS})]
    return Hosts(found, found[-1].host if len(found) == MOST_HOSTS else None)


def _table(view: Hosts) -> CsvTable:
    return table_of(view.hosts, "host", "datasets")


PAGE = HtmlPage(path="/hosts", template="hosts.html", view=hosts, data="/hosts.json", table=_table)
