"""What the servers' logs tell of one crawl: documents, gaps, forbidden requests, triples over time."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.dataweb.web.web import OrcaWeb

ROBOTS = "/robots.txt"


class LoggedRequest(msgspec.Struct, frozen=True):
    """One request."""

    seconds: float
    address: str
    status: str
    target: str


class Manners(msgspec.Struct, frozen=True):
    """How the rules of robots.txt were kept."""

    disallowed: int
    """Forbidden resources of the whole web."""
    disallowed_requested: int
    """Those of them that were asked for all the same."""
    fulfilment: tuple[float, float, float] | None = None
    """Mean gap between requests over the delay asked for: mean over nodes, least, most."""


class RequestAccount(msgspec.Struct, frozen=True):
    """A crawl as the servers saw it."""

    requests: int
    resources: int
    """Different documents given out of those that a complete crawl fetches."""
    robots: int
    missing: int
    not_modified: int
    handed_out: int
    """Triples of those documents."""
    manners: Manners
    curve: list[tuple[float, int]]
    """Seconds since the start of the crawl, and triples handed out until then."""

    @property
    def requests_per_resource(self) -> float:
        return self.requests / self.resources if self.resources else 0.0


def read_visits(logs: Iterable[Path], since: float = 0.0) -> list[LoggedRequest]:
    """All requests in their order."""
    visits = [visit for log in logs for visit in _lines(log)]
    return sorted((visit for visit in visits if visit.seconds >= since), key=lambda visit: visit.seconds)


def _lines(log: Path) -> Iterator[LoggedRequest]:
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            seconds, address, status, target = line.rstrip("\n").split(" ", 3)
            yield LoggedRequest(float(seconds), address, status, target)


def account(web: OrcaWeb, visits: Sequence[LoggedRequest], started: float) -> RequestAccount:
    """The crawl in figures."""
    weights = {address: built.weights for address, built in web.nodes.items()}
    seen: set[tuple[str, str]] = set()
    total, curve = 0, [(0.0, 0)]
    for visit in visits:
        place = weighed(weights.get(visit.address, {}), visit.target)
        if visit.status == "200" and place and (visit.address, place) not in seen:
            seen.add((visit.address, place))
            total += weights[visit.address][place]
            curve.append((visit.seconds - started, total))
    statuses = Counter(visit.status for visit in visits if visit.target != ROBOTS)
    return RequestAccount(
        requests=len(visits),
        resources=len(seen),
        robots=sum(visit.target == ROBOTS for visit in visits),
        missing=statuses["404"],
        not_modified=statuses["304"],
        handed_out=total,
        manners=manners(web, visits),
        curve=thinned(curve),
    )


def weighed(weights: Mapping[str, int], target: str) -> str | None:
    """The document that a request is for: with its query if it has one of its own, otherwise without."""
    if target in weights:
        return target
    path = target.partition("?")[0]
    return path if path in weights and "page=" not in target else None


def manners(web: OrcaWeb, visits: Sequence[LoggedRequest]) -> Manners:
    """Forbidden resources asked for, and the gaps between requests to one node."""
    forbidden = {(a, path) for a, built in web.nodes.items() for path in built.disallowed}
    asked = {(visit.address, visit.target) for visit in visits} & forbidden
    delay = web.plan.wish.delay
    return Manners(len(forbidden), len(asked), fulfilment(visits, delay) if delay else None)


def fulfilment(visits: Sequence[LoggedRequest], delay: float) -> tuple[float, float, float] | None:
    """1 is exactly the delay asked for, less is impolite. Requests for robots.txt are not counted."""
    times: dict[str, list[float]] = defaultdict(list)
    for visit in visits:
        if visit.target != ROBOTS:
            times[visit.address].append(visit.seconds)
    means = [(at[-1] - at[0]) / (len(at) - 1) / delay for at in times.values() if len(at) > 1]
    return (sum(means) / len(means), min(means), max(means)) if means else None


def thinned(curve: Sequence[tuple[float, int]], most: int = 200) -> list[tuple[float, int]]:
    """Enough points for a plot, the last among them."""
    step = max(1, len(curve) // most)
    return [*curve[:-1:step], curve[-1]]
