"""What a portal describes, as DCAT-AP 3 again: made of the records that its harvests stored."""

from collections.abc import Iterator, Sequence

import msgspec
from pyoxigraph import NamedNode, Quad

from tamias.archive.sources.source_records import count_of_records, page_of_records
from tamias.database.connect import Session
from tamias.model.finding import SourceRecord
from tamias.serve.http.problems import HttpProblem


class PortalPage(msgspec.Struct, frozen=True):
    """Some records of a portal."""

    catalogue: NamedNode
    quads: list[Quad]
    total: int


def portal_page(session: Session, portal: str, *, start: int, limit: int, since: int) -> PortalPage:
    """The catalogue with some of its datasets. Raises `HttpProblem` for a portal without stored records."""
    total = count_of_records(session, portal, since)
    if not total and not (since and count_of_records(session, portal, 0)):
        raise HttpProblem(404, f"no records of {portal[:200]} are stored; `tamias list` names the portals")
    records = page_of_records(session, portal, start, limit, since)
    catalogue = records[0].catalogue if records else portal
    return PortalPage(NamedNode(catalogue), list(_quads(catalogue, records)), total)


def _quads(catalogue: str, records: Sequence[SourceRecord]) -> Iterator[Quad]:
    # All harvesters are behind this import: a service that is never asked for records does not load them.
    from tamias.harvesters.kit.dcat import catalogue_quads
    from tamias.harvesters.kit.paging import BAD
    from tamias.harvesters.portals.mappings import map_again

    yield from catalogue_quads(catalogue, "", None, catalogue)
    for record in records:
        try:
            yield from map_again(record)
        except BAD:
            continue  # Written by an earlier version, by rules that are no more; `tamias stats` counts it.
