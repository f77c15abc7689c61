"""HDT as an export of crawled quads, and as a sink with a file for each document."""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from tamias.features.graph_stores.document_files import DocumentFiles
from tamias.features.hdt.writer import TooManyTriples, write_hdt
from tamias.model.errors import TamiasError
from tamias.sinks.delivery import GraphSink, Surroundings
from tamias.sinks.export import read_quads

MAX_TRIPLES = 10_000_000
"""At about 300 bytes of memory each, 3 GB."""

_NAME = "urn:tamias:export"
"""What the header of an HDT file calls its data set."""


def export_hdt(chunks: Iterable[bytes], out: BinaryIO, most: int = MAX_TRIPLES) -> int:
    """Write the triples of N-Quads without their graphs; return how many were left out.

    HDT has no triples about triples. It is made in memory: raises `TamiasError` for more than `most`.
    """
    try:
        return write_hdt((quad.triple for quad in read_quads(chunks)), out, name=_NAME, most=most).left_out
    except TooManyTriples:
        raise TamiasError(
            f"HDT is made in memory, and there are more than {most} triples; export another format"
        ) from None


def hdt_files(target: str | None, around: Surroundings) -> GraphSink:
    """Open the sink: files in the folder named, or in `hdt/` of the data directory.

    HDT cannot name graphs: those of one document are one.
    """
    return DocumentFiles(Path(target) if target else around.data / "hdt", {"hdt": ".hdt"}, lambda _: "hdt")
