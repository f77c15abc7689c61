"""Opens the archive where the common options say."""

from typing import TYPE_CHECKING

from tamias.cli.console.options import CommonOptions

if TYPE_CHECKING:
    from tamias.archive.reader.library import ArchiveReader


def archive_at(place: CommonOptions) -> "ArchiveReader":
    """The archive, for reading."""
    from tamias.archive.reader.library import ArchiveReader

    names = frozenset(place.settings().settings.filters.session_names)
    return ArchiveReader(place.db or place.data, data=place.data, session_names=names)
