"""Tags from what a page is and says of itself: its language, its media type, the structured data in it."""

import re
from collections.abc import Iterable

from tamias.model.document import Page

_HEAD = 8192
_MOST = 1 << 20
"""Bytes that are looked at."""
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_LANGUAGE = re.compile(rb"<html[^>]{0,1000}?\s(?:xml:)?lang\s*=\s*[\"']?([a-z]{2,3})\b", re.IGNORECASE)
_TOLD_LANGUAGE = re.compile(r"^\s*([a-z]{2,3})\b", re.IGNORECASE)
_MARKUP = {
    "json-ld": re.compile(rb"application/ld\+json", re.IGNORECASE),
    "microdata": re.compile(rb"<[^>]{0,2000}?\sitemscope\b", re.IGNORECASE),
    "rdfa": re.compile(rb"<[^>]{0,2000}?\s(?:typeof|property)\s*=", re.IGNORECASE),
    "microformats": re.compile(
        rb"class\s*=\s*[\"'][^\"'>]{0,500}?\b(?:h-[a-z]+|vcard|vevent|hentry)\b", re.IGNORECASE
    ),
}


class LanguageTagger:
    """`lang=de`: as the page says, or its server."""

    def tags(self, page: Page) -> Iterable[str]:
        """At most one."""
        found = _LANGUAGE.search(page.body[:_HEAD]) if page.media_type in _PAGES else None
        if found is not None:
            return [f"lang={found[1].decode().lower()}"]
        told = _TOLD_LANGUAGE.match(page.header("content-language") or "")
        return [f"lang={told[1].lower()}"] if told else []


class TypeTagger:
    """`type=text/html`: the media type as it was found."""

    def tags(self, page: Page) -> Iterable[str]:
        """At most one."""
        return [f"type={page.media_type}"] if page.media_type else []


class MarkupTagger:
    """`has=json-ld`, `has=microdata`, `has=rdfa`, `has=microformats`: structured data in a page."""

    def tags(self, page: Page) -> Iterable[str]:
        """One for each kind whose signs are there."""
        if page.media_type not in _PAGES:
            return []
        body = page.body[:_MOST]
        return [f"has={kind}" for kind, sign in _MARKUP.items() if sign.search(body)]
