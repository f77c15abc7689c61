"""URLs made due now: the frontier's counts, hosts and leases stay right."""

import re
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.database.sql import statements
from tamias.frontier.due import make_due
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Return

LATER = 10**9
SQL = statements("tamias.frontier", "due.sql")


def item(path, host="h.example", **words):
    url = f"http://{host}/{path}"
    return Item(url=url, key=url, host=host, **words)


@pytest.fixture(scope="module")
def own_database(tmp_path_factory):
    with closing(Database(tmp_path_factory.mktemp("hasten"))) as database:
        yield database


@pytest.fixture
def session(own_database):
    with closing(own_database.session()) as session:
        for table in (b"url", b"queue", b"host"):
            session.transact(lambda cursor, name=table: cursor.execute(b"DELETE FROM " + name))
        yield session


@pytest.fixture
def frontier(session):
    return PostgresFrontier(session, same_url=str.__eq__, delay_ms=0)


def leased(frontier):
    return [task.url for lease in frontier.lease(10) for task in lease.tasks]


def crawl_figures(frontier):
    return next(each for each in frontier.figures().crawls if each.crawl == 1)


def test_a_url_that_was_due_later_is_lent_now(session, frontier):
    wanted = item("a", due=frontier.now() + LATER)
    frontier.put([wanted])
    assert make_due(session, frontier, [wanted]) == 1
    assert leased(frontier) == [wanted.url]


def test_a_url_that_was_done_with_is_open_again_and_counted(session, frontier):
    wanted = item("a")
    frontier.put([wanted])
    (lease,) = frontier.lease(1)
    done = Done(task=lease.tasks[0], outcome=Outcome.OK, due=NEVER)
    frontier.finish([Return(lease=lease, done=(done,))])
    assert crawl_figures(frontier).open == 0
    assert make_due(session, frontier, [wanted]) == 1
    assert crawl_figures(frontier).open == 1
    assert leased(frontier) == [wanted.url]


def test_a_url_that_is_not_known_is_made_known(session, frontier):
    assert make_due(session, frontier, [item("new")]) == 1
    assert crawl_figures(frontier).known == 1


def test_a_url_that_is_due_already_is_left_alone(session, frontier):
    frontier.put([item("a")])
    assert make_due(session, frontier, [item("a")]) == 0


def test_hastening_twice_is_hastening_once(session, frontier):
    wanted = item("a", due=frontier.now() + LATER)
    frontier.put([wanted])
    assert [make_due(session, frontier, [wanted]) for _ in range(2)] == [1, 0]
    assert crawl_figures(frontier).open == 1


def test_a_host_that_is_leased_stays_so_and_is_ready_when_it_comes_back(session, frontier):
    later = item("later", due=frontier.now() + LATER)
    frontier.put([item("now"), later])
    (lease,) = frontier.lease(1)
    assert make_due(session, frontier, [later]) == 1
    assert leased(frontier) == []
    frontier.finish([Return(lease=lease, done=(Done(task=lease.tasks[0], outcome=Outcome.OK, due=NEVER),))])
    assert leased(frontier) == [later.url]


def test_nothing_sleeps_that_should_be_awake(session, frontier):
    wanted = [item(str(n), f"h{n % 3}.example", due=frontier.now() + LATER, score=n / 10) for n in range(9)]
    frontier.put(wanted)
    assert make_due(session, frontier, wanted) == 9
    assert frontier.sweep() == 0


@pytest.mark.parametrize("name", sorted(SQL))
def test_every_table_reference_names_the_bucket(name):
    text = SQL[name].text.decode()
    references = re.findall(r"\b(?:FROM|JOIN|UPDATE)\s+url\b", text)
    assert len(re.findall(r"\burl\.bucket = %\(bucket\)b::int2", text)) == len(references)
