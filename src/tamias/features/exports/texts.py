"""The text of archived pages, for an index: one row for each, with what its server says about its use."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from tamias import __version__
from tamias.archive.reader.content import Content
from tamias.archive.reader.library import ArchiveReader
from tamias.content.charsets import encoding_of
from tamias.features.exports.ciff import export_ciff
from tamias.features.exports.holdings import Holding, holdings
from tamias.features.exports.page_text import MOST_BYTES, page_text
from tamias.features.exports.parquet import export_table
from tamias.features.exports.usage_gate import UsageGate
from tamias.model.resource import Version
from tamias.model.usage import reasons

PAGES: Final = {
    "url": "VARCHAR",
    "version": "INTEGER",
    "captured_at": "TIMESTAMPTZ",
    "sha256": "VARCHAR",
    "media_type": "VARCHAR",
    "title": "VARCHAR",
    "language": "VARCHAR",
    "headings": "VARCHAR[]",
    "text": "VARCHAR",
    "links": "VARCHAR[]",
    "signals": "VARCHAR[]",
    "not_permitted": "VARCHAR[]",
}
"""The columns of `pages.parquet`."""
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})


class PageTexts:
    """The pages of an archive, all or those named, that were captured since a time."""

    def __init__(self, archive: ArchiveReader, urls: Sequence[str], gate: UsageGate, since: int = 0) -> None:
        self._archive = archive
        self._urls = urls
        self._gate = gate
        self._since = since

    def export_table(self, folder: Path, *, history: bool = False) -> int:
        """Writes `pages.parquet`; returns how many pages there were."""
        return export_table(folder, "pages", PAGES, self._rows(history=history))

    def export_index(self, out: BinaryIO) -> int:
        """Writes the words of titles and texts as CIFF; returns how many pages there were."""
        title, text = (list(PAGES).index(name) for name in ("title", "text"))
        documents = ((row[0], f"{row[title] or ''} {row[text]}") for row in self._rows(history=False))
        return export_ciff(documents, out, f"Titles and texts of pages, by Tamias {__version__}")

    def _rows(self, *, history: bool) -> Iterator[tuple[Any, ...]]:
        """A row for the current version of each page, or for all versions."""
        for holding in holdings(self._archive, self._urls, self._gate):
            for version in holding.versions:
                wanted = history or version.number == holding.resource.versions
                is_page = version.media_type in HTML and version.byte_size <= MOST_BYTES
                if wanted and is_page and version.captured_at >= self._since:
                    yield self._row(holding, version)

    def _row(self, holding: Holding, version: Version) -> tuple[Any, ...]:
        url = holding.resource.url
        body = Content(holding.resource, version, self._archive.reader).bytes()
        page = page_text(body, encoding_of(body, version.declared_type), url)
        signals = self._gate.signals(version.capture)
        return (
            url,
            version.number,
            version.captured_at,
            version.sha256,
            version.media_type,
            page.title,
            page.language,
            list(page.headings),
            page.text,
            list(page.links),
            [f"{each.source} {each.key}: {each.value}" for each in signals],
            [f"{word} ({because})" for word, because in reasons(signals)],
        )
