"""The RDF graph of one node: resources and the links between them, by preferential attachment. Pure."""

import math
import random

from benchmarks.dataweb.web.chance import newcomers, popular


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
