"""How often resources change, for the schedule of them all; and figures that hold for the whole archive."""

from typing import Any

import msgspec

from tamias.database.columns import Floats, Texts
from tamias.database.connect import Session
from tamias.database.sql import statements

_SQL = statements("tamias.archive.sources", "rates.sql")


def read_rates(session: Session) -> list[tuple[float, float, str]]:
    """Changes a day, importance and host of every resource under watch that has been seen."""
    return list(session.rows(_SQL["read_rates"].text))


def set_importances(session: Session, portals: dict[str, float], metrics: dict[str, float]) -> None:
    """What resources count: by factors for the portals that name them, and for measures from 0 to 1."""
    told = {
        "portal": Texts(portals),
        "portal_factor": Floats(portals.values()),
        "metric": Texts(metrics),
        "metric_factor": Floats(metrics.values()),
    }
    session.transact(lambda cursor: cursor.execute(_SQL["set_importances"].text, told))


def read_figure(session: Session, name: str) -> Any:
    """A figure by its name; None before it was set."""
    asked = {"name": name}
    row = session.transact(lambda cursor: cursor.execute(_SQL["read_figure"].text, asked).fetchone())
    return row[0] if row else None


def write_figure(session: Session, name: str, value: Any, now: int) -> None:
    """Sets a figure."""
    told = {"name": name, "value": msgspec.json.encode(value).decode(), "now": now}
    session.transact(lambda cursor: cursor.execute(_SQL["write_figure"].text, told))
