"""A user's query to a SPARQL endpoint as a source of addresses, asked politely without a database."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from tamias.crawl.analysing.extractor import Extractor
from tamias.crawl.plan.admit import Admission
from tamias.crawl.request.lone import LoneClient
from tamias.crawl.revisit.watching import Wanted
from tamias.crawl.visit.harvest_client import HarvestClient
from tamias.harvesters.sparql.select import addresses
from tamias.model.capture import Capture, Request
from tamias.settings import Settings


async def query_wanted(settings: Settings, endpoint: str, query: str) -> AsyncIterator[Wanted]:
    """What the query gives: an address, with title, format, source (or dataset) and portal if it has them.

    Raises `TamiasError` when the endpoint does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="tamias-") as spool:
        client = LoneClient(settings, Path(spool), Admission(settings, [endpoint]))
        try:
            http = HarvestClient(client.ask, Extractor(settings), _unheard)
            async for row in addresses(http, endpoint, query):
                yield _wanted(row, endpoint)
        finally:
            await client.close()


def _wanted(row: dict[str, str], endpoint: str) -> Wanted:
    address = next(iter(row.values()))
    return Wanted(
        url=row.get("url") or row.get("uri") or address,
        title=row.get("title"),
        format=row.get("format"),
        source=row.get("source") or row.get("dataset") or endpoint,
        portal=row.get("portal"),
    )


async def _unheard(_capture: Capture, _request: Request) -> None:
    pass
