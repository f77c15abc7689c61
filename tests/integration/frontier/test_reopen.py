"""What was cut for a reason is opened again by that reason, and nothing else is."""

import time
from contextlib import closing

import pytest

from tamias.frontier.due import reopen
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.cut import BELOW, DEPTH, FILTER, PRIVATE, ROBOTS, SCOPE
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Return

CUTS = {
    "whole": 0,
    "depth": DEPTH,
    "below": BELOW,
    "scope": SCOPE | BELOW,
    "filter": FILTER,
    "robots": ROBOTS,
    "private": PRIVATE,
}


@pytest.fixture(params=[1, 4])
def opened(request, clean_database):
    """`opened(reasons)`: what is due when these reasons are gone; a URL was visited for each of them."""
    with closing(clean_database.session()) as session:
        session.transact(lambda cursor: cursor.execute("UPDATE meta SET buckets = %s", [request.param]))
        frontier = PostgresFrontier(
            session, same_url=str.__eq__, delay_ms=0, clock=lambda: time.time_ns() // 1_000_000
        )
        for crawl in (1, 2):
            urls = [f"http://{name}/" for name in CUTS]
            frontier.put([Item(url=url, key=url, host=url.split("/")[2], crawl=crawl) for url in urls])
        while leases := frontier.lease(20):
            frontier.finish([Return(lease=lease, done=tuple(map(_done, lease.tasks))) for lease in leases])

        def due(reasons):
            count = reopen(session, frontier, 1, reasons)
            tasks = [task for lease in frontier.lease(20) for task in lease.tasks]
            assert all(task.reopened and task.crawl == 1 for task in tasks)
            assert count == len(tasks)
            return {task.url.split("/")[2] for task in tasks}

        yield due


def _done(task):
    return Done(task=task, outcome=Outcome.OK, due=NEVER, cut=CUTS[task.url.split("/")[2]])


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (DEPTH, {"depth"}),
        (SCOPE, {"scope"}),
        (FILTER | ROBOTS, {"filter", "robots"}),
        (PRIVATE, {"private"}),
        (0, set()),
    ],
)
def test_a_reason_opens_exactly_what_it_cut(opened, reasons, expected):
    assert opened(reasons) == expected


def test_what_is_open_is_not_opened_twice(opened):
    assert opened(DEPTH) == {"depth"}
    assert opened(DEPTH | SCOPE) == {"scope"}
    assert opened(DEPTH | SCOPE) == set()
