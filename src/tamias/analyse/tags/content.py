"""Tags of pages: from what a page says of itself, from patterns of URLs, and from tagged pages like it."""

import re
from collections.abc import Iterable
from hashlib import blake2b

from tamias.model.document import Page
from tamias.model.errors import ConfigError

_HEAD = 8192
_MOST = 1 << 20
"""Bytes that are looked at."""
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_LANGUAGE = re.compile(rb"<html[^>]{0,1000}?\s(?:xml:)?lang\s*=\s*[\"']?([a-z]{2,3})\b", re.IGNORECASE)
_DECLARED_LANGUAGE = re.compile(r"^\s*([a-z]{2,3})\b", re.IGNORECASE)
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
        """Return at most one tag."""
        found = _LANGUAGE.search(page.body[:_HEAD]) if page.media_type in _PAGES else None
        if found is not None:
            return [f"lang={found[1].decode().lower()}"]
        declared = _DECLARED_LANGUAGE.match(page.header("content-language") or "")
        return [f"lang={declared[1].lower()}"] if declared else []


class TypeTagger:
    """`type=text/html`: the media type as it was found."""

    def tags(self, page: Page) -> Iterable[str]:
        """Return at most one tag."""
        return [f"type={page.media_type}"] if page.media_type else []


class MarkupTagger:
    """`has=json-ld`, `has=microdata`, `has=rdfa`, `has=microformats`: structured data in a page."""

    def tags(self, page: Page) -> Iterable[str]:
        """Return a tag for each kind whose signs are there."""
        if page.media_type not in _PAGES:
            return []
        body = page.body[:_MOST]
        return [f"has={kind}" for kind, sign in _MARKUP.items() if sign.search(body)]


NEAR = 3
"""Two pages are almost the same when their numbers differ in at most so many bits."""
_FEWEST_WORDS = 20
_MOST_WORDS = 20_000
_UNSEEN = re.compile(rb"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"\w+")


def page_hash(body: bytes) -> int | None:
    """The number of a page, signed; None where there are too few words to tell pages apart."""
    import html

    text = html.unescape(_UNSEEN.sub(b" ", body).decode("utf-8", "replace")).lower()
    words = [found[0] for found in _WORD.finditer(text)][:_MOST_WORDS]
    return None if len(words) < _FEWEST_WORDS else simhash(words)


def simhash(words: list[str]) -> int:
    """Return a hash for whose bits each three words in a row vote."""
    rows = {" ".join(words[at : at + 3]) for at in range(max(1, len(words) - 2))}
    hashes = b"".join(blake2b(row.encode(), digest_size=8).digest() for row in rows)
    import numpy as np

    bits = np.unpackbits(np.frombuffer(hashes, dtype=np.uint8)).reshape(len(rows), 64)
    votes = bits.sum(axis=0, dtype=np.int64) * 2 > len(rows)
    return int.from_bytes(np.packbits(votes).tobytes(), "big", signed=True)


def quarters(number: int) -> list[int]:
    """The four quarters of the bits, each with its place: numbers that are near share one.

    >>> len(set(quarters(0)))
    4
    """
    unsigned = number & (2**64 - 1)
    return [place << 16 | (unsigned >> 16 * place) & 0xFFFF for place in range(4)]


def distance(one: int, other: int) -> int:
    """Return in how many bits two numbers differ.

    >>> distance(-1, -2)
    1
    """
    return ((one ^ other) & (2**64 - 1)).bit_count()


class TagRules:
    """The rules of the setting `tags.rules`, each written as `PATTERN TAG`."""

    def __init__(self, rules: Iterable[str]) -> None:
        self._rules = [_rule(text) for text in rules]

    def added(self, url: str, tags: tuple[str, ...]) -> tuple[str, ...]:
        """The tags of a URL, those of the rules added.

        >>> TagRules([r"/sitemap[^/]*[.]xml$ sitemap"]).added("http://a.example/sitemap-1.xml", ("at",))
        ('at', 'sitemap')
        """
        if not self._rules:
            return tags
        declared = [tag for pattern, tag in self._rules if tag not in tags and pattern.search(url)]
        return (*tags, *dict.fromkeys(declared)) if declared else tags


def _rule(text: str) -> tuple[re.Pattern[str], str]:
    pattern, _, tag = text.strip().rpartition(" ")
    if not pattern or not tag:
        raise ConfigError(
            f"'{text}' in tags.rules is not a rule; write a regular expression, a space, and a tag"
        )
    try:
        return re.compile(pattern.strip()), tag
    except re.error as error:
        raise ConfigError(f"'{pattern}' in tags.rules is not a valid regular expression: {error}") from error
