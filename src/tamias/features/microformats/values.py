"""The value of a property: text, address, date or HTML, from an element and its `value` parts.

Name, photo and URL of an item are implied by the form of its element.

Class names are told by their form (version 2) or by a table (version 1). The text and the HTML of an element
are as the microformats2 parsing rules want them: walked without recursion, and what is handed out is
counted, since elements nested in each other repeat their text.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, cast

from lxml import etree

from tamias.features.markup.statements import resolved
from tamias.features.microformats.gate import LAYOUT

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


_NAME = re.compile(r"(h|p|u|dt|e)-((?:[a-z0-9]+-)?[a-z]+(?:-[a-z]+)*)")


class Property(NamedTuple):
    """A property as its class names it: `p-name` is ("p", "name")."""

    prefix: str
    name: str


class Root(NamedTuple):
    """The class names that make an element an item."""

    types: tuple[str, ...]
    classic: tuple[str, ...]
    """The class names of version 1 it is made from; none for version 2."""


_ROOTS = {
    "adr": "h-adr",
    "geo": "h-geo",
    "hentry": "h-entry",
    "hfeed": "h-feed",
    "hnews": "h-news",
    "hproduct": "h-product",
    "hrecipe": "h-recipe",
    "hresume": "h-resume",
    "hreview": "h-review",
    "hreview-aggregate": "h-review-aggregate",
    "item": "h-item",
    "vcard": "h-card",
    "vevent": "h-event",
}

_ADR = """p-post-office-box p-extended-address p-street-address p-locality p-region p-postal-code
    p-country-name"""
_GEO = "p-latitude p-longitude"
_ITEM = "fn=p-name u-url u-photo"
_RATED = "summary=p-name p-rating p-best p-worst p-item u-url"
_TABLES = {
    "adr": _ADR,
    "geo": _GEO,
    "item": _ITEM,
    "vcard": f"""{_ADR} {_GEO} fn=p-name u-url p-honorific-prefix p-given-name p-additional-name p-family-name
        p-honorific-suffix p-nickname u-email u-logo u-photo u-uid p-key p-org p-organization-name
        p-organization-unit p-tel p-note dt-bday dt-rev p-adr p-geo p-label title=p-job-title p-role
        p-category p-sort-string p-mailer p-tz p-class u-sound p-agent""",
    "vevent": """summary=p-name dtstart=dt-start dtend=dt-end dt-duration p-description u-url p-category
        p-location p-geo p-attendee p-contact p-organizer u-uid p-status""",
    "hentry": """entry-title=p-name entry-summary=p-summary entry-content=e-content dt-published dt-updated
        p-author p-category""",
    "hfeed": "p-author u-url u-photo p-category",
    "hnews": "p-entry p-geo p-dateline p-source-org u-principles u-item-license",
    "hproduct": "fn=p-name u-photo p-brand p-category p-description u-identifier u-url p-review p-price",
    "hrecipe": """fn=p-name p-ingredient p-yield e-instructions dt-duration u-photo p-summary p-author
        p-nutrition p-category dt-published""",
    "hresume": "p-contact p-summary p-education p-experience p-skill p-affiliation p-publications",
    "hreview": f"{_RATED} reviewer=p-author dtreviewed=dt-published description=e-content p-category",
    "hreview-aggregate": f"{_RATED} p-average p-count p-votes",
}
_TAGS_AND_ADDRESS = "tag=p-category bookmark=u-url"
_RELATIONS = {
    "hentry": _TAGS_AND_ADDRESS,
    "hfeed": "tag=p-category",
    "hnews": "principles=u-principles item-license=u-item-license",
    "hrecipe": "tag=p-category",
    "hreview": _TAGS_AND_ADDRESS,
    "hreview-aggregate": _TAGS_AND_ADDRESS,
}


def root_of(element: etree._Element, within: Root | None = None) -> Root | None:
    """Return the item that the element is the root of; version 1 counts where there is no version 2."""
    value = element.get("class")
    return (
        _root(value, within is not None and any(name.startswith("hreview") for name in within.classic))
        if value
        else None
    )


def properties_of(element: etree._Element, item: Root) -> list[Property]:
    """The properties of `item` that the element is: by its classes, or in version 1 also by its relations."""
    if not item.classic:
        return [] if "class" not in element.attrib else list(_properties(element.attrib["class"]))
    found = dict.fromkeys(
        by[word]
        for by, attribute in zip(_classic(item.classic), ("class", "rel"), strict=True)
        for word in words(element.get(attribute))
        if word in by
    )
    return list(found)


@lru_cache(maxsize=4096)
def _root(value: str, is_reviewed: bool) -> Root | None:
    classes = words(value)
    types = {name for name in classes if (found := _NAME.fullmatch(name)) and found[1] == "h"} - LAYOUT
    if types:
        return Root(tuple(sorted(types)), ())
    classic = [name for name in classes if name in _ROOTS and name != "item"]
    if not classic and is_reviewed and "item" in classes:
        classic = ["item"]
    if not classic:
        return None
    return Root(tuple(sorted({_ROOTS[name] for name in classic})), tuple(classic))


@lru_cache(maxsize=4096)
def _properties(value: str) -> tuple[Property, ...]:
    matches = (_NAME.fullmatch(word) for word in words(value))
    return tuple(Property(found[1], found[2]) for found in matches if found and found[1] != "h")


@lru_cache(maxsize=256)
def _classic(names: tuple[str, ...]) -> tuple[dict[str, Property], dict[str, Property]]:
    """The tables of classes and of relations for these roots together."""
    classes: dict[str, Property] = {}
    relations: dict[str, Property] = {}
    for name in names:
        classes |= _table(_TABLES[name])
        relations |= _table(_RELATIONS.get(name, ""))
    return classes, relations


def _table(text: str) -> dict[str, Property]:
    """`fn=p-name u-url`: the class `fn` is the property `p-name`, the class `url` is `u-url`."""
    table = {}
    for entry in text.split():
        word, _, full = entry.rpartition("=")
        prefix, _, name = full.partition("-")
        table[word or name] = Property(prefix, name)
    return table


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


def name_of(element: etree._Element, source: TextSource) -> str:
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
