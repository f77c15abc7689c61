"""A sink of Turtle files, one for each document; TriG for a document that has other graphs than its own."""

from pathlib import Path

from tamias.sinks.export import ExportFormat
from tamias.sinks.files.document_files import DocumentFiles


class TurtleFiles(DocumentFiles):
    """Turtle cannot name graphs: it is used where the document's URL says the only one there is."""

    def __init__(self, folder: Path, *, compress: bool = False) -> None:
        super().__init__(folder, {"turtle": ".ttl", "trig": ".trig"}, _turtle_or_trig, compress=compress)


def _turtle_or_trig(own: bool) -> ExportFormat:
    return "turtle" if own else "trig"
