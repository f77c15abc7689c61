"""A web without servers: which URLs a URL links to follows from its number, so every worker knows it."""

from hashlib import blake2b

import msgspec

from tamias.model.item import Item

LINKS = 20
OWN_LINKS = 16
SEEDS = 10


class LinkGraph(msgspec.Struct, frozen=True):
    """So many URLs spread evenly over so many hosts; 20 links on each, 16 of them to its own host."""

    urls: int
    hosts: int

    def links(self, number: int) -> list[int]:
        """The numbers of the URLs that this one links to."""
        own = range(number % self.hosts, self.urls, self.hosts)
        anywhere = range(self.urls)
        chances = [_chance(number, place) for place in range(LINKS)]
        return [
            (own if place < OWN_LINKS else anywhere)[chance % len(own if place < OWN_LINKS else anywhere)]
            for place, chance in enumerate(chances)
        ]

    def closure(self) -> set[int]:
        """All that can be reached from the seeds."""
        reached = set(range(min(SEEDS, self.urls)))
        ahead = list(reached)
        while ahead:
            found = set(self.links(ahead.pop())) - reached
            reached |= found
            ahead += found
        return reached

    def item(self, number: int) -> Item:
        """The URL of this number as it is put into a frontier."""
        host = f"h{number % self.hosts}.example"
        url = f"http://{host}/{number}"
        return Item(url=url, key=url, host=host, score=_chance(number, LINKS) % 1000 / 1000)


def number_of(url: str) -> int:
    """The number behind a URL's text.

    >>> number_of(LinkGraph(100, 10).item(42).url)
    42
    """
    return int(url.rpartition("/")[2])


def _chance(number: int, place: int) -> int:
    return int.from_bytes(blake2b(b"%d.%d" % (number, place), digest_size=8).digest(), "big")
