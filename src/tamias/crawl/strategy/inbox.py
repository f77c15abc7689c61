"""What people insert into the view `frontier_urls`: taken from the inbox and put into the frontier."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.crawl.strategy.scoring import SQL
from tamias.database.connect import Session
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import UrlError
from tamias.model.item import Item
from tamias.model.url import fetch_url

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
