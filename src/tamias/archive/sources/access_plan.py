"""Plans to get a dataset with the least load for its host: attempts in their order.

Pure: chance is given. The rules are those of the Semantic Sitemap extension.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Literal
from urllib.parse import urlencode

import msgspec

from tamias.model.site import Location, SemanticDataset

Task = Literal["whole", "one", "query"]
"""A copy of all of it; the latest of one IRI; an answer to a user's query."""

Kind = Literal["dump", "fragments", "sparql", "dereference"]

MOST_MIRRORS = 100
"""Nobody tries more of them one after the other."""


class Access(msgspec.Struct, frozen=True):
    """An attempt. It succeeds when every one of its addresses was read, and only then."""

    kind: Kind
    urls: tuple[str, ...]
    """To dereference for a whole copy: the prefixes, under which addresses may then be asked for."""
    why: str
    """For people; goes into the metadata."""


def access_plan(
    dataset: SemanticDataset,
    task: Task,
    chance: Random,
    *,
    iri: str | None = None,
    among: frozenset[str] | None = None,
) -> list[Access]:
    """The attempts, the best first; the next one is for when all before it failed.

    `iri` is what the task `one` is about. With `among`, only those places are used: see `authoritative`.
    """
    if task == "one":
        return _one(dataset, chance, iri, among)
    copies = [*_dumps(dataset.dumps, chance, among), *_fragments(dataset, among)]
    endpoints = _endpoints(dataset, chance, among)
    if task == "query":
        return [*endpoints, *copies]
    return [*copies, *endpoints, *_dereference(dataset, among)]


def _one(
    dataset: SemanticDataset, chance: Random, iri: str | None, among: frozenset[str] | None
) -> list[Access]:
    if iri is None:
        raise ValueError("the task 'one' wants an iri")
    itself = Access("dereference", (iri,), "one IRI's update: no dump is loaded again for it")
    return [itself, *_endpoints(dataset, chance, among)]


def _dumps(dumps: Sequence[Location], chance: Random, among: frozenset[str] | None) -> list[Access]:
    """Make attempts that take one mirror of every part."""
    parts = [_drawn(_usable(mirrors, among), chance) for mirrors in dump_parts(dumps)]
    if not all(parts):
        return []
    attempts = max(map(len, parts), default=0)
    return [
        _dump([part[min(turn, len(part) - 1)] for part in parts], turn, attempts) for turn in range(attempts)
    ]


def _dump(locations: list[Location], turn: int, attempts: int) -> Access:
    if len(locations) > 1:
        why = f"the dump in {len(locations)} parts, which no priority makes mirrors of each other"
    else:
        why = f"the dump, {_reason(locations[0], turn, attempts)}"
    return Access("dump", tuple(location.url for location in locations), why)


def dump_parts(dumps: Iterable[Location]) -> list[list[Location]]:
    """The parts of a dump, each with its mirrors.

    By the paper all dumps are mirrors. In the wild, several of them without any priority are often parts;
    then only those with the same base name are mirrors.
    """
    dumps = list(dumps)
    if any(dump.priority is not None for dump in dumps):
        return [dumps]
    parts: dict[str, list[Location]] = {}
    for dump in dumps:
        parts.setdefault(_base_name(dump.url), []).append(dump)
    return list(parts.values())


def _base_name(url: str) -> str:
    path, question_mark, query = url.partition("?")
    return path.rstrip("/").rpartition("/")[2] + question_mark + query


def _fragments(dataset: SemanticDataset, among: frozenset[str] | None) -> list[Access]:
    urls = tuple(fragment.url for fragment in dataset.fragments)
    if not urls or len(_usable(dataset.fragments, among)) < len(urls):
        return []
    return [Access("fragments", urls, f"the dump in {len(urls)} fragments, which are one whole")]


def _endpoints(dataset: SemanticDataset, chance: Random, among: frozenset[str] | None) -> list[Access]:
    order = _drawn(_usable(dataset.endpoints, among), chance)
    return [
        Access(
            "sparql",
            (endpoint_of_graphs(endpoint.url, dataset.graph_names),),
            f"the endpoint, {_reason(endpoint, turn, len(order))}",
        )
        for turn, endpoint in enumerate(order)
    ]


def endpoint_of_graphs(url: str, graphs: Sequence[str]) -> str:
    """An endpoint, limited to the graphs that hold the dataset in the words of the SPARQL protocol.

    >>> endpoint_of_graphs("http://example.org/sparql", ["http://example.org/g"])
    'http://example.org/sparql?named-graph-uri=http%3A%2F%2Fexample.org%2Fg'
    """
    if not graphs:
        return url
    named = urlencode([("named-graph-uri", graph) for graph in graphs])
    return f"{url}{'&' if '?' in url else '?'}{named}"


def _dereference(dataset: SemanticDataset, among: frozenset[str] | None) -> list[Access]:
    prefixes = tuple(prefix.iri for prefix in dataset.prefixes if among is None or prefix.iri in among)
    return [Access("dereference", prefixes, "each IRI by itself, all else having failed")] if prefixes else []


def _usable(locations: Iterable[Location], among: frozenset[str] | None) -> list[Location]:
    return [location for location in locations if among is None or location.url in among]


def _drawn(mirrors: Sequence[Location], chance: Random) -> list[Location]:
    """The mirrors in the order of a draw by priority; those of priority 0 behind all others.

    A race: of exponential waiting times the shortest is that of a mirror with the probability of its
    priority by the sum of all, and so on for the rest.
    """
    regular = [mirror for mirror in mirrors if mirror.weight]
    spare = [mirror for mirror in mirrors if not mirror.weight]
    order = sorted(regular, key=lambda mirror: chance.expovariate(mirror.weight))
    return [*order, *chance.sample(spare, len(spare))][:MOST_MIRRORS]


def _reason(location: Location, turn: int, mirrors: int) -> str:
    if mirrors == 1:
        return "the only one"
    if not location.weight:
        return "of priority 0: only after all others failed"
    return f"of priority {location.weight}: number {turn + 1} of {mirrors} in a draw by priority"
