"""Reads what was crawled: quads from the segments, the metadata graph from the rows."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pyoxigraph import RdfFormat, serialize

from tamias.archive.captures import all_captures, all_extents, current_extents
from tamias.archive.file_store import segments_of
from tamias.archive.references import committed_lengths
from tamias.database.connect import Session
from tamias.features.dcat.activity import activity_quads
from tamias.features.exports.usage_gate import UsageGate
from tamias.model.capture import Extent
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

    What the gate withholds is left out. Documents that cannot be read to their end are left out and noted in
    `lost`. Raises `SegmentError` where there is no such list.
    """
    with SegmentReader(segments_of(session, data), committed_lengths(session)) as reader:
        chosen = all_extents if history else current_extents
        for extent in chosen(session, since, gate.passes) if gate else chosen(session, since):
            if lost is None or reader.holds(extent):
                yield from reader.read(extent)
            else:
                lost.append(extent)


def metadata_quads(session: Session, since: int = 0) -> Iterator[bytes]:
    """The metadata graph as N-Quads: what was attempted since a time, when, and how it ended."""
    records = all_captures(session, since)
    while batch := list(islice(records, RECORDS_AT_ONCE)):
        quads = [quad for record in batch for quad in activity_quads(record)]
        yield serialize(quads, format=RdfFormat.N_QUADS) or b""
