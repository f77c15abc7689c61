"""Notes what a catalogue says of its datasets: that they are there, and what their quality is judged by."""

from collections.abc import Sequence

from tamias.archive.sources.catalogues import note_datasets
from tamias.database.connect import Cursor
from tamias.model.dataset import Dataset


def describe(cursor: Cursor, portal: str, kind: str, harvest: int, datasets: Sequence[Dataset]) -> None:
    """Inside a transaction; the same news twice is harmless."""
    from tamias.archive.quality import note_told

    note_datasets(cursor, portal, kind, harvest, datasets)
    note_told(cursor, portal, datasets)
