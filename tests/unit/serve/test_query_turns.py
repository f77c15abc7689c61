"""Turns of queries: fair between clients, a share for short ones, no long wait."""

import asyncio

import pytest

from tamias.features.catalogue.store.messages import memory_limit
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.sparql import endpoint as turns
from tamias.features.service.sparql.endpoint import QueryTurns


class Queries:
    """Queries that end when they are allowed to, or given up."""

    def __init__(self, places):
        self.turns = QueryTurns(places)
        self.begun = []
        self.ends = {}

    def ask(self, client, name):
        end = self.ends[name] = asyncio.Event()
        given_up = False

        async def work():
            self.begun.append(name)
            await end.wait()
            if given_up:
                raise HttpProblem(503, "given up")
            return name

        def give_up():
            nonlocal given_up
            given_up = True
            end.set()

        return asyncio.create_task(self.turns.take(client, work, give_up))


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_client_with_many_queries_lets_others_go_first():
    async def run():
        queries = Queries(2)
        tasks = [queries.ask("many", f"many {number}") for number in range(4)] + [queries.ask("one", "one")]
        await settle()
        assert queries.begun == ["many 0", "many 1"]
        queries.ends["many 0"].set()
        await settle()
        assert queries.begun[2] == "one"
        for end in queries.ends.values():
            end.set()
        assert [await task for task in tasks] == ["many 0", "many 1", "many 2", "many 3", "one"]

    asyncio.run(run())


def test_long_queries_make_room_for_a_short_one_and_half_of_them_go_on(monkeypatch):
    monkeypatch.setattr(turns, "QUICK_SECONDS", 0.0)

    async def run():
        queries = Queries(4)
        long = [queries.ask(client, f"{client}{number}") for number, client in enumerate("aaab")]
        await settle()
        short = queries.ask("c", "short")
        queries.ends["short"].set()
        assert await short == "short"
        with pytest.raises(HttpProblem) as told:
            await long[2]  # the youngest of the client with the most
        assert told.value.status == 503
        assert told.value.headers["Retry-After"]
        assert not any(each.done() for each in (long[0], long[1], long[3]))
        others = [queries.ask("d", f"d{number}") for number in range(3)]
        await settle()
        for end in queries.ends.values():
            end.set()
        await asyncio.gather(*long, *others, return_exceptions=True)

    asyncio.run(run())


def test_a_client_whose_queries_were_stopped_is_stopped_before_one_that_is_slow_once(monkeypatch):
    monkeypatch.setattr(turns, "QUICK_SECONDS", 0.0)

    async def run():
        queries = Queries(2)
        long = [queries.ask(client, client) for client in "ab"]
        await settle()
        slow = queries.ask("c", "slow")
        await settle()
        assert [each.done() for each in long] == [False, True]
        again = queries.ask("b", "again")
        await settle()
        queries.ends["a"].set()
        await settle()
        last = queries.ask("d", "last")
        await settle()
        assert (again.done(), slow.done()) == (True, False)
        for end in queries.ends.values():
            end.set()
        assert [await long[0], await slow, await last] == ["a", "slow", "last"]
        await asyncio.gather(*long, again, return_exceptions=True)

    asyncio.run(run())


def test_no_query_waits_long_for_its_turn(monkeypatch):
    monkeypatch.setattr(turns, "WAIT_SECONDS", 0.01)

    async def run():
        queries = Queries(1)
        first = queries.ask("a", "first")
        with pytest.raises(HttpProblem) as told:
            await queries.ask("b", "second")
        assert told.value.status == 503
        assert told.value.headers["Retry-After"]
        queries.ends["first"].set()
        assert await first == "first"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("0::/a/b", "a/memory.max"),
        ("0::/a/b", "memory.max"),
        ("4:memory:/a/b", "memory/a/b/memory.limit_in_bytes"),
    ],
)
def test_the_memory_of_queries_is_that_of_the_control_group(tmp_path, line, file):
    (tmp_path / "own").write_text(f"9:name=systemd:/\n{line}\n")
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("1000000\n")
    assert memory_limit(tmp_path / "own", tmp_path) == 1_000_000
    (tmp_path / file).write_text("max\n")
    assert memory_limit(tmp_path / "own", tmp_path) > 1 << 28
