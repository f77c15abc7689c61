"""Reads what was crawled: quads from the segments, the metadata graph from the rows."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pyoxigraph import RdfFormat, serialize

from tamias.archive.captures import all_captures, all_extents, current_extents
from tamias.database.connect import Session
from tamias.sinks.metadata import activity_quads
from tamias.sinks.segments import SegmentReader

RECORDS_AT_ONCE = 500


def data_quads(session: Session, data: Path, *, history: bool = False) -> Iterator[bytes]:
    """The crawled quads as N-Quads: of the latest capture of each document, or of all."""
    with SegmentReader(data / "rdf") as reader:
        for extent in all_extents(session) if history else current_extents(session):
            yield from reader.read(extent)


def metadata_quads(session: Session) -> Iterator[bytes]:
    """The metadata graph as N-Quads: what was attempted, when, and how it ended."""
    records = all_captures(session)
    while batch := list(islice(records, RECORDS_AT_ONCE)):
        quads = [quad for record in batch for quad in activity_quads(record)]
        yield serialize(quads, format=RdfFormat.N_QUADS) or b""
