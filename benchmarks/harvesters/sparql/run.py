"""Copies a capped endpoint twice, and compares how fast, in how many requests, and how completely."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from pyoxigraph import Quad

from benchmarks.harvesters.sparql.client import LoopbackClient
from benchmarks.harvesters.sparql.data import write
from benchmarks.harvesters.sparql.endpoint import endpoint
from tamias.harvesters.sparql import SparqlHarvester, queries
from tamias.harvesters.sparql.client import EndpointClient, EndpointDialect, EndpointLimits
from tamias.harvesters.sparql.terms import StatementPage
from tamias.model.finding import Harvest, Quads

CAP = 10_000

Out = Callable[[str], object]


class CopyFigures(msgspec.Struct, kw_only=True):
    """One way of copying."""

    name: str
    seconds: float = 0.0
    requests: int = 0
    statements: int = 0
    """Different ones of those that were loaded."""
    repeated: int = 0
    says: str = ""

    @property
    def rate(self) -> float:
        """Statements in a second."""
        return self.statements / self.seconds


def run(triples: int = 1_000_000, out: Out = print, *, cap: int = CAP) -> dict[str, Any]:
    """Measures both; `ok` is false when the harvester has missed a statement, or is not sure."""
    with TemporaryDirectory(prefix="tamias-bench-") as name:
        folder = Path(name)
        data = folder / "data.nt"
        write(data, triples)
        with endpoint(data, folder, cap) as url:
            out(f"{triples:,} statements behind a cap of {cap:,} rows")
            ours = asyncio.run(_measured("tamias", _by_harvester, folder, url, cap, out))
            plain = asyncio.run(_measured("limit-offset", _by_loop, folder, url, cap, out))
    out(f"ratio: {ours.rate / plain.rate:.2f} x the speed of the plain loop")
    return {
        "triples": triples,
        "cap": cap,
        "tamias": msgspec.to_builtins(ours),
        "limit_offset": msgspec.to_builtins(plain),
        "ratio": ours.rate / plain.rate,
        "ok": ours.statements == triples and ours.says.startswith("complete"),
    }


Pages = AsyncIterator[Sequence[Quad]]
Copying = Callable[[LoopbackClient, str, CopyFigures, int], Pages]


async def _measured(name: str, copying: Copying, folder: Path, url: str, cap: int, out: Out) -> CopyFigures:
    figures = CopyFigures(name=name)
    client = LoopbackClient(folder / "spool")
    seen: set[int] = set()
    rows = 0
    began = time.perf_counter()
    async for quads in copying(client, url, figures, cap):
        rows += len(quads)
        seen.update(map(hash, quads))
    figures.seconds = time.perf_counter() - began
    await client.close()
    figures.requests, figures.statements, figures.repeated = client.requests, len(seen), rows - len(seen)
    out(
        f"{name:<14}{figures.rate:>10,.0f} statements/s{figures.seconds:>8.1f} s"
        f"{figures.requests:>6} requests{figures.statements:>12,} statements"
        f"{figures.repeated:>8,} repeated; {figures.says}"
    )
    return figures


async def _by_harvester(
    client: LoopbackClient, url: str, figures: CopyFigures, _page: int
) -> AsyncIterator[Sequence[Quad]]:
    async for step in SparqlHarvester().harvest(Harvest(url=url, kind="sparql"), client):
        for finding in step.findings:
            if isinstance(finding, Quads) and not _description(finding.quads):
                yield finding.quads
        if step.end is not None:
            figures.says = f"{'complete' if step.end.complete else 'not complete'}: {step.end.reason}"


async def _by_loop(
    client: LoopbackClient, url: str, figures: CopyFigures, page: int
) -> AsyncIterator[Sequence[Quad]]:
    """What is written first when an endpoint is to be copied. Nothing tells it whether it has all."""
    endpoint_client = EndpointClient(client, url, EndpointDialect(), EndpointLimits().most_bytes)
    offset = 0
    while rows := await endpoint_client.select(queries.select(queries.statements(None), page, offset)):
        offset += len(rows)
        yield StatementPage.of_rows(rows).quads
    figures.says = "cannot tell"


def _description(quads: Sequence[Quad]) -> bool:
    return any("sparql-service-description#" in quad.predicate.value for quad in quads)
