"""Reads what was crawled: quads from the segments, the metadata graph from the rows."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pyoxigraph import RdfFormat, serialize

from tamias.archive.captures import all_captures, all_extents, current_extents, documents_at
from tamias.archive.file_store import segments_of
from tamias.archive.reader.graph_history import graph_lines
from tamias.archive.references import committed_lengths
from tamias.database.connect import Session
from tamias.features.dcat.activity import activity_quads
from tamias.features.exports.usage_gate import UsageGate
from tamias.model.capture import Extent
from tamias.model.item import NEVER
from tamias.sinks.segments.segment_files import SegmentReader

RECORDS_AT_ONCE = 500


def data_quads(
    session: Session,
    data: Path,
    *,
    history: bool = False,
    lost: list[Extent] | None = None,
    since: int = 0,
    gate: UsageGate | None = None,
) -> Iterator[bytes]:
    """The crawled quads as N-Quads: of the latest capture of each document, or of all, read since a time.

    Since a time, those documents come that held other statements, or none, before it.
    What the gate withholds is left out. Documents that cannot be read to their end are left out and noted in
    `lost`. Raises `SegmentError` where there is no such list.
    """
    earlier = _earlier_extents(session, since) if since and not history else {}
    committed = committed_lengths(session)
    with (
        SegmentReader(segments_of(session, data), committed) as reader,
        SegmentReader(segments_of(session, data), committed) as earlier_reader,
    ):
        chosen = all_extents if history else current_extents
        for extent in chosen(session, since, gate.passes) if gate else chosen(session, since):
            was = earlier.get(extent)
            if lost is not None and not reader.holds(extent):
                lost.append(extent)
            elif (
                was is None
                or not earlier_reader.holds(was)
                or (graph_lines(earlier_reader.read(was)) != graph_lines(reader.read(extent)))
            ):
                yield from reader.read(extent)


def _earlier_extents(session: Session, since: int) -> dict[Extent, Extent]:
    """Return where documents stood before a time, by where they stand now."""
    before = {each.document: each.extent for each in documents_at(session, since - 1)}
    now = documents_at(session, NEVER)
    return {each.extent: before[each.document] for each in now if each.document in before}


def metadata_quads(session: Session, since: int = 0) -> Iterator[bytes]:
    """The metadata graph as N-Quads: what was attempted since a time, when, and how it ended."""
    records = all_captures(session, since)
    while batch := list(islice(records, RECORDS_AT_ONCE)):
        quads = [quad for record in batch for quad in activity_quads(record)]
        yield serialize(quads, format=RdfFormat.N_QUADS) or b""
