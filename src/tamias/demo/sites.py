"""Fills a plan with documents, once the port is known: the whole web as values. Pure."""

import random

from tamias.demo.kinds import KINDS
from tamias.demo.oddities import ODDITIES
from tamias.demo.pages import DemoSite, DemoWeb, File
from tamias.demo.plan import WebPlan
from tamias.demo.plot import Plot


def build_web(plan: WebPlan, port: int) -> DemoWeb:
    """Every document of the web, as it is when served at `port`."""
    entrances = [f"http://{node.address}:{port}{KINDS[node.kind].entrance(node)}" for node in plan.nodes]
    vocabulary = f"http://{plan.nodes[0].address}:{port}/vocab"
    sites = {
        node.address: build_site(
            Plot(node, port, entrances, vocabulary, random.Random(f"{plan.seed}/{node.number}"))
        )
        for node in plan.nodes
    }
    return DemoWeb(sites=sites, seeds=tuple(entrances[number] for number in plan.seeds))


def build_site(plot: Plot) -> DemoSite:
    """The pages of the node's kind, with its oddities linked from the first of them."""
    oddities = [ODDITIES[name](plot) for name in plot.node.oddities]
    pages = KINDS[plot.node.kind].pages(plot, [link for oddity in oddities for link in oddity.links])
    for oddity in oddities:
        pages |= oddity.pages
    rules = [line for oddity in oddities for line in oddity.robots]
    if rules:
        pages["/robots.txt"] = File("\n".join(["User-agent: *", *rules, ""]).encode(), "text/plain")
    return DemoSite(
        authority=f"{plot.node.address}:{plot.port}",
        kind=plot.node.kind,
        pages=pages,
        disallowed=frozenset(path for oddity in oddities for path in oddity.disallowed),
    )
