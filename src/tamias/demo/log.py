"""What the servers saw, and what it says about a crawler's manners. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import pairwise

import msgspec


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """One request, from its last header line until its answer was written. Seconds of a monotonic clock."""

    host: str
    """Address and port."""
    path: str
    status: int
    """0 if the client left before the answer."""
    start: float
    end: float
    in_flight: int
    """Requests under way at this host when it came, itself included."""
    agent: str

    @property
    def url(self) -> str:
        """The address asked for."""
        return f"http://{self.host}{self.path}"


def read_log(lines: Iterable[str | bytes]) -> list[Visit]:
    """The visits of a log file, one JSON object a line."""
    return [msgspec.json.decode(line, type=Visit) for line in lines]


def max_in_flight(log: Iterable[Visit]) -> dict[str, int]:
    """For each host the most requests that were under way at once."""
    most: dict[str, int] = {}
    for visit in log:
        most[visit.host] = max(visit.in_flight, most.get(visit.host, 0))
    return most


def least_gap(log: Iterable[Visit], host: str) -> float | None:
    """The shortest time from one request's start to the next one's at `host`; None if there were not two.

    robots.txt does not count: a crawler may read it and go on at once.
    """
    starts = sorted(visit.start for visit in log if visit.host == host and visit.path != "/robots.txt")
    return min((later - earlier for earlier, later in pairwise(starts)), default=None)


def fetch_counts(log: Iterable[Visit]) -> Counter[str]:
    """How often each URL was asked for."""
    return Counter(visit.url for visit in log)


def requests_of_disallowed(log: Iterable[Visit], disallowed: Collection[str]) -> list[Visit]:
    """The visits that should never have been."""
    return [visit for visit in log if visit.url in disallowed]
