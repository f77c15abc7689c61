"""Counts of links from host to host: counted in memory, and added to the database in batches.

A page costs no statement. What was counted since the last batch is lost with its process.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from tamias.database.sql import statements
from tamias.model.url import host

if TYPE_CHECKING:
    from tamias.database.connect import Session

_SQL = statements("tamias.archive.sources", "sites.sql")

MOST_OF_A_HOST = 100
"""Hosts that are counted for one that leads to them."""
MOST_PAIRS = 20_000
"""Pairs in memory; once there are so many, no other pair is counted until the next batch."""
_WEB = ("http://", "https://")
_AFTER_SCHEME = 8

Pairs = Counter[tuple[str, str]]


class HostLinks:
    """Counts links by the hosts that they lead from and to; which hosts share a key is asked at the end."""

    def __init__(self, key: Callable[[str], str] = host) -> None:
        self._key = key
        self._sites: dict[str, Counter[str]] = {}
        self._pairs = 0

    def count(self, site: str, urls: Iterable[str]) -> None:
        """The links of a page that lead away from its site. Called for each page, it only cuts and counts."""
        led_to = self._sites.get(site)
        places = [url[: url.find("/", _AFTER_SCHEME) + 1] for url in urls]
        if self.is_full:
            places = [each for each in places if led_to and each in led_to]
        if led_to is None:
            if not places:
                return
            led_to = self._sites[site] = Counter()
        before = len(led_to)
        led_to.update(places)
        self._pairs += len(led_to) - before

    @property
    def is_full(self) -> bool:
        """Return whether no new pairs are counted any more."""
        return self._pairs >= MOST_PAIRS

    def take(self) -> Pairs:
        """Return the counts since the last call, by the keys of hosts."""
        sites, self._sites, self._pairs = self._sites, {}, 0
        pairs: Pairs = Counter()
        hosts: Counter[str] = Counter()
        for site, led_to in sites.items():
            source = self._key(site)
            for to, links in led_to.most_common():
                pair = source, self._key(to) if to.startswith(_WEB) else source
                if pair in pairs:
                    pairs[pair] += links
                elif pair[1] != source and hosts[source] < MOST_OF_A_HOST:
                    pairs[pair] = links
                    hosts[source] += 1
        return pairs


def add_host_links(session: "Session", pairs: Mapping[tuple[str, str], int]) -> None:
    """Adds to the counts, in one statement."""
    if not pairs:
        return
    # Loads the database's library, which counting does without.
    from tamias.database.columns import Longs, Texts

    added = {
        "from_host": Texts([source for source, _ in pairs]),
        "to_host": Texts([to for _, to in pairs]),
        "links": Longs(pairs.values()),
        "most": MOST_OF_A_HOST,
    }
    session.transact(lambda cursor: cursor.execute(_SQL["count_host_links"].text, added))
