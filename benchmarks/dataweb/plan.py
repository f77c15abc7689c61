"""What a web is to be like: its nodes, their links and graphs, all fixed by the seed. Pure."""

import math
import random
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from ipaddress import IPv4Address
from itertools import accumulate

import msgspec

from tamias.model.errors import UsageError

ORCA_SEED = 20200318
"""The seed of the published runs."""
FIRST_ADDRESS = IPv4Address("127.2.0.1")
SYNTAXES = ("ttl", "n3", "rdf", "nt")
PACKINGS = ("gz", "bz2", "zip")
MIXED = {"deref": 21.0, "ckan": 5.0, "sparql": 30.0, "dump": 40.0, "rdfa": 4.0}
DEREFERENCING = {"deref": 1.0}


class WebOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How large and of what a web is to be; the defaults are those of the published runs."""

    nodes: int
    weights: dict[str, float]
    seed: int = ORCA_SEED
    node_degree: int = 20
    triples: int = 1000
    resource_degree: int = 9
    compressed: float = 0.0
    disallowed: float = 0.0
    delay: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.weights) <= self.nodes <= 60_000:
            raise UsageError(f"--nodes {self.nodes}: choose {len(self.weights)} (one of each kind) to 60000")
        if self.triples < self.resource_degree:
            raise UsageError(f"--triples {self.triples}: choose at least {self.resource_degree}")


class OrcaNode(msgspec.Struct, frozen=True):
    """One host of the web."""

    number: int
    kind: str
    address: str
    links: tuple[int, ...]
    syntax: str
    packing: str


class OrcaPlan(msgspec.Struct, frozen=True):
    """The nodes of a web; `seeds` are those from which all others can be reached."""

    wish: WebOptions
    nodes: tuple[OrcaNode, ...]
    seeds: tuple[int, ...]


def make_plan(wish: WebOptions) -> OrcaPlan:
    """The same nodes and links for the same wish."""
    rng = random.Random(f"orca/{wish.seed}")
    kinds = draw_kinds(rng, wish)
    links = draw_links(rng, kinds, wish.node_degree)
    nodes = tuple(
        OrcaNode(
            number=number,
            kind=kind,
            address=str(FIRST_ADDRESS + number),
            links=tuple(sorted(links[number])),
            syntax=rng.choice(SYNTAXES),
            packing=rng.choice(PACKINGS) if rng.random() < wish.compressed else "",
        )
        for number, kind in enumerate(kinds)
    )
    return OrcaPlan(wish, nodes, find_seeds([node.links for node in nodes]))


def draw_kinds(rng: random.Random, wish: WebOptions) -> list[str]:
    """One node of each kind, the rest by weight, then in an order in which all kinds come early."""
    names = [name for name, weight in wish.weights.items() if weight > 0]
    weights = [wish.weights[name] for name in names]
    drawn = rng.choices(names, weights, k=wish.nodes - len(names))
    counts = {name: 1 + drawn.count(name) for name in names}
    places = [((turn + 0.5) / count, name) for name, count in counts.items() for turn in range(count)]
    return [name for _, name in sorted(places)]


def draw_links(rng: random.Random, kinds: Sequence[str], degree: int) -> list[set[int]]:
    """From which node to which: half of a newcomer's links lead out, the others in, to popular nodes."""
    count = len(kinds)
    links: list[set[int]] = [set() for _ in kinds]
    popularity = [0] * count

    def link(source: int, target: int) -> None:
        links[source].add(target)
        popularity[target] += 1

    first = min(max(2, len(set(kinds))), count)
    for number in range(first):
        other = next((each for each in range(count) if each != number and may(kinds, number, each)), number)
        if other != number:
            link(number, other)
    wanted = math.ceil(count * degree / 2) - sum(map(len, links))
    for number, brings in newcomers(rng, count, first, wanted, degree):
        outward = round(brings / 2)
        for target in popular(rng, popularity, [n for n in range(number) if may(kinds, number, n)], outward):
            link(number, target)
        sources = [each for each in range(number) if may(kinds, each, number) and number not in links[each]]
        for source in popular(rng, popularity, sources, brings - outward):
            link(source, number)
    return links


def may(kinds: Sequence[str], source: int, target: int) -> bool:
    """A portal does not describe single resources."""
    return not (kinds[source] == "ckan" and kinds[target] == "deref")


def find_seeds(links: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The nodes nobody links to, or the first one, and then whoever is still out of reach."""
    linked = {target for targets in links for target in targets}
    seeds = [number for number in range(len(links)) if number not in linked] or [0]
    reached = reach(links, seeds)
    for number in range(len(links)):
        if number not in reached:
            seeds.append(number)
            reached |= reach(links, [number])
    return tuple(seeds)


def reach(links: Sequence[Sequence[int]], starts: Sequence[int]) -> set[int]:
    """All that can be reached."""
    reached, waiting = set(starts), deque(starts)
    while waiting:
        new = set(links[waiting.popleft()]) - reached
        reached |= new
        waiting.extend(new)
    return reached


def newcomers(
    rng: random.Random, count: int, first: int, edges: int, degree: int
) -> Iterator[tuple[int, int]]:
    """For each number from `first` on: how many of the `edges` it brings, `degree / 2` on average.

    Where half the degree makes too few of them, later newcomers bring one more on average.
    """
    half, left = max(1, degree // 2), edges
    change = first + (half + 1) * (count - first) - edges
    for number in range(first, count):
        mean = half + (number >= change)
        most = max(1, left - (count - number - 1))
        brings = left if number == count - 1 else min(rng.randint(1, 2 * mean - 1), most)
        brings = max(1, min(brings, number))
        left -= brings
        yield number, brings


def popular(rng: random.Random, popularity: Sequence[int], among: Collection[int], count: int) -> list[int]:
    """Some of those present, each once, drawn by popularity; all of them if there are no more."""
    if len(among) <= count:
        return list(among)
    numbers = list(among)
    sums = list(accumulate(popularity[number] + 1 for number in numbers))
    chosen: dict[int, None] = {}
    while len(chosen) < count:
        chosen[rng.choices(numbers, cum_weights=sums)[0]] = None
    return list(chosen)


def resource_count(triples: int, degree: int) -> int:
    """How many resources a graph of so many triples has."""
    return max(2, math.ceil(2 * triples / degree))


def draw_graph(rng: random.Random, triples: int, degree: int) -> list[tuple[int, int]]:
    """Links from resource to resource, all different; every resource can be reached from the first."""
    count = resource_count(triples, degree)
    wanted = math.ceil(count * degree / 2)
    half = max(2, degree // 2)
    links = {(0, 1): None}
    for number in range(2, min(half, count)):
        links[number - 1, number] = None
        links[number, rng.randrange(number)] = None
    popularity = [0] * count
    for pair in links:
        _tie(popularity, pair)
    for number, brings in newcomers(rng, count, min(half, count), wanted - len(links), degree):
        partners = popular(rng, popularity, range(number), brings)
        parent = rng.randrange(len(partners))
        outward = 1 - (brings / 2 - 1) / (brings - 1) if brings > 1 else 0.0
        for turn, partner in enumerate(partners):
            away = turn != parent and rng.random() < outward
            pair = (number, partner) if away else (partner, number)
            links[pair] = None
            _tie(popularity, pair)
    _fill_up(rng, links, count, wanted)
    return list(links)


def _tie(popularity: list[int], pair: tuple[int, int]) -> None:
    for number in pair:
        popularity[number] += 1


def _fill_up(rng: random.Random, links: dict[tuple[int, int], None], count: int, wanted: int) -> None:
    """What the last newcomer could not bring is drawn among all."""
    while len(links) < min(wanted, count * (count - 1)):
        pair = (rng.randrange(count), rng.randrange(count))
        if pair[0] != pair[1]:
            links[pair] = None
