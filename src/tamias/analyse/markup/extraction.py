"""Runs the extractors whose gate stands open on a page."""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from tamias.analyse.limits import RefusedError
from tamias.analyse.markup import jsonld, metas, microdata, microformats, rdfa, rdfxml
from tamias.analyse.markup.page import MarkupPage
from tamias.model.finding import Finding, Problem

Mark = bytes | re.Pattern[bytes]


class MarkupReader(Protocol):
    """A module of this package that reads one syntax."""

    @property
    def GATE(self) -> Sequence[Mark]: ...  # noqa: N802 - a constant of the module

    def extract(self, page: MarkupPage, /) -> Iterator[Finding]: ...


PAGE_EXTRACTORS: tuple[MarkupReader, ...] = (jsonld, microdata, rdfa, metas, microformats)
XML_EXTRACTORS: tuple[MarkupReader, ...] = (rdfa, rdfxml)


def extracted(page: MarkupPage) -> Iterator[Finding]:
    """What all extractors find. The tree is made once, and only where one of them may find something."""
    asked = [
        extractor
        for extractor in (XML_EXTRACTORS if page.is_xml else PAGE_EXTRACTORS)
        if any(_stands(mark, page.markup) for mark in extractor.GATE)
    ]
    if not asked:
        return
    try:
        page.tree  # noqa: B018 - refused here, for all of them
    except RefusedError as refusal:
        yield Problem(str(refusal))
        return
    for extractor in asked:
        yield from extractor.extract(page)


def _stands(mark: Mark, markup: bytes) -> bool:
    return mark in markup if isinstance(mark, bytes) else mark.search(markup) is not None
