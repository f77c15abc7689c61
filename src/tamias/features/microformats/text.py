"""The text and the HTML of an element, as the microformats2 parsing rules want them.

Walks without recursion, and counts what it hands out: elements nested in each other repeat their text.
"""

from collections.abc import Iterator
from typing import cast

from lxml import etree

from tamias.features.markup.statements import resolved

HTML_SPACE = " \t\n\f\r"
_COST = 4
"""Characters that a piece of text may as well have, by what finding it costs."""
_UNREAD = frozenset({"script", "style", "template"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_RAW = frozenset({"script", "style", "noscript", "iframe", "noembed", "noframes", "xmp", "plaintext"})
_ADDRESSES = frozenset({"href", "src", "cite", "data", "poster"})


class RepeatedTextError(Exception):
    """A page whose microformats repeat its text beyond measure."""


class TextSource:
    """A converter of the elements of a page into text, with a limit on what it takes."""

    def __init__(self, base: str, room: int) -> None:
        self.base = base
        self._room = room

    def spend(self, amount: int) -> None:
        """Raises `RepeatedTextError` where there is no room left."""
        self._room -= amount
        if self._room < 0:
            raise RepeatedTextError

    def address(self, reference: str) -> str:
        """A reference of the page made absolute."""
        return resolved(reference.strip(HTML_SPACE), self.base)

    def text(self, element: etree._Element) -> str:
        """Return the trimmed text of an element, with images by their `alt` or else their URL."""
        return self._counted(self._texts(element))

    def _texts(self, element: etree._Element) -> Iterator[str]:
        walk = etree.iterwalk(element, events=("start", "end", "comment", "pi"))
        for event, node in walk:
            if event == "start":
                name = tag(node)
                if name in _UNREAD:
                    walk.skip_subtree()
                elif name == "img" and node is not element:
                    yield self._image_text(node)
                else:
                    yield node.text or ""
            elif node is not element:
                yield node.tail or ""

    def _image_text(self, image: etree._Element) -> str:
        alt, address = image.get("alt"), image.get("src")
        if alt is not None:
            return alt
        return f" {self.address(address)} " if address is not None else ""

    def inner_html(self, element: etree._Element) -> str:
        """Return the trimmed HTML inside an element, with absolute URLs."""
        return self._counted(self._markup(element))

    def _counted(self, pieces: Iterator[str]) -> str:
        found = list(pieces)
        text = "".join(found)
        self.spend(len(text) + _COST * len(found))
        return text.strip(HTML_SPACE)

    def _markup(self, element: etree._Element) -> Iterator[str]:
        for event, node in etree.iterwalk(element, events=("start", "end", "comment")):
            if event == "start":
                yield from self._opening(node, is_root=node is element)
            elif event == "comment":
                yield f"<!--{node.text or ''}-->{_escaped(node.tail)}"
            elif node is not element:
                end = "" if tag(node) in _VOID else f"</{tag(node)}>"
                yield f"{end}{_escaped(node.tail)}"

    def _opening(self, node: etree._Element, *, is_root: bool) -> Iterator[str]:
        if not is_root:
            attributes = [(str(name).rpartition("}")[2], str(value)) for name, value in node.attrib.items()]
            written = (f' {name}="{self._attribute(name, value)}"' for name, value in attributes)
            yield f"<{tag(node)}{''.join(written)}>"
        yield (node.text or "") if tag(node) in _RAW else _escaped(node.text)

    def _attribute(self, name: str, value: str) -> str:
        value = self.address(value) if name in _ADDRESSES else value
        return value.replace("&", "&amp;").replace("\xa0", "&nbsp;").replace('"', "&quot;")


def tag(element: etree._Element) -> str:
    """The element's name without a namespace; empty for what is no element.

    >>> tag(etree.fromstring('<p xmlns="http://www.w3.org/1999/xhtml"/>'))
    'p'
    """
    name = element.tag
    return name.rpartition("}")[2] if isinstance(name, str) else ""


def children(element: etree._Element) -> list[etree._Element]:
    """The child elements."""
    return [child for child in element if isinstance(child.tag, str)]


def matching(path: etree.XPath, tree: etree._Element) -> list[etree._Element]:
    """The elements that the path, which must choose elements, finds."""
    return cast("list[etree._Element]", path(tree))


def words(value: str | None) -> list[str]:
    """The words of an attribute such as `class`, which only HTML's own space separates.

    >>> words("h-card\\tp-author"), words(None)
    (['h-card', 'p-author'], [])
    """
    if not value:
        return []
    return [word for word in value.translate(_TO_SPACE).split(" ") if word]


_TO_SPACE = str.maketrans("\t\n\f\r", "    ")


def _escaped(text: str | None) -> str:
    if not text:
        return ""
    return text.replace("&", "&amp;").replace("\xa0", "&nbsp;").replace("<", "&lt;").replace(">", "&gt;")
