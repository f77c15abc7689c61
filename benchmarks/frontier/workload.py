"""The URLs of the benchmark: each follows from its number, so no process needs to remember any."""

from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate
from random import Random

from tamias.model.item import Item

KNOWN_SHARE = 0.7
_MASK = 2**64 - 1


class Workload:
    """URLs of about 73 bytes on hosts whose sizes follow Zipf's law (s = 1), with random scores."""

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts
        self._bounds = list(accumulate(1 / rank for rank in range(1, hosts + 1)))

    def host(self, number: int) -> int:
        """The host that the URL of this number is on."""
        return bisect(self._bounds, _chance(number, 1) * self._bounds[-1])

    def score(self, number: int) -> float:
        """Mostly low, sometimes high: all priority classes occur."""
        return _chance(number, 2) ** 3

    def item(self, number: int) -> Item:
        """The URL of this number as it is put into a frontier."""
        host = self.host(number)
        url = url_of(host, number)
        return Item(url=url, key=url, host=host_key(host), score=self.score(number))

    def batches(self, size: int, known: int, client: int) -> Iterator[list[Item]]:
        """Batches as links come in: 70 % of the `known` first URLs, the rest new and the client's own."""
        random = Random(client)
        fresh = known + (client + 1) * 10_000_000
        old = int(size * KNOWN_SHARE)
        while True:
            numbers = [random.randrange(known) for _ in range(old)] + list(range(fresh, fresh + size - old))
            fresh += size - old
            random.shuffle(numbers)
            yield [self.item(number) for number in numbers]


def host_key(host: int) -> str:
    """The key of a host's queue, its pay-level domain."""
    return f"host{host:05d}.example"


def url_of(host: int, number: int) -> str:
    """The text of a URL, 73 bytes.

    >>> len(url_of(17, 4_000_000))
    73
    """
    return f"https://data.{host_key(host)}/catalogue/datasets/{number:09d}/metadata.json"


def _chance(number: int, stream: int) -> float:
    """A number from 0 to 1 that looks random: an integer mixed by multiplications and shifts."""
    mixed = (number * 0x9E3779B97F4A7C15 + stream * 0xD1B54A32D192ED03) & _MASK
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ mixed >> 31) / 2**64
