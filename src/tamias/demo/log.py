"""What the servers saw, and what it says about a crawler's manners. Pure."""

from collections.abc import Collection, Iterable

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
    """Requests in progress at this host when it came, itself included."""
    agent: str

    @property
    def url(self) -> str:
        """The address asked for."""
        return f"http://{self.host}{self.path}"


def max_in_flight(log: Iterable[Visit]) -> dict[str, int]:
    """For each host the most requests that were under way at once."""
    most: dict[str, int] = {}
    for visit in log:
        most[visit.host] = max(visit.in_flight, most.get(visit.host, 0))
    return most


def requests_of_disallowed(log: Iterable[Visit], disallowed: Collection[str]) -> list[Visit]:
    """The visits that should never have been."""
    return [visit for visit in log if visit.url in disallowed]
