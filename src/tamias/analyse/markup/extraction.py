"""Runs the extractors whose gate stands open on a page."""

from collections.abc import Iterator
from importlib import import_module
from typing import Protocol, cast

from tamias.analyse.limits import RefusedError
from tamias.analyse.markup.gates import GATES, IN_XML, ON_PAGES, is_open
from tamias.analyse.markup.page import MarkupPage
from tamias.model.finding import Finding, Problem


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
