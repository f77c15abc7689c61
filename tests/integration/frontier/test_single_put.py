"""URLs that are put by an event loop, over the connection of a session that is idle meanwhile."""

import asyncio
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.frontier.put import QueueGone, UrlPut
from tamias.frontier.single_put import SinglePut
from tamias.model.item import Item


@pytest.fixture
def session(tmp_path):
    with closing(Database(tmp_path)) as database, closing(database.session()) as opened:
        yield opened


def item(number):
    url = f"http://a.example/{number}"
    return Item(url=url, key=url, host="a.example", crawl=1)


async def put_by_loop(single, number):
    told = asyncio.get_running_loop().create_future()
    assert single.begin(item(number), True, told.set_result)
    is_new = await told
    single.release()
    return is_new


def roll_back(session):
    def work(_cursor):
        raise QueueGone

    with pytest.raises(QueueGone):
        session.transact(work)


def test_after_a_rollback_the_loop_goes_on_to_put(session):
    async def work():
        put = UrlPut(session, str.__eq__)
        single = SinglePut(session, put)
        put.put([item(0)], shortens=False)
        for _ in range(10):  # until psycopg has prepared what it runs often
            session.fetch_all(b"SELECT 1")
        single.make_ready()
        assert await put_by_loop(single, 1)
        roll_back(session)
        assert put.put([item(2)], shortens=False) == [True]
        single.make_ready()
        if not await put_by_loop(single, 3):
            assert put.put([item(3)], shortens=False) == [True]
            single.make_ready()
        return [await put_by_loop(single, number) for number in (4, 4, 5)]

    assert asyncio.run(work()) == [True, False, True]
