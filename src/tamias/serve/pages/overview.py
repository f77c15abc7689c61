"""The first page: the archive in figures, what is going on, and what changed last."""

from typing import Any

import msgspec
from starlette.requests import Request

from tamias.archive.figures import Figures, read_figures
from tamias.archive.moments import rfc3339
from tamias.crawl.supervisor import Snapshot
from tamias.serve.asked import LATEST
from tamias.serve.desks import Desk
from tamias.serve.pages.page import Page
from tamias.serve.service import Service

LATEST_CHANGES = 15


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """A version that came lately."""

    resource: str
    url: str
    title: str | None
    number: int
    captured_at: str
    byte_size: int
    media_type: str | None
    noise: bool


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    figures: Figures
    at: str
    crawl: Snapshot | None
    changes: list[Latest]


async def overview(_: Request, service: Service) -> Overview:
    """The archive as it is now."""
    figures, changes = await service.desks.ask(lambda desk: (read_figures(desk.session), latest(desk)))
    return Overview(figures=figures, at=rfc3339(figures.at), crawl=service.crawl(), changes=changes)


def latest(desk: Desk, host: str | None = None, most: int = LATEST_CHANGES) -> list[Latest]:
    """The newest versions, of all hosts or of one."""
    asked = {"at": LATEST, "resource": "", "number": 0, "since": 0, "portal": None}
    return [_latest(row) for row in desk.rows("changes", {**asked, "host": host, "limit": most})]


def _latest(row: tuple[Any, ...]) -> Latest:
    resource, number, captured_at, _, byte_size, media_type, _, noise, url, title = row
    return Latest(
        resource=resource,
        url=url,
        title=title,
        number=number,
        captured_at=rfc3339(captured_at),
        byte_size=byte_size,
        media_type=media_type,
        noise=noise,
    )


PAGE = Page(path="/", template="overview.html", view=overview, data="/overview.json")
