"""The gates of the extractors, and running those whose gate is open on a page.

All gates are in one place, so that an extractor, and the parsers it needs, are loaded for the first page
that has it.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Final, NamedTuple

from tamias.analyse.chunks import RefusedError
from tamias.analyse.markup.page import MarkupPage
from tamias.model.finding import Finding, Problem
from tamias.plugins import load_all


class MarkupGate(NamedTuple):
    """A test of pages for an extractor: one of the words or patterns must be in the page in lower case."""

    reader: str
    """The module of the extractor; its `extract(page)` yields findings."""
    words: tuple[bytes, ...] = ()
    patterns: tuple[re.Pattern[bytes], ...] = ()
    attributes: tuple[bytes, ...] = ()
    """Attributes that all of these are in; a page with none of them is not searched."""
    pages: tuple[bool, ...] = (False,)
    """Whether the pages are XML: HTML by default."""


_GATES: Final = {
    "jsonld": MarkupGate("tamias.analyse.markup.jsonld", words=(b"ld+json",)),
    "rdfxml": MarkupGate(
        "tamias.analyse.markup.rdfxml", words=(b"http://www.w3.org/1999/02/22-rdf-syntax-ns#",), pages=(True,)
    ),
}


@cache
def gates() -> dict[str, MarkupGate]:
    """Return the gates of the core and of all features, by the name of the extractor."""
    return {**_GATES, **load_all("extractors")}


def is_open(extractor: str, markup: bytes) -> bool:
    """Return whether a page, by its markup in lower case, may have what an extractor reads.

    >>> is_open("jsonld", b"<script type=application/ld+json>"), is_open("jsonld", b"<p class='h-auto'>")
    (True, False)
    """
    _, words, patterns, attributes, _ = gates()[extractor]
    if attributes and not any(attribute in markup for attribute in attributes):
        return False
    for word in words:
        if word in markup:
            return True
    for pattern in patterns:  # noqa: SIM110 - every page passes here, and a generator costs more than a search
        if pattern.search(markup):
            return True
    return False


def extracted(page: MarkupPage) -> Iterator[Finding]:
    """Yield what all extractors find. The tree is built once, and only if one of them may find something."""
    here = [name for name, gate in gates().items() if page.is_xml in gate.pages]
    open_ones = [name for name in here if is_open(name, page.markup)]
    if not open_ones:
        return
    try:
        page.tree  # noqa: B018 - refused here, for all of them
    except RefusedError as refusal:
        yield Problem(str(refusal))
        return
    for name in open_ones:
        yield from import_module(gates()[name].reader).extract(page)


def extractors() -> list[str]:
    """Return the modules of all extractors."""
    return [gate.reader for gate in gates().values()]
