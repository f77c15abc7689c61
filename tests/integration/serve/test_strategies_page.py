"""The page of strategies: rates of real numbers, of the crawl before, and of crawls without one."""

import pytest

from tamias.archive.captures import insert_captures
from tamias.model.capture import CaptureRecord, Outcome, new_capture_id
from tamias.model.lease import Lease, Task

from .conftest import START

LEASE = Lease(host="", qid=7, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())


def visit(filled, crawl, brought, start, outcome=Outcome.OK):
    """A visit each second, which brought so many statements."""
    records = []
    for place, quads in enumerate(brought):
        at = start + place * 1000
        record = CaptureRecord(
            id=str(new_capture_id(at)), crawl=crawl, url=f"http://rates.example/{crawl}/{at}", started_at=at,
            ended_at=at + 1, outcome=outcome, reason="", depth=0, quads=quads, worker="w", agent="test",
            final_url=None, status=200,
        )  # fmt: skip
        records.append((LEASE, Task(uid=at, url="", crawl=crawl, depth=0, score=0.0), record))
    filled.session.transact(lambda cursor: insert_captures(cursor, records))


def add_strategy(filled, crawl, name, state, at):
    filled.run(
        "INSERT INTO tamias.strategy (crawl, name, text, state, in_force_at)"
        " VALUES (%s, %s, '', %s, to_timestamp(%s / 1000.0))",
        crawl, name, state, at,
    )  # fmt: skip


@pytest.fixture(scope="module")
def rates(client, filled):
    crawls = [
        filled.rows("INSERT INTO tamias.crawl (name) VALUES (%s) RETURNING crawl", name)[0][0]
        for name in ("focused", "from the start")
    ]
    later = START + 1_000_000
    visit(filled, 1, [0, 0, 0, 5], START)
    visit(filled, crawls[0], [0, 1, 0, 0, 0], START)
    visit(filled, crawls[0], [3, 0, 2, 1], later)
    visit(filled, crawls[0], [0, 0], later + 10_000, Outcome.UNCHANGED)
    visit(filled, crawls[0], [0, 7], later + 500_000)
    visit(filled, crawls[1], [4, 4, 0, 4], START + 10_000)
    add_strategy(filled, crawls[0], "first.sql", "replaced", later)
    add_strategy(filled, crawls[0], "second.sql", "in force", later + 500_000)
    add_strategy(filled, crawls[1], "only.sql", "in force", START)
    found = client.get("/strategies.json").json()["strategies"]
    return {each["name"]: each for each in found}


@pytest.mark.parametrize(
    ("name", "with_strategy", "without"),
    [("first.sql", (4, 0.75), (5, 0.2)), ("second.sql", (2, 0.5), (5, 0.2)), ("only.sql", (4, 0.75), None)],
)
def test_a_strategy_has_its_rate_beside_that_of_none(rates, filled, name, with_strategy, without):
    if without is None:
        plain = filled.rows(
            "SELECT count(*), avg((quads > 0)::int)::float8 FROM tamias.capture"
            " WHERE crawl = 1 AND outcome <> 2"
        )
        without = plain[0]
    found = rates[name]
    assert (found["with_strategy"]["visits"], found["with_strategy"]["rate"]) == with_strategy
    assert (found["without"]["visits"], found["without"]["rate"]) == pytest.approx(without)


def test_the_rate_is_known_after_each_visit(rates):
    assert rates["first.sql"]["with_strategy"]["points"] == [
        [1, 1.0],
        [2, 0.5],
        [3, pytest.approx(2 / 3)],
        [4, 0.75],
    ]


def test_the_page_draws_a_line_for_each(client, rates):
    page = client.get("/strategies", headers={"Accept": "text/html"}).text
    assert page.count("<polyline") == 6
    assert ("with the strategy: 75.0 % of 4 visits" in page, "without: 20.0 % of 5 visits" in page) == (
        True,
        True,
    )
