"""The hosts of the archive, by name."""

import msgspec
from starlette.requests import Request

from tamias.serve.http.params import parameter
from tamias.serve.pages.html.page import Page
from tamias.serve.pages.html.tables import Table, table_of
from tamias.serve.queries.thread_pool import Desk
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
    return await service.desks.ask(lambda desk: _hosts(desk, after))


def _hosts(desk: Desk, after: str) -> Hosts:
    found = [HostRow(*row) for row in desk.rows("hosts", {"after": after, "limit": MOST_HOSTS})]
    return Hosts(found, found[-1].host if len(found) == MOST_HOSTS else None)


def _table(view: Hosts) -> Table:
    return table_of(view.hosts, "host", "datasets")


PAGE = Page(path="/hosts", template="hosts.html", view=hosts, data="/hosts.json", table=_table)
