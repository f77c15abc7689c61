"""The page `/host-report`."""

import msgspec
from starlette.requests import Request

from host_report.report import HostRow, host_rows
from tamias.features.pages.html.page import HtmlPage
from tamias.features.service.service import Service


class HostReport(msgspec.Struct, frozen=True):
    """What the page shows."""

    hosts: list[HostRow]


async def _view(_: Request, service: Service) -> HostReport:
    return HostReport(await service.pool.run(lambda db: host_rows(db.session)))


PAGE = HtmlPage(path="/host-report", template="host_report.html", view=_view, data="/host-report.json")
