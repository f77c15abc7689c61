"""A sink of HDT files, one for each document."""

from pathlib import Path

from tamias.sinks.files.document_files import DocumentFiles


class HdtFiles(DocumentFiles):
    """HDT cannot name graphs: those of one document are one. Nor can it say statements about statements."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {"hdt": ".hdt"}, lambda _: "hdt")
