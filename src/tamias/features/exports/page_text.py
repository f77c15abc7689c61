"""The clean text of a page, for an index: title, language, headings, main text and links.

Extracted by resiliparse, which is an optional part of the installation (`tamias[text]`).
"""

from typing import Final

import msgspec

from tamias.model.errors import UrlError, UsageError
from tamias.model.url import resolve

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
