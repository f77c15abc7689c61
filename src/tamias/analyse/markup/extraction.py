"""The gates of the extractors, and running those whose gate is open on a page.

All gates are in one place, so that an extractor, and the parsers it needs, are loaded for the first page
that has it.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Final, Protocol, cast

from tamias.analyse.limits import RefusedError
from tamias.analyse.markup.page import MarkupPage
from tamias.model.finding import Finding, Problem

Gate = tuple[tuple[bytes, ...], tuple[re.Pattern[bytes], ...]]
"""Words and patterns, one of which must stand there; in lower case, as the markup they are looked for in."""

LAYOUT: Final = frozenset(
    f"h-{height}" for height in ("auto", "full", "screen", "px", "fit", "min", "max", "svh", "lvh", "dvh")
)
"""Heights in a widespread style sheet, which look like roots of microformats."""

_HEIGHTS = "|".join(name.removeprefix("h-") for name in sorted(LAYOUT)).encode("ascii")

GATES: Final[dict[str, Gate]] = {
    "jsonld": ((b"ld+json",), ()),
    "microdata": ((b"itemscope",), ()),
    # Links alone count where `rel` is a CURIE or a term that all pages have; in XHTML+RDFa, whatever it is.
    "rdfa": (
        (),
        (
            re.compile(rb"property\s*+="),
            re.compile(rb"typeof\s*+="),
            re.compile(
                rb"""re[lv]\s*+=\s*+(?:["'][^"'<>]{0,200}?|[^\s"'<>]{0,200}?)(?::|license|describedby)"""
            ),
            re.compile(rb"\A.{0,1000}\+rdfa", re.DOTALL),
        ),
    ),
    "metas": (
        (),
        (
            re.compile(rb"""name\s*+=\s*+["']?+\s*+(?:dc(?:terms|t)?+[.:]|og:)"""),
            re.compile(rb"""rel\s*+=\s*+["']?+schema\."""),
        ),
    ),
    "microformats": (
        (
            *(b"vcard", b"vevent", b"hentry", b"hreview", b"hproduct", b"hrecipe", b"hresume"),
            *(b'"adr"', b'"geo"'),
            *(b'rel="license', b'rel="tag', b' tag"', b'rel="me'),
        ),
        (
            re.compile(
                rb"""h-(?<=[\s"'=]h-)(?!(?:%b)[\s"'>])(?:[a-z0-9]{1,40}-)?"""
                rb"""[a-z]{1,40}(?:-[a-z]{1,40}){0,9}[\s"'>]""" % _HEIGHTS
            ),
        ),
    ),
    "rdfxml": ((b"http://www.w3.org/1999/02/22-rdf-syntax-ns#",), ()),
}
"""By the name of the extractor's module."""

ON_PAGES: Final = ("jsonld", "microdata", "rdfa", "metas", "microformats")
IN_XML: Final = ("rdfa", "rdfxml")


def is_open(extractor: str, markup: bytes) -> bool:
    """Whether a page, by its markup in lower case, may hold what an extractor reads.

    >>> is_open("microdata", b"<div itemscope>"), is_open("microformats", b"<p class='h-auto'>")
    (True, False)
    """
    if extractor == "microformats" and not (b"class" in markup or b"rel" in markup):
        return False  # it has the longest list of words, and all of them stand in these attributes
    words, patterns = GATES[extractor]
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
    """What all extractors find. The tree is made once, and only where one of them may find something."""
    asked = [name for name in (IN_XML if page.is_xml else ON_PAGES) if is_open(name, page.markup)]
    if not asked:
        return
    try:
        page.tree  # noqa: B018 - refused here, for all of them
    except RefusedError as refusal:
        yield Problem(str(refusal))
        return
    for name in asked:
        reader = cast("MarkupReader", import_module(_module(name)))
        yield from reader.extract(page)


def extractors() -> list[str]:
    """The modules of all extractors."""
    return [_module(name) for name in GATES]


def _module(name: str) -> str:
    return f"{__package__}.{name}"
