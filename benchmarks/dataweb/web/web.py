"""A whole web as values: what every address answers, and the truth about it. Pure."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.dataweb.web import kinds, more_kinds
from benchmarks.dataweb.web.context import Built, NodeContext, Ports
from benchmarks.dataweb.web.plan import OrcaNode, OrcaPlan, make_plan


class OrcaKind(NamedTuple):
    """How nodes of a kind are entered, and how they are built."""

    entrance: Callable[[OrcaNode], str]
    build: Callable[[NodeContext], Built]


KINDS = {
    "deref": OrcaKind(lambda _: "/dataset-0/resource-0", kinds.dereferencing),
    "ckan": OrcaKind(lambda _: "/", kinds.ckan),
    "sparql": OrcaKind(lambda _: "/sparql", kinds.sparql),
    "dump": OrcaKind(
        lambda node: f"/{kinds.dump_name(node.syntax, node.packing)}#dataset-0-resource-0", kinds.dump
    ),
    "rdfa": OrcaKind(lambda _: "/dataset-0/resource-0", kinds.rdfa),
    "redirect": OrcaKind(lambda _: "/dataset-0/resource-0", more_kinds.redirecting),
    "hash": OrcaKind(lambda _: "/dataset-0/document-0#resource-0", more_kinds.with_hashes),
    "jsonld": OrcaKind(lambda _: "/dataset-0/resource-0", more_kinds.with_jsonld),
    "microdata": OrcaKind(lambda _: "/dataset-0/resource-0", more_kinds.with_microdata),
    "ldes": OrcaKind(lambda _: "/stream", more_kinds.event_stream),
    "sitemap": OrcaKind(lambda _: "/", more_kinds.semantic_sitemap),
    "ftp": OrcaKind(lambda _: "/", more_kinds.ftp_tree),
}


class OrcaWeb(msgspec.Struct, frozen=True):
    """All nodes by address, and where a crawl is to begin."""

    plan: OrcaPlan
    ports: Ports
    nodes: dict[str, Built]
    seeds: list[str]

    @property
    def resources(self) -> int:
        """Documents that a complete crawl fetches."""
        return sum(len(built.weights) for built in self.nodes.values())

    @property
    def triples(self) -> int:
        """Statements that it has then."""
        return sum(len(built.truth) for built in self.nodes.values())

    def kind_of(self, address: str) -> str:
        """What sort of node is at an address."""
        return next(node.kind for node in self.plan.nodes if node.address == address)


def build_web(plan: OrcaPlan, ports: Ports, suite: Path | None = None) -> OrcaWeb:
    """The same web for the same plan and ports."""
    entrances = [entrance(node, ports) for node in plan.nodes]
    nodes = {
        node.address: KINDS[node.kind].build(NodeContext(node, plan.wish, ports, entrances, suite=suite))
        for node in plan.nodes
    }
    return OrcaWeb(plan, ports, nodes, [entrances[number] for number in plan.seeds])


def entrance(node: OrcaNode, ports: Ports) -> str:
    """The URL by which other nodes link to this one."""
    path = KINDS[node.kind].entrance(node)
    if node.kind == "ftp":
        return f"ftp://{node.address}:{ports.ftp}{path}"
    return f"http://{node.address}:{ports.http}{path}"


__all__ = ["KINDS", "OrcaWeb", "build_web", "entrance", "make_plan"]
