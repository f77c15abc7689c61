"""Figures that may be some seconds old: asked for once by many, remembered longer if they take long."""

import asyncio

import pytest

from tamias.features.service.queries import lately as queries


class Pool:
    def __init__(self, seconds):
        self.seconds = seconds
        self.asked = 0

    async def run(self, work):
        self.asked += 1
        await asyncio.sleep(self.seconds)
        return work(self.asked)


class Service:
    def __init__(self, seconds):
        self.pool = Pool(seconds)


def test_all_who_ask_meanwhile_share_one_answer():
    async def ask():
        service = Service(0.05)
        return await asyncio.gather(*(queries.lately(service, "n", 9.0, lambda n: n) for _ in range(20)))

    assert asyncio.run(ask()) == [1] * 20


def test_figures_that_take_long_are_remembered_longer(monkeypatch):
    async def ask(seconds):
        service = Service(seconds)
        first = await queries.lately(service, "n", 0.0, lambda n: n)
        return first, await queries.lately(service, "n", 0.0, lambda n: n)

    assert asyncio.run(ask(0.2)) == (1, 1)
    monkeypatch.setattr(queries, "PART", 0)
    assert asyncio.run(ask(0.2)) == (1, 2)


def test_a_failure_is_not_remembered():
    async def ask():
        service = Service(0.0)
        with pytest.raises(ZeroDivisionError):
            await queries.lately(service, "n", 9.0, lambda n: 1 // 0)
        return await queries.lately(service, "n", 9.0, lambda n: n)

    assert asyncio.run(ask()) == 2
