"""The value of a property: text, address, date or HTML, from an element and its `value` parts.

Name, photo and URL of an item are implied by the form of its element.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from lxml import etree

from tamias.features.microformats.names import (
    HTML_SPACE,
    Root,
    TextSource,
    children,
    properties_of,
    root_of,
    tag,
    words,
)

_DATE = re.compile(r"\d{4}-(?:\d{2}-\d{2}|\d{3}|\d{2})")
_ZONE = re.compile(r"(?:[zZ]|[+-]\d{1,2}:?(?:\d{2})?)")
_TIME = re.compile(
    r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}(?:\.\d{1,9})?))?\s{0,3}([aApP]\.?[mM]\.?)?\s{0,3}"
    r"([zZ]|[+-]\d{1,2}:?(?:\d{2})?)?"
)
_BOTH = re.compile(rf"{_DATE.pattern}[T ]{_TIME.pattern}")


def joined(pieces: Iterable[str]) -> str:
    """Date, time and zone as one text; the first of each counts. Empty where there is none of them.

    >>> joined(["2009-06-26", "7:00pm"]), joined(["19:00", "-08:00", "2009-06-26"]), joined(["7pm"])
    ('2009-06-26 19:00', '2009-06-26 19:00-0800', '19:00')
    """
    date = time = zone = ""
    for piece in (each.strip() for each in pieces):
        if not (date or time) and _BOTH.fullmatch(piece):
            return piece
        if _DATE.fullmatch(piece):
            date = date or piece
        elif _ZONE.fullmatch(piece):
            zone = zone or _zone(piece)
        elif not time:
            time, own_zone = _time(piece)
            zone = zone or own_zone
    if not time:
        return date
    return f"{date}{' ' if date else ''}{time}{zone}"


def date_of(value: str) -> str:
    """The date that a value begins with, or nothing.

    >>> date_of("2009-06-26 19:00"), date_of("19:00")
    ('2009-06-26', '')
    """
    found = _DATE.match(value)
    return found[0] if found else ""


def is_time(value: str) -> bool:
    """Return whether the value is a time of the day without a date."""
    return ":" in value and _TIME.fullmatch(value) is not None


def _time(text: str) -> tuple[str, str]:
    found = _TIME.fullmatch(text.strip())
    if found is None or not (found[2] or found[4]):
        return "", ""
    hour = int(found[1])
    if found[4]:
        hour = hour % 12 + (12 if found[4][0] in "pP" else 0)
    seconds = f":{found[3]}" if found[3] else ""
    return f"{hour:02}:{found[2] or '00'}{seconds}", _zone(found[5] or "")


def _zone(text: str) -> str:
    return text.upper().replace(":", "")


Value = str | dict[str, Any]
"""A text, or as in the microformats' JSON an image with its `alt`, content with its `html`, or an item."""


_NAMED = {"abbr": "title", "data": "value", "input": "value"}
_LINKED = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("img", "audio", "video", "source", "iframe"), "src"),
    "object": "data",
}
_SAID = {
    "p": {**_NAMED, "link": "title", "img": "alt", "area": "alt"},
    "u": _NAMED,
    "dt": {**_NAMED, **dict.fromkeys(("time", "ins", "del"), "datetime")},
}
"""The attributes that stand for elements of a tag, by the prefix of the property."""


def read_value(prefix: str, element: etree._Element, source: TextSource, item: Root) -> Value:
    """Return the value of an element as a property of `item` with this prefix."""
    if prefix == "e":
        return {"value": source.text(element), "html": source.inner_html(element)}
    if prefix == "u":
        return _address(element, source, item)
    return _phrase(prefix, element, source, item)


def image(element: etree._Element, source: TextSource) -> Value:
    """The address of an image, with its `alt` where it has one."""
    where, alt = source.address(element.get("src") or ""), element.get("alt")
    return where if alt is None else {"value": where, "alt": alt}


def _phrase(prefix: str, element: etree._Element, source: TextSource, item: Root) -> str:
    """The `value` parts, what an attribute says, or the text; pieces of a date or time are joined."""
    parts = list(_parts(element, item))
    if prefix == "dt":
        together = joined(_piece(part, source) for part in parts)
        if together:
            return together
    elif parts:
        return "".join(_part(part, source) for part in parts)
    said = _said(element, _SAID[prefix])
    return source.text(element) if said is None else said


def _address(element: etree._Element, source: TextSource, item: Root) -> Value:
    """An address made absolute. In version 1 an image has no `alt` of its own."""
    if tag(element) == "img" and not item.classic and element.get("src") is not None:
        return image(element, source)
    found = _said(element, _LINKED)
    if found is None and tag(element) == "video":
        found = element.get("poster")
    return source.address(_phrase("u", element, source, item) if found is None else found)


def _parts(element: etree._Element, item: Root) -> Iterator[etree._Element]:
    """The elements marked as `value` or `value-title` below this one, not those inside another property."""
    waiting = children(element)[::-1]
    while waiting:
        child = waiting.pop()
        classes = words(child.get("class"))
        if tag(child) == "template":
            continue
        if "value" in classes or "value-title" in classes:
            yield child
        elif not (classes and (root_of(child, item) or properties_of(child, item))):
            waiting.extend(children(child)[::-1])


def _part(part: etree._Element, source: TextSource) -> str:
    if "value" not in words(part.get("class")):
        return part.get("title") or ""
    said = _said(part, {"img": "alt", "area": "alt", "data": "value", "abbr": "title"})
    return source.text(part) if said is None else said


def _piece(part: etree._Element, source: TextSource) -> str:
    """A part of a date, which may also be told by `datetime`."""
    said = _said(part, {"time": "datetime", "ins": "datetime", "del": "datetime"})
    return _part(part, source) if said is None or "value" not in words(part.get("class")) else said


def _said(element: etree._Element, attributes: dict[str, str]) -> str | None:
    """Return the value of the attribute that stands for elements of this tag."""
    attribute = attributes.get(tag(element))
    return element.get(attribute) if attribute else None


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
