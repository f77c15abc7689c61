"""The order of a commit: quads durable, links put, then one transaction for all that became true.

Visits hand over what they did; many of them are committed together, in a thread of its own.
"""

import asyncio
from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Any

import msgspec

from tamias.archive.captures import insert_captures
from tamias.archive.segments import commit_segments
from tamias.crawl.admit import Admission, Reference
from tamias.crawl.pace import Held
from tamias.crawl.shelf import Shelf
from tamias.crawl.steps import Steps
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.item import Item
from tamias.model.lease import Done, Return
from tamias.model.record import CaptureRecord

GATHER_SECONDS = 0.05
PUT_BATCH = 1000
MOST_WAITING = 4000


class Visited(msgspec.Struct, frozen=True, kw_only=True):
    """What one visit brought."""

    held: Held
    done: Done
    record: CaptureRecord
    references: tuple[Reference, ...] = ()


class Committer:
    """Gathers visits and commits them in groups. What it has not committed did not happen."""

    def __init__(
        self,
        frontier: PostgresFrontier,
        admission: Admission,
        shelf: Shelf,
        thread: Executor,
        steps: Steps,
    ) -> None:
        self._frontier = frontier
        self._admission = admission
        self._shelf = shelf
        self._thread = thread
        self._steps = steps
        self._visited: list[Visited] = []
        self._released: list[Held] = []
        self._news = asyncio.Event()
        self._room = asyncio.Condition()
        self.committed = 0
        self.quads = 0
        self.bytes = 0
        self.outcomes: dict[str, int] = {}

    async def add(self, visited: Visited) -> None:
        """Hands a visit over; waits when too many are waiting."""
        async with self._room:
            await self._room.wait_for(lambda: len(self._visited) < MOST_WAITING)
        self._visited.append(visited)
        self._news.set()

    def release(self, held: Held) -> None:
        """The host is to be given back with the next commit."""
        self._released.append(held)
        self._news.set()

    async def run(self) -> None:
        """Commits until cancelled; a commit under way is finished first."""
        while True:
            await self._news.wait()
            await asyncio.sleep(GATHER_SECONDS)
            await asyncio.shield(self.flush())

    async def flush(self) -> None:
        """Commits what has been handed over so far."""
        self._news.clear()
        visited, self._visited = self._visited, []
        released, self._released = self._released, []
        if not visited and not released:
            return
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._commit, visited, released)
        self._count(visited)
        async with self._room:
            self._room.notify_all()

    def _count(self, visited: list[Visited]) -> None:
        self.committed += len(visited)
        for each in visited:
            self.quads += each.record.quads
            self.bytes += each.record.bytes or 0
            word = each.record.outcome.word
            self.outcomes[word] = self.outcomes.get(word, 0) + 1

    def put_now(self, reference: Reference) -> None:
        """Puts the links of a document too large to gather them; for a thread that can wait."""
        self._thread.submit(self._put_references, [reference]).result()

    def _put_references(self, references: Iterable[Reference]) -> None:
        with self._steps.step("admit"):
            items = [item for each in references for item in self._admission.items(each)]
        with self._steps.step("put"):
            self._put(items)

    def _commit(self, visited: list[Visited], released: list[Held]) -> None:
        with self._steps.step("sync"):
            durable = self._shelf.sync()
        self._put_references(reference for each in visited for reference in each.references)
        returns = _returns(visited, released)

        def record(cursor: Any, held: frozenset[int]) -> None:
            kept = [each for each in visited if each.held.lease.qid in held]
            insert_captures(cursor, [(each.held.lease, each.done.task, each.record) for each in kept])
            commit_segments(cursor, durable)

        with self._steps.step("finish"):
            self._frontier.finish(returns, record)

    def _put(self, items: list[Item]) -> None:
        unique = list({(item.crawl, item.url): item for item in items}.values())
        for start in range(0, len(unique), PUT_BATCH):
            batch = unique[start : start + PUT_BATCH]
            self._frontier.put(batch)
            self._admission.remember(batch)


def _returns(visited: list[Visited], released: list[Held]) -> list[Return]:
    """One return for each lease: all its news, and whether the host goes back."""
    done: dict[int, list[Done]] = {}
    holders: dict[int, Held] = {}
    for each in visited:
        holders[each.held.lease.token ^ each.held.lease.qid] = each.held
        done.setdefault(each.held.lease.token ^ each.held.lease.qid, []).append(each.done)
    gone = {held.lease.token ^ held.lease.qid: held for held in released}
    holders |= gone
    return [
        Return(
            lease=held.lease,
            done=tuple(done.get(key, ())),
            release=key in gone,
            delay_ms=held.delay_ms,
            blocked_until=held.blocked_until,
        )
        for key, held in holders.items()
    ]
