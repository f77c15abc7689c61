"""A page as the extractors see it: its bytes, its address, and one tree for all of them; and their gates.

All gates are in one place, so that an extractor, and the parsers it needs, are loaded for the first page
that has it.
"""

import re
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tamias.analyse.chunks import RefusedError
from tamias.analyse.jsonld.contexts import Contexts
from tamias.analyse.xml.entities import flat_entities
from tamias.model.document import DocumentBudget
from tamias.model.finding import Finding, Problem
from tamias.plugins import load_all
from tamias.settings import AnalyseSettings

if TYPE_CHECKING:
    from lxml import etree

XHTML = "application/xhtml+xml"
XML = frozenset({"application/xml", "image/svg+xml"})

_DOCTYPE = re.compile(rb"(?i)<!DOCTYPE[^>\[]*")
_PROLOG = 4096
_DECLARATION = 1000
_TELLING_TAG = re.compile(rb"""<[A-Za-z][A-Za-z0-9]*+(?!>)[^"'>]*+(?:(?:"[^"]*+"|'[^']*+')[^"'>]*+)*+""")
_NAMED = re.compile(rb"&([A-Za-z][A-Za-z0-9]+);")
_LOOKS = frozenset(
    {"class", "id", "style", "href", "src", "alt", "title", "width", "height", "type", "target"}
)
_PREDEFINED = frozenset({b"lt", b"gt", b"amp", b"quot", b"apos"})
_EMPTY_RAW_TEXT = re.compile(rb"<(script|style|title|textarea|iframe|noscript)\b([^<>]*)/>")
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_NO_NAME = re.compile(r"[^\w:.-]")
"""Characters that no text, and no name, of an lxml tree may have."""


class MarkupPage:
    """An HTML, XHTML or XML document. The tree is built when the first extractor needs it."""

    def __init__(
        self,
        data: bytes,
        *,
        url: str,
        base: str,
        media_type: str,
        entity_bytes: int = AnalyseSettings().entity_bytes,
        contexts: Contexts | None = None,
        budget: DocumentBudget | None = None,
    ) -> None:
        """`data` is UTF-8; `base` is the page's own, `<base href>` applied."""
        self.budget = budget or DocumentBudget(len(data))
        self.data = data
        self.url = url
        self.base = base
        self.media_type = media_type
        self._entity_bytes = entity_bytes
        self.contexts = contexts
        """The remote JSON-LD contexts that are at hand."""

    def line_of(self, text: str) -> int | None:
        """Return the line in which a text of the page begins; None where it is not there as it is."""
        data = text.encode("utf-8", "replace")
        at = max(self.data.find(data), self.data.find(data.replace(b"\n", b"\r\n")))
        return self.data.count(b"\n", 0, at) + 1 if at >= 0 else None

    @property
    def is_xhtml(self) -> bool:
        """Return whether the page is XHTML that is read as XML."""
        return self.media_type == XHTML

    @property
    def is_xml(self) -> bool:
        """Return whether it is XML that is no page, such as SVG."""
        return self.media_type in XML

    @cached_property
    def tags(self) -> list[bytes]:
        """Return every start tag that may have more than a common name, without its end.

        These are the small part of a page that holds its markup.
        """
        return _TELLING_TAG.findall(self.data)

    @cached_property
    def markup(self) -> bytes:
        """The beginning of the page and all its tags, in lower case: where the gates are looked for."""
        return b" ".join((self.data[:_DECLARATION], *self.tags)).lower()

    @cached_property
    def doctype(self) -> str:
        """The document type declaration without its internal subset; empty where there is none."""
        found = _DOCTYPE.search(self.data[:_PROLOG])
        return found[0].decode("utf-8", "replace") if found else ""

    @cached_property
    def parsed(self) -> LexborHTMLParser:
        """The page as the HTML standard parses it."""
        # XML may end at once what HTML takes for the beginning of raw text.
        data = _EMPTY_RAW_TEXT.sub(rb"<\1\2></\1>", self.data) if self.is_xhtml else self.data
        return LexborHTMLParser(data)

    @cached_property
    def tree(self) -> "etree._Element":
        """The root element: of the parsed page, or by an XML parser that mends what it can.

        In XML names carry their namespace, `{http://www.w3.org/1999/xhtml}div`; in HTML they do not.
        Raises `RefusedError` for XML whose entities grow past the limit.
        """
        root = self._xml() if self.is_xhtml or self.is_xml else None
        return _copy(self.parsed) if root is None else root

    @cached_property
    def marked(self) -> "list[tuple[etree._Element, list[str]]]":
        """Return every element that has attributes, in document order, with their names."""
        every = self.tree.iter("*")
        return [(element, names) for element in every if (names := cast("list[str]", element.keys()))]

    @cached_property
    def telling(self) -> "list[tuple[etree._Element, list[str]]]":
        """Return the marked elements that have more than class, style, id and URL: a few of many."""
        return [(element, names) for element, names in self.marked if not _LOOKS.issuperset(names)]

    def _xml(self) -> "etree._Element | None":
        from lxml import etree

        parser = etree.XMLParser(
            encoding="utf-8", recover=True, resolve_entities=True, no_network=True, huge_tree=False
        )
        flat = b"".join(flat_entities(iter([self.data]), self._entity_bytes))
        try:
            root = etree.fromstring(_NAMED.sub(_character, flat), parser)
        except etree.XMLSyntaxError:
            return None
        return root if isinstance(root, etree._Element) else None


def _copy(page: LexborHTMLParser) -> "etree._Element":
    """Copy a parsed page into an lxml tree; characters that lxml refuses are replaced."""
    from lxml import etree

    source = page.root
    root = etree.HTMLParser().makeelement("html", _clean(source.attributes) if source is not None else {})
    waiting = [(source, root)] if source is not None else []
    while waiting:
        node, parent = waiting.pop()
        child: LexborNode | None = node.first_child
        last: etree._Element | None = None
        while child is not None:
            tag = child.tag or "-"
            if tag == "-text":
                text = _NO_TEXT.sub(_replacement, child.text_content or "")
                if last is None:
                    parent.text = text
                else:
                    last.tail = text
            elif tag == "-comment":
                text = (child.html or "")[len("<!--") : -len("-->")].replace("--", "- -")
                last = etree.Comment(_NO_TEXT.sub(_replacement, text + " " * text.endswith("-")))
                parent.append(last)
            elif tag[0] != "-":
                last = _append_element(parent, tag, child.attributes)
                waiting.append((child, last))
            child = child.next
    return root


def _append_element(
    parent: "etree._Element", tag: str, attributes: dict[str, str | None]
) -> "etree._Element":
    from lxml import etree

    try:
        return etree.SubElement(parent, tag, {name: attributes[name] or "" for name in attributes})
    except ValueError:
        return etree.SubElement(parent, _NO_NAME.sub("", tag), _clean(attributes))


def _clean(attributes: dict[str, str | None]) -> dict[str, str]:
    named = ((_NO_NAME.sub("", name), value or "") for name, value in attributes.items())
    return {name: _NO_TEXT.sub(_replacement, value) for name, value in named if name}


def _replacement(found: re.Match[str]) -> str:
    """Return what stands for a refused character: a form feed is white space in HTML."""
    return " " if found[0] == "\f" else "\ufffd"


def _character(entity: re.Match[bytes]) -> bytes:
    """The entities of XHTML's own document type, which is not fetched for them."""
    from html.entities import name2codepoint

    code = None if entity[1] in _PREDEFINED else name2codepoint.get(entity[1].decode())
    return entity[0] if code is None else b"&#%d;" % code


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
