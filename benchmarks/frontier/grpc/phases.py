"""What is timed: URLs put one by one and in batches, put again, got 100 x 10 at a time, and drained."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.frontier.grpc.coding import SERVICE, batch, item, wish
from benchmarks.frontier.grpc.lean import GrpcCallFailed, LeanClient
from benchmarks.frontier.report import times

BATCH = 256
STREAM_SHARE = 4
"""One URL in so many is put in a stream of items, the others in batches."""
_ITEMS_IN_FLIGHT, _BATCHES_IN_FLIGHT = 1000, 16
_HOLD_SECONDS = 3600


class Phase(msgspec.Struct, frozen=True):
    """One phase: URLs a second, and milliseconds of a call where calls are short."""

    name: str
    urls: int
    per_second: float
    p50: float | None = None
    p99: float | None = None


class Phases:
    """The URLs of one size of frontier, and the client that puts and gets them."""

    def __init__(self, client: LeanClient, urls: int, queues: int) -> None:
        self._client = client
        self._urls = urls
        self._queues = queues
        self._streamed = urls // STREAM_SHARE

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
        for _ in range(min(calls, self._queues // 100)):
            took, answer = _timed(lambda: self._ask("GetURLs", asked))
            seconds.append(took)
            got += len(answer)
        shown = times(seconds)
        return Phase(name, got, got / sum(seconds), shown.p50, shown.p99)

    def drain(self, name: str) -> Phase:
        """Everything that is left, in one call."""
        took, answer = _timed(lambda: self._ask("GetURLs", wish(0, 0, _HOLD_SECONDS)))
        return Phase(name, len(answer), len(answer) / took)

    def _put(self, name: str, call: str, messages: list[bytes], urls: int, in_flight: int) -> Phase:
        took, answers = _timed(lambda: self._client.tell(f"/{SERVICE}/{call}", messages, in_flight))
        if answers != len(messages):
            raise GrpcCallFailed(f"{len(messages)} messages of {call} got {answers} answers")
        return Phase(name, urls, urls / took)

    def _ask(self, call: str, request: bytes) -> list[bytes]:
        return self._client.ask(f"/{SERVICE}/{call}", request)

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
