"""What is timed: URLs put one by one and in batches, put again, got 100 x 10 at a time, drained, and done."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import msgspec

from benchmarks.frontier.grpc.coding import SERVICE, batch, done, item, wish
from benchmarks.frontier.grpc.lean import GrpcCallFailed, LeanClient
from benchmarks.frontier.report import times

BATCH = 256
STREAM_SHARE = 4
"""One URL in so many is put in a stream of items, the others in batches."""
_ITEMS_IN_FLIGHT, _BATCHES_IN_FLIGHT = 1000, 16
_HOLD_SECONDS = 3600
_GET = f"/{SERVICE}/GetURLs"


class Phase(msgspec.Struct, frozen=True):
    """One phase: URLs a second, and milliseconds of a call where calls are short."""

    name: str
    urls: int
    per_second: float
    p50: float | None = None
    p99: float | None = None
    cpu: float | None = None
    """Microseconds of processor time of the server for each URL."""


class Phases:
    """The URLs of one size of frontier, and the server they are put into. Each phase has its connection."""

    def __init__(self, address: str, urls: int, queues: int) -> None:
        self._address = address
        self._urls = urls
        self._queues = queues
        self._streamed = urls // STREAM_SHARE

    def put_serially(self, name: str, urls: int) -> Phase:
        """Further items, each when the one before is answered."""
        numbers = range(self._urls, self._urls + urls)
        items = [item(str(number), *self._url(number)) for number in numbers]
        return self._put(name, "PutURLs", items, len(items), 1)

    def put_stream(self, name: str) -> Phase:
        """Items one by one."""
        items = [item(str(number), *self._url(number)) for number in range(self._streamed)]
        return self._put(name, "PutURLs", items, len(items), _ITEMS_IN_FLIGHT)

    def put_batches(self, name: str) -> Phase:
        """The other URLs, 256 at a time."""
        starts = range(self._streamed, self._urls, BATCH)
        batches = [self._batch(start, min(self._urls, start + BATCH)) for start in starts]
        urls = self._urls - self._streamed
        return self._put(name, "PutDiscovered", batches, urls, _BATCHES_IN_FLIGHT)

    def get(self, name: str, calls: int) -> Phase:
        """100 queues with 10 URLs each; every queue is asked at most once."""
        asked = wish(10, 100, _HOLD_SECONDS)
        seconds, got = [], 0
        with closing(LeanClient(self._address)) as client:
            for _ in range(min(calls, self._queues // 100)):
                took, answer = _timed(lambda: client.ask(_GET, asked))
                seconds.append(took)
                got += len(answer)
        shown = times(seconds)
        return Phase(name, got, got / sum(seconds), shown.p50, shown.p99)

    def drain(self, name: str) -> Phase:
        """Everything that is left, in one call."""
        with closing(LeanClient(self._address)) as client:
            took, answer = _timed(lambda: client.ask(_GET, wish(0, 0, _HOLD_SECONDS)))
        return Phase(name, len(answer), len(answer) / took)

    def complete(self, name: str) -> Phase:
        """The items of the stream are done for ever."""
        items = [done(str(number), *self._url(number)) for number in range(self._streamed)]
        return self._put(name, "PutURLs", items, len(items), _ITEMS_IN_FLIGHT)

    def _put(self, name: str, call: str, messages: list[bytes], urls: int, in_flight: int) -> Phase:
        with closing(LeanClient(self._address)) as client:
            took, answers = _timed(lambda: client.tell(f"/{SERVICE}/{call}", messages, in_flight))
        if answers != len(messages):
            raise GrpcCallFailed(f"{len(messages)} messages of {call} got {answers} answers")
        return Phase(name, urls, urls / took)

    def _batch(self, start: int, end: int) -> bytes:
        return batch(str(start), [self._url(number) for number in range(start, end)])

    def _url(self, number: int) -> tuple[str, str]:
        """URLs go round the queues, which is the worst order for the puts: each meets another queue."""
        key = f"host{number % self._queues:05d}.example"
        return f"https://data.{key}/catalogue/datasets/{number:09d}/metadata.json", key


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
