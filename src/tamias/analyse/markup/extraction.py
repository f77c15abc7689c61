"""The gates of the extractors, and running those whose gate is open on a page.

All gates are in one place, so that an extractor, and the parsers it needs, are loaded for the first page
that has it.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Final, NamedTuple, Protocol, cast

from tamias.analyse.limits import RefusedError
from tamias.analyse.markup.page import MarkupPage
from tamias.model.finding import Finding, Problem
from tamias.plugins import load_all


class MarkupGate(NamedTuple):
    """A test of pages for an extractor: one of the words or patterns must be in the page in lower case."""

    reader: str
    """The module of the extractor, a `MarkupReader`."""
    words: tuple[bytes, ...] = ()
    patterns: tuple[re.Pattern[bytes], ...] = ()
    attributes: tuple[bytes, ...] = ()
    """Attributes that all of these are in; a page with none of them is not searched."""


_READERS = "tamias.analyse.markup"
_GATES: Final = {
    "jsonld": MarkupGate(f"{_READERS}.jsonld", words=(b"ld+json",)),
    "microdata": MarkupGate(f"{_READERS}.microdata", words=(b"itemscope",)),
    # Links alone count where `rel` is a CURIE or a term that all pages have; in XHTML+RDFa, whatever it is.
    "rdfa": MarkupGate(
        f"{_READERS}.rdfa",
        patterns=(
            re.compile(rb"property\s*+="),
            re.compile(rb"typeof\s*+="),
            re.compile(
                rb"""re[lv]\s*+=\s*+(?:["'][^"'<>]{0,200}?|[^\s"'<>]{0,200}?)(?::|license|describedby)"""
            ),
            re.compile(rb"\A.{0,1000}\+rdfa", re.DOTALL),
        ),
    ),
    "metas": MarkupGate(
        f"{_READERS}.metas",
        patterns=(
            re.compile(rb"""name\s*+=\s*+["']?+\s*+(?:dc(?:terms|t)?+[.:]|og:)"""),
            re.compile(rb"""rel\s*+=\s*+["']?+schema\."""),
        ),
    ),
    "rdfxml": MarkupGate(f"{_READERS}.rdfxml", words=(b"http://www.w3.org/1999/02/22-rdf-syntax-ns#",)),
}
_IN_XML: Final = ("rdfa", "rdfxml")


@cache
def gates() -> dict[str, MarkupGate]:
    """Return the gates of the core and of all features, by the name of the extractor."""
    return {**_GATES, **load_all("extractors")}


@cache
def _names(is_xml: bool) -> tuple[str, ...]:
    """Return the extractors for XML, or for pages of HTML."""
    return _IN_XML if is_xml else tuple(name for name in gates() if name != "rdfxml")


def is_open(extractor: str, markup: bytes) -> bool:
    """Return whether a page, by its markup in lower case, may have what an extractor reads.

    >>> is_open("microdata", b"<div itemscope>"), is_open("jsonld", b"<p class='h-auto'>")
    (True, False)
    """
    _, words, patterns, attributes = gates()[extractor]
    if attributes and not any(attribute in markup for attribute in attributes):
        return False
    for word in words:
        if word in markup:
            return True
    for pattern in patterns:  # noqa: SIM110 - every page passes here, and a generator costs more than a search
        if pattern.search(markup):
            return True
    return False


class MarkupReader(Protocol):
    """A module of this package that reads one syntax."""

    def extract(self, page: MarkupPage, /) -> Iterator[Finding]: ...


def extracted(page: MarkupPage) -> Iterator[Finding]:
    """Yield what all extractors find. The tree is built once, and only if one of them may find something."""
    open_ones = [name for name in _names(page.is_xml) if is_open(name, page.markup)]
    if not open_ones:
        return
    try:
        page.tree  # noqa: B018 - refused here, for all of them
    except RefusedError as refusal:
        yield Problem(str(refusal))
        return
    for name in open_ones:
        reader = cast("MarkupReader", import_module(gates()[name].reader))
        yield from reader.extract(page)


def extractors() -> list[str]:
    """Return the modules of all extractors."""
    return [gate.reader for gate in gates().values()]
