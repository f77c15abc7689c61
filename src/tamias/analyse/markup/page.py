"""A page as the extractors see it: its bytes, its address, and one tree for all of them."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, cast

from tamias.analyse.jsonld.contexts import Contexts
from tamias.analyse.limits import AnalyseLimits
from tamias.analyse.xml.entities import flat_entities

if TYPE_CHECKING:  # a page without structured data needs no tree
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


class MarkupPage:
    """One HTML, XHTML or XML document. The tree is made when the first extractor asks for it."""

    def __init__(
        self,
        data: bytes,
        *,
        url: str,
        base: str,
        media_type: str,
        entity_bytes: int = AnalyseLimits().entity_bytes,
        contexts: Contexts | None = None,
    ) -> None:
        """`data` is UTF-8; `base` is the page's own, `<base href>` applied."""
        self.data = data
        self.url = url
        self.base = base
        self.media_type = media_type
        self._entity_bytes = entity_bytes
        self.contexts = contexts
        """The remote JSON-LD contexts that are at hand."""

    @property
    def is_xhtml(self) -> bool:
        """Whether the page is XML, and is to be read as such."""
        return self.media_type == XHTML

    @property
    def is_xml(self) -> bool:
        """Whether it is XML that is no page: SVG, or of any other kind."""
        return self.media_type in XML

    @cached_property
    def tags(self) -> list[bytes]:
        """Every start tag that may say more than a common name, as it stands, without its end.

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
    def tree(self) -> "etree._Element":
        """The root element, by an HTML parser that mends everything or an XML parser that mends what it can.

        In XML names carry their namespace, `{http://www.w3.org/1999/xhtml}div`; in HTML they do not.
        Raises `RefusedError` for XML whose entities grow past the limit.
        """
        root = self._xml() if self.is_xhtml or self.is_xml else None
        return self._html(self.data) if root is None else root

    @cached_property
    def marked(self) -> "list[tuple[etree._Element, list[str]]]":
        """Every element that has attributes, in document order, with their names."""
        names_of = _names()
        return [(element, names) for element in self.tree.iter("*") if (names := names_of(element))]

    @cached_property
    def telling(self) -> "list[tuple[etree._Element, list[str]]]":
        """Those of them that have more than a look, a name and an address: a few of many."""
        every, names_of = self.tree.iter("*"), _names()
        return [(element, names) for element in every if not _LOOKS.issuperset(names := names_of(element))]

    def _html(self, data: bytes) -> "etree._Element":
        from lxml import etree

        parser = etree.HTMLParser(encoding="utf-8", huge_tree=False, no_network=True)
        root = _root(data, parser)
        return self._html(b"<html></html>") if root is None or root.tag != "html" else root

    def _xml(self) -> "etree._Element | None":
        from lxml import etree

        parser = etree.XMLParser(
            encoding="utf-8", recover=True, resolve_entities=True, no_network=True, huge_tree=False
        )
        flat = b"".join(flat_entities(iter([self.data]), self._entity_bytes))
        return _root(_NAMED.sub(_character, flat), parser)


def _names() -> "Callable[[etree._Element], list[str]]":
    """Gives the names of an element's attributes; for many elements, so no call of our own for each."""
    from lxml import etree

    return cast("Callable[[etree._Element], list[str]]", etree._Element.keys)


def _root(data: bytes, parser: "etree.HTMLParser | etree.XMLParser") -> "etree._Element | None":
    """None for what is empty to the parser."""
    from lxml import etree

    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        return None
    return root if isinstance(root, etree._Element) else None


def _character(entity: re.Match[bytes]) -> bytes:
    """The entities of XHTML's own document type, which is not fetched for them."""
    from html.entities import name2codepoint

    code = None if entity[1] in _PREDEFINED else name2codepoint.get(entity[1].decode())
    return entity[0] if code is None else b"&#%d;" % code
