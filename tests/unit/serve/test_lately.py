"""Figures that may be some seconds old: asked for once by many, remembered longer if they take long."""

import asyncio

import pytest

from tamias.features.service import service as queries


class Pool:
    def __init__(self, seconds):
        self.seconds = seconds
        self.asked = 0

    async def run(self, work):
        self.asked += 1
        await asyncio.sleep(self.seconds)
        return work(self.asked)


def asking(seconds):
    pool, results = Pool(seconds), queries.RecentResults()
    return lambda work, at_most=9.0: results.get("n", at_most, lambda: pool.run(work))


def test_all_who_ask_meanwhile_share_one_answer():
    async def ask():
        get = asking(0.05)
        return await asyncio.gather(*(get(lambda n: n) for _ in range(20)))

    assert asyncio.run(ask()) == [1] * 20


def test_figures_that_take_long_are_remembered_longer(monkeypatch):
    async def ask(seconds):
        get = asking(seconds)
        return await get(lambda n: n, 0.0), await get(lambda n: n, 0.0)

    assert asyncio.run(ask(0.2)) == (1, 1)
    monkeypatch.setattr(queries, "PART", 0)
    assert asyncio.run(ask(0.2)) == (1, 2)


def test_a_failure_is_not_remembered():
    async def ask():
        get = asking(0.0)
        with pytest.raises(ZeroDivisionError):
            await get(lambda n: 1 // 0)
        return await get(lambda n: n)

    assert asyncio.run(ask()) == 2
