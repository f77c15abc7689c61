"""The shape of a web: which nodes there are, of what kind, and who links to whom. Pure, and free of ports."""

import random
from collections.abc import Sequence
from ipaddress import IPv4Address

import msgspec

FIRST_ADDRESS = "127.0.0.1"
MOST_NODES = 65_000
KIND_WEIGHTS = {"deref": 5, "dump": 4, "html": 2}
SYNTAXES = ("nt", "ttl", "rdf", "nq", "trig", "jsonld")
PACKINGS = ("", "gz", "bz2", "xz", "zst", "zip", "tar.gz")
"""Six and seven have no common factor: in 42 turns every pair of syntax and packing comes up."""
ODDITIES = ("see-other", "hash", "moved", "gone", "busy", "slow", "mislabelled", "international", "private")
DELAYED_RESOURCES = 3
"""A node that asks for a Crawl-delay is small, so that a polite crawl of it ends soon."""


class DemoNode(msgspec.Struct, frozen=True, kw_only=True):
    """A host of the web."""

    number: int
    address: str
    kind: str
    resources: int
    links: tuple[int, ...]
    """The nodes that something on this one links to."""
    oddities: tuple[str, ...]
    syntax: str
    """How a dump is written, by its file extension."""
    packing: str
    """How a dump is compressed, by its file extension; empty for not at all."""


class WebPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes, and those a crawl must start from to reach all. Node 0 holds the vocabulary."""

    seed: int
    nodes: tuple[DemoNode, ...]
    seeds: tuple[int, ...]


def make_plan(
    seed: int = 1, nodes: int = 12, resources: int = 20, links: int = 3, crawl_delay: bool = True
) -> WebPlan:
    """A web of `nodes` hosts with `resources` things each, `links` edges for every host that joins."""
    if not 1 <= nodes <= MOST_NODES:
        raise ValueError(f"a web has 1 to {MOST_NODES} nodes, not {nodes}")
    rng = random.Random(seed)
    known = list(KIND_WEIGHTS)
    more = rng.choices(known, list(KIND_WEIGHTS.values()), k=max(0, nodes - len(known)))
    kinds = (known + more)[:nodes]
    edges = draw_links(rng, nodes, links)
    oddities: list[list[str]] = [[] for _ in kinds]
    bearers = [mine for mine, kind in zip(oddities, kinds, strict=True) if kind == "deref"]
    for turn, oddity in enumerate(ODDITIES):
        bearers[turn % len(bearers)].append(oddity)
    oddities[0].append("vocabulary")
    delayed = kinds.index("html") if crawl_delay and "html" in kinds else None
    if delayed is not None:
        oddities[delayed].append("crawl-delay")
    drawn = []
    for number, kind in enumerate(kinds):
        turn = seed + kinds[:number].count("dump")
        drawn.append(
            DemoNode(
                number=number,
                address=str(IPv4Address(FIRST_ADDRESS) + number),
                kind=kind,
                resources=DELAYED_RESOURCES if number == delayed else resources,
                links=edges[number],
                oddities=tuple(oddities[number]),
                syntax=SYNTAXES[turn % len(SYNTAXES)],
                packing=PACKINGS[turn % len(PACKINGS)],
            )
        )
    return WebPlan(seed=seed, seeds=starting_nodes(edges), nodes=tuple(drawn))


def draw_links(rng: random.Random, nodes: int, links: int) -> list[tuple[int, ...]]:
    """Draw links between nodes: each is tied to earlier ones, either way round."""
    targets: list[set[int]] = [set() for _ in range(nodes)]
    for newcomer in range(1, nodes):
        for _ in range(links):
            pair = [newcomer, rng.randrange(newcomer)]
            rng.shuffle(pair)
            targets[pair[0]].add(pair[1])
    return [tuple(sorted(chosen)) for chosen in targets]


def starting_nodes(edges: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The nodes nobody links to, then the lowest one not yet reached, until all are."""
    linked = {target for targets in edges for target in targets}
    seeds = [number for number in range(len(edges)) if number not in linked]
    reached = reachable(edges, seeds)
    for number in range(len(edges)):
        if number not in reached:
            seeds.append(number)
            reached |= reachable(edges, [number])
    return tuple(sorted(seeds))


def reachable(edges: Sequence[Sequence[int]], start: Sequence[int]) -> set[int]:
    """Return the nodes that can be reached from `start`."""
    reached, waiting = set(start), list(start)
    while waiting:
        found = set(edges[waiting.pop()]) - reached
        reached |= found
        waiting.extend(found)
    return reached
