"""The text of archived pages, for an index: one row for each, with what its server says about its use."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final

import msgspec

from tamias import __version__
from tamias.archive.reader.content import Content
from tamias.archive.reader.library import ArchiveReader
from tamias.content.charsets import encoding_of
from tamias.features.exports.ciff import export_ciff
from tamias.features.exports.holdings import Holding, holdings
from tamias.features.exports.usage_gate import UsageGate
from tamias.model.errors import UrlError, UsageError
from tamias.model.resource import Version
from tamias.model.url import resolve
from tamias.model.usage import reasons

MOST_BYTES: Final = 16 << 20
"""Of one page; what follows is not read."""
MOST_LINKS: Final = 10_000
MOST_HEADINGS: Final = 1_000
_HEADINGS: Final = "h1, h2, h3, h4, h5, h6"


class PageText(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a page that its readers see."""

    title: str | None
    language: str | None
    """As the page declares it, else as its words look."""
    headings: tuple[str, ...]
    text: str
    """The main content, without navigation and other boilerplate."""
    links: tuple[str, ...]


def page_text(body: bytes, encoding: str, url: str) -> PageText:
    """The text of a page. Raises `UsageError` where the library is not installed."""
    try:
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree
        from resiliparse.parse.lang import detect_fast
    except ImportError as error:
        raise UsageError(
            "text needs the library resiliparse; install it with: pip install 'tamias[text]'"
        ) from error

    tree = HTMLTree.parse_from_bytes(body[:MOST_BYTES], encoding=encoding, errors="replace")
    text = extract_plain_text(tree, main_content=True, alt_texts=False, noscript=False, form_fields=False)
    root = tree.document.query_selector("html")
    declared = (root.getattr("lang") or "").strip().split("-")[0].lower() if root else ""
    headings = [_words(each.text) for each in tree.document.query_selector_all(_HEADINGS)[:MOST_HEADINGS]]
    return PageText(
        title=_words(tree.title or "") or None,
        language=declared or (detect_fast(text)[0] if text.strip() else None),
        headings=tuple(each for each in headings if each),
        text=text,
        links=tuple(_links(tree, url)),
    )


def _links(tree: "object", url: str) -> list[str]:
    base = tree.document.query_selector("base[href]")  # type: ignore[attr-defined]
    found: dict[str, None] = {}
    start = _resolved(base.getattr("href"), url) or url if base else url
    for anchor in tree.document.query_selector_all("a[href]")[:MOST_LINKS]:  # type: ignore[attr-defined]
        if target := _resolved(anchor.getattr("href"), start):
            found[target] = None
    return list(found)


def _resolved(reference: str, base: str) -> str | None:
    try:
        return resolve(reference, base)
    except UrlError:
        return None


def _words(text: str) -> str:
    return " ".join(text.split())


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


def export_index(rows: Iterable[tuple[Any, ...]], out: BinaryIO) -> int:
    """Write the words of titles and texts as CIFF; return how many pages there were."""
    title, text = (list(PAGES).index(name) for name in ("title", "text"))
    documents = ((row[0], f"{row[title] or ''} {row[text]}") for row in rows)
    return export_ciff(documents, out, f"Titles and texts of pages, by Tamias {__version__}")


def page_rows(
    archive: ArchiveReader, urls: Sequence[str], gate: UsageGate, since: int, *, history: bool
) -> Iterator[tuple[Any, ...]]:
    """Yield a row for the current version of each page, or for all, of those captured since a time."""
    for holding in holdings(archive, urls, gate):
        for version in holding.versions:
            wanted = history or version.number == holding.resource.versions
            is_page = version.media_type in HTML and version.byte_size <= MOST_BYTES
            if wanted and is_page and version.captured_at >= since:
                yield _row(archive, gate, holding, version)


def _row(archive: ArchiveReader, gate: UsageGate, holding: Holding, version: Version) -> tuple[Any, ...]:
    url = holding.resource.url
    body = Content(holding.resource, version, archive.reader).bytes()
    page = page_text(body, encoding_of(body, version.declared_type), url)
    signals = gate.signals(version.capture)
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
