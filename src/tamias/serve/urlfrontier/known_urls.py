"""Discovered URLs that the frontier is certain to know: it need not ask the database about each again."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

MOST_OF_A_GENERATION = 250_000
"""Digests in each of two generations; about 100 bytes each."""


def digest(info: bytes) -> bytes:
    """What stands for a `URLInfo` as a client wrote it: nobody can make two of them alike."""
    return blake2b(info, digest_size=16).digest()


class KnownUrls:
    """Digests of URLs with the crawls they are known in, as long as nothing is removed from these.

    A crawl counts its removals in its row, in the transaction that removes. The count was read before the
    database said that a URL is known: as long as it is the same, the URL is still known, whoever removes.
    """

    def __init__(self) -> None:
        self._recent: dict[bytes, int] = {}
        self._older: dict[bytes, int] = {}
        self._counts: dict[int, int] = {}

    def count(self, crawl: int) -> int | None:
        """The removals of a crawl as they were last read."""
        return self._counts.get(crawl)

    def crawl_of(self, each: bytes) -> int | None:
        """The crawl in which a URL was known."""
        crawl = self._recent.get(each)
        return self._older.get(each) if crawl is None else crawl

    def renew(self, counts: Mapping[int, int]) -> None:
        """Removals as they are now: what was known of crawls that have others is forgotten."""
        changed = {crawl for crawl, count in counts.items() if self._counts.setdefault(crawl, count) != count}
        if changed:
            self._counts.update(counts)
            for part in (self._recent, self._older):
                for each in [each for each, crawl in part.items() if crawl in changed]:
                    del part[each]

    def clear(self) -> None:
        """Forgets all URLs."""
        self._recent, self._older = {}, {}

    def add(self, known: Iterable[tuple[bytes, int]], counts: Mapping[int, int | None]) -> None:
        """URLs that are known in crawls, whose removals were counted before that was found out."""
        for each, crawl in known:
            if counts[crawl] is not None and counts[crawl] == self._counts.get(crawl):
                self._recent[each] = crawl
        if len(self._recent) > MOST_OF_A_GENERATION:
            self._older, self._recent = self._recent, {}

    def crawls_of(self, digests: Sequence[bytes | None]) -> list[int | None]:
        """For each its crawl, where it was known."""
        return [None if each is None else self.crawl_of(each) for each in digests]
