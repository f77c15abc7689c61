"""What a supervisor does beside: takes what people inserted, and scores known URLs anew."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.crawl.strategy.rescoring import Rescoring
from tamias.crawl.strategy.scoring import SQL
from tamias.database.connect import Session
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.service.state import WATCH
from tamias.model.errors import UrlError
from tamias.model.item import Item
from tamias.model.url import fetch_url
from tamias.settings import Settings

MOST = 1000


def empty_inbox(session: Session, frontier: PostgresFrontier, admission: Admission) -> int:
    """Puts what waits; returns how much it was. May be done twice, or by two at once."""
    waiting = session.transact(
        lambda cursor: cursor.execute(SQL["read_inbox"].text, {"most": MOST}).fetchall()
    )
    items: list[Item] = []
    taken: list[int] = []
    refused: list[tuple[int, str]] = []
    for entry, *told in waiting:
        item = _item(told, admission)
        if isinstance(item, str):
            refused.append((entry, item))
        else:
            items.append(item)
            taken.append(entry)
    if items:
        frontier.put(items)
        session.transact(lambda cursor: cursor.execute(SQL["empty_inbox"].text, {"entry": taken}))
    if refused:
        words = {"entry": [entry for entry, _ in refused], "problem": [why for _, why in refused]}
        session.transact(lambda cursor: cursor.execute(SQL["refuse_entries"].text, words))
    return len(waiting)


def _item(told: Sequence[Any], admission: Admission) -> Item | str:
    """The item, or why it cannot be one."""
    text, crawl, depth, score, due, tags = told
    try:
        url = fetch_url(text)
    except UrlError as error:
        return str(error)
    refusal = admission.refusal(url, depth)
    if refusal:
        return refusal
    item = admission.item(url, depth, crawl, tags=tuple(tags or ()), score=score)
    return msgspec.structs.replace(item, due=due)


MOST_SECONDS = 0.25
"""At one time: others wait for the same session."""


class Tending:
    """Called again and again, in the database's thread."""

    def __init__(
        self, session: Session, frontier: PostgresFrontier, settings: Settings, seeds: Sequence[str]
    ) -> None:
        """`seeds` as far as the scope needs them."""
        self._session = session
        self._frontier = frontier
        self._admission = Admission(settings, seeds)
        self._rescoring = Rescoring(session, frontier, settings.strategy, not_of=[WATCH])

    def step(self) -> None:
        """Does some of what is to do."""
        empty_inbox(self._session, self._frontier, self._admission)
        end = time.monotonic() + MOST_SECONDS
        while self._rescoring.step() and time.monotonic() < end:
            pass
