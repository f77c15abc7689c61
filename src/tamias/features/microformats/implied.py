"""Implied properties of an item: name, photo and URL from the form of its element."""

from lxml import etree

from tamias.features.microformats.names import root_of
from tamias.features.microformats.text import HTML_SPACE, TextSource, children, tag
from tamias.features.microformats.values import Value, image

_NAMING = {"img": "alt", "area": "alt", "abbr": "title"}


def name(element: etree._Element, source: TextSource) -> str:
    """The `alt` or `title` of the element, of its only child, or of that one's only child; else its text."""
    own = _naming(element)
    if own is None:
        for holder in _holders(element):
            child = _only_child(holder)
            own = None if child is None else (_naming(child) or None)
            if own is not None:
                break
    return source.text(element) if own is None else own.strip(HTML_SPACE)


def photo(element: etree._Element, source: TextSource) -> Value | None:
    """The image that the element is, or that stands alone in it."""
    for shown in (element, *_alone(element, {"img": "src", "object": "data"})):
        if tag(shown) == "img" and shown.get("src") is not None:
            return image(shown, source)
        if tag(shown) == "object" and shown.get("data") is not None:
            return source.address(shown.get("data") or "")
    return None


def url(element: etree._Element, source: TextSource) -> str | None:
    """The address that the element links to, or the one link that stands alone in it."""
    for link in (element, *_alone(element, {"a": "href", "area": "href"})):
        if tag(link) in {"a", "area"} and link.get("href") is not None:
            return source.address(link.get("href") or "")
    return None


def _naming(element: etree._Element) -> str | None:
    attribute = _NAMING.get(tag(element))
    return element.get(attribute) if attribute else None


def _holders(element: etree._Element) -> list[etree._Element]:
    """The element, and its only child where that is no item."""
    child = _only_child(element)
    return [element] if child is None else [element, child]


def _only_child(element: etree._Element) -> etree._Element | None:
    below = children(element)
    return below[0] if len(below) == 1 and root_of(below[0]) is None else None


def _alone(element: etree._Element, attributes: dict[str, str]) -> list[etree._Element]:
    """Elements of these tags, with their attribute, that are the only ones of their tag in a holder."""
    found = []
    for holder in _holders(element):
        below = children(holder)
        for kind, attribute in attributes.items():
            same = [child for child in below if tag(child) == kind]
            if len(same) == 1 and same[0].get(attribute) is not None and root_of(same[0]) is None:
                found.append(same[0])
    return found
